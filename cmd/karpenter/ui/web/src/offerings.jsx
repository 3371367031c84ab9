// SPDX-License-Identifier: Apache-2.0

import { useEffect, useState } from 'preact/hooks'
import { useAnswer } from './api.js'
import { count, gib, known, perHour, perMonth, hours } from './format.js'
import { Empty, Loaded, Panel, Table } from './parts.jsx'

const capacity = (o) => o.capacityType + (o.reservation ? ` ${o.reservation} (${o.reservationLeft} left)` : '')

function state(o) {
  if (o.available) return { text: 'Available', mark: 'ok' }
  return o.costPerHour > 0 ? { text: 'Sold out', mark: 'warning' } : { text: 'No price', mark: '' }
}

export function Offerings({ revision }) {
  const [text, setText] = useState('')
  const [query, setQuery] = useState('')
  useEffect(() => {
    const later = setTimeout(() => setQuery(text), 150)
    return () => clearTimeout(later)
  }, [text])
  const answer = useAnswer(`offerings?limit=100&q=${encodeURIComponent(query)}`, revision)
  return (
    <>
      <div class="bar">
        <label class="field grow">Search{' '}
          <input type="search" value={text} placeholder="m7g spot us-east-1a" onInput={(e) => setText(e.target.value)} spellcheck={false} aria-describedby="search-hint" />
        </label>
        <p id="search-hint" class="muted">Type, zone, capacity type, architecture, NodePool, <code>available</code>, <code>sold-out</code> or <code>no-price</code></p>
      </div>
      <Loaded answer={answer}>{(a) => (
        <Panel>
          <p class="muted" role="status">{count(a.matched)} of {count(a.total)} offerings{a.matched > a.offerings.length && `; the first ${a.offerings.length}: those that a NodePool allows, then others, the cheapest first`}</p>
          {a.offerings.length === 0 ? <Empty>No offering matches every word.</Empty> : <Table caption="Offerings: those that a NodePool allows, then others, the cheapest first" hideCaption columns={[
            { head: 'Instance type', cell: (o) => <><span class="mono">{o.instanceType}</span><span class="narrow">{capacity(o)} {o.zone}</span>{state(o).text !== 'Available' && <span class="narrow">{state(o).text}</span>}{o.nodePools.length === 0 && <span class="narrow">no NodePool</span>}</> },
            { head: 'vCPU', number: true, cell: (o) => count(o.vCPU) }, { head: 'GiB', number: true, cell: (o) => gib(o.memoryBytes) },
            { head: 'Arch', wide: true, cell: (o) => o.architecture ?? '–' }, { head: 'Capacity type', wide: true, cell: capacity },
            { head: 'Zone', wide: true, cell: (o) => o.zone }, { head: 'NodePools', wide: true, cell: (o) => o.nodePools.join(', ') || <span class="muted">none</span> },
            { head: '$/h', number: true, cell: (o) => known(o.costPerHour, perHour) }, { head: '$/month', number: true, wide: true, cell: (o) => known(o.costPerHour * hours, perMonth) },
            { head: 'State', wide: true, cell: (o) => <span class={`mark ${state(o).mark}`}>{state(o).text}</span> },
          ]} rows={a.offerings} />}
        </Panel>
      )}</Loaded>
    </>
  )
}
