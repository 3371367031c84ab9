// SPDX-License-Identifier: Apache-2.0

import { render } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { useAnswer, useRevision } from './api.js'
import { date } from './format.js'
import { Bill } from './bill.jsx'
import { Decisions } from './decisions.jsx'
import { Map } from './map.jsx'
import { Offerings } from './offerings.jsx'
import { Overview } from './overview.jsx'
import { Pending } from './pending.jsx'
import { Stays } from './stays.jsx'
import { WhatIf } from './whatif.jsx'

const screens = [
  ['overview', 'Overview', Overview],
  ['map', 'Map', Map],
  ['pending', 'Pending pods', Pending],
  ['stays', 'Why nodes stay', Stays],
  ['bill', 'Bill', Bill],
  ['offerings', 'Offerings', Offerings],
  ['what-if', 'What if', WhatIf],
  ['decisions', 'Decisions', Decisions],
]

const chosen = () => screens.find(([key]) => location.hash === `#${key}`) ?? screens[0]

function Theme() {
  const [theme, set] = useState(localStorage.getItem('theme') ?? 'auto')
  useEffect(() => {
    localStorage.setItem('theme', theme)
    document.documentElement.dataset.theme = theme
  }, [theme])
  return (
    <label class="theme">Theme{' '}
      <select value={theme} onChange={(e) => set(e.target.value)}>
        <option value="auto">System</option><option value="light">Light</option><option value="dark">Dark</option>
      </select>
    </label>
  )
}

function App() {
  const { revision, connected } = useRevision()
  const overview = useAnswer('overview', revision)
  const [[key, title, Screen], go] = useState(chosen)
  const heading = useRef()
  useEffect(() => {
    const change = () => { go(chosen()); scrollTo(0, 0); heading.current?.focus() }
    addEventListener('hashchange', change)
    return () => removeEventListener('hashchange', change)
  }, [])
  useEffect(() => { document.title = `${title} · Karpenter` }, [title])
  const o = overview.value
  const trouble = connected ? o?.trouble : 'The program behind this page does not answer. Start it again: karpenter ui'
  return (
    <>
      <a class="skip" href="#main" onClick={(e) => { e.preventDefault(); heading.current?.focus() }}>Skip to content</a>
      <header class="top">
        <span class="brand"><img src="/icon.svg" alt="" width="24" height="24" />Karpenter</span>
        <Theme />
      </header>
      <nav aria-label="Screens">
        <ul>{screens.map(([k, text]) => (
          <li><a href={`#${k}`} aria-current={k === key ? 'page' : undefined}>{text}{k === 'pending' && o?.pendingPods > 0 && <span class="badge" aria-label={`${o.pendingPods} pods`}>{o.pendingPods}</span>}</a></li>
        ))}</ul>
      </nav>
      <main id="main">
        <div class="title">
          <h1 tabIndex={-1} ref={heading}>{title}</h1>
          {o && <p>{o.title} · {{ cluster: 'live', recording: 'recording', snapshot: 'snapshot file' }[o.source]} · {date(o.time)}</p>}
        </div>
        <p class="trouble" role="status">{trouble}</p>
        <Screen revision={revision} overview={overview} />
      </main>
    </>
  )
}

render(<App />, document.body)
