// SPDX-License-Identifier: Apache-2.0

import { useEffect, useState } from 'preact/hooks'

async function answer(response) {
  if (response.ok) return response.json()
  const body = await response.json().catch(() => ({}))
  throw new Error(body.error ?? `the server answered ${response.status}`)
}

export const ask = (path, signal) => fetch(`/api/v1/${path}`, { signal }).then(answer)
export const plan = (yaml) => fetch('/api/v1/plan', { method: 'POST', body: yaml, headers: { 'Content-Type': 'application/yaml' } }).then(answer)

// useAnswer asks for the path, and again when the revision changes. What was there
// stays until the next answer.
export function useAnswer(path, revision) {
  const [state, set] = useState({})
  useEffect(() => {
    const abort = new AbortController()
    ask(path, abort.signal).then((value) => set({ value, path }), (error) => {
      if (error.name !== 'AbortError') set((was) => ({ ...was, error: error.message }))
    })
    return () => abort.abort()
  }, [path, revision])
  return state
}

// useRevision follows the stream of revisions, and says whether it is there.
export function useRevision() {
  const [state, set] = useState({ revision: 0, connected: true })
  useEffect(() => {
    const stream = new EventSource('/api/v1/events')
    stream.addEventListener('changed', (e) => set({ revision: JSON.parse(e.data).revision, connected: true }))
    stream.addEventListener('error', () => set((was) => ({ ...was, connected: false })))
    stream.addEventListener('open', () => set((was) => ({ ...was, connected: true })))
    return () => stream.close()
  }, [])
  return state
}
