// SPDX-License-Identifier: Apache-2.0

import { useState } from 'preact/hooks'
import { useAnswer } from './api.js'
import { aboutPerHour, aboutPerMonth, count, date, percent, perHour, perMonth, plural, share } from './format.js'
import { Choice, Empty, Figure, Loaded, Meter, Panel, Table } from './parts.jsx'

const tables = [['byNamespace', 'Namespace'], ['byLabel', 'Label'], ['byNodePool', 'NodePool'], ['byCapacityType', 'Capacity type']]

export function Bill({ revision }) {
  const [by, setBy] = useState('byNamespace')
  const [label, setLabel] = useState('team')
  const answer = useAnswer(`bill?label=${encodeURIComponent(label)}`, revision)
  return <Loaded answer={answer}>{(b) => (
    <>
      <Panel class="hero">
        <dl class="figures three">
          <Figure label="Total" value={aboutPerMonth(b.costPerMonth)} unit="/month" note={`${aboutPerHour(b.costPerHour)}/h for ${plural(b.nodes, 'node')}`} />
          <Figure label="Requested by pods" value={percent(1 - share(b.idlePerHour, b.costPerHour))} note={`${aboutPerHour(b.costPerHour - b.idlePerHour)}/h`} />
          <Figure label="Idle" value={percent(share(b.idlePerHour, b.costPerHour))} note={`${aboutPerHour(b.idlePerHour)}/h that no pod requests`} />
        </dl>
      </Panel>
      <div class="bar">
        <Choice label="Divide by" options={tables} value={by} onChange={setBy} />
        {by === 'byLabel' && <label class="field">Label key{' '}
          <input list="labels" value={label} onChange={(e) => setLabel(e.target.value)} spellcheck={false} />
          <datalist id="labels">{b.labels.map((l) => <option value={l} />)}</datalist>
        </label>}
      </div>
      <Panel>
        {b[by].length === 0 ? <Empty>There are no nodes of NodePools.</Empty>
          : <Table caption={`Cost by ${by === 'byLabel' ? `label ${b.label}` : tables.find(([k]) => k === by)[1].toLowerCase()}`} columns={[
            { head: tables.find(([k]) => k === by)[1], cell: (r) => r.name || <em>Idle capacity</em> },
            { head: 'Pods', number: true, wide: true, cell: (r) => (r.name ? count(r.pods) : '') },
            { head: 'Requested $/h', number: true, wide: true, cell: (r) => (r.name ? perHour(r.usedPerHour) : '–') },
            { head: 'Idle $/h', number: true, wide: true, cell: (r) => (r.idlePerHour ? perHour(r.idlePerHour) : '–') },
            { head: 'Share', number: true, cell: (r) => <><Meter value={share(r.costPerHour, b.costPerHour)} /><span class="percent">{percent(share(r.costPerHour, b.costPerHour))}</span></> },
            { head: '$/month', number: true, cell: (r) => perMonth(r.costPerMonth) },
          ]} rows={b[by]} foot={['Total', count(b[by].reduce((n, r) => n + r.pods, 0)), perHour(b.costPerHour - b.idlePerHour), perHour(b.idlePerHour), percent(1), perMonth(b.costPerMonth)]} />}
      </Panel>
      {b.savings && <Panel title="Saved since the baseline" aside={`from ${date(b.savings.from)}`}>
        <Table caption="Savings by cause" hideCaption columns={[
          { head: 'Cause', cell: (c) => c.name },
          { head: 'Meaning', wide: true, cell: (c) => c.means },
          { head: 'Saved', number: true, cell: (c) => perMonth(c.saved) },
        ]} rows={b.savings.causes} foot={['Total', `${perMonth(b.savings.baseline)} at the cost of the baseline, less ${perMonth(b.savings.actual)} actual`, perMonth(b.savings.saved)]} />
      </Panel>}
      {b.costs && !b.savings && <Panel title="Saved since the baseline"><Empty>There is no baseline. To freeze one, apply what <code>karpenter record --freeze</code> prints.</Empty></Panel>}
      {b.costs && <p class="muted">Nodes have cost {perMonth(b.costs.cost)} since {date(b.costs.since)}.{b.costs.unseen > 0 && ` At most ${perMonth(b.costs.unseen)} are missing, because no controller ran.`}</p>}
      <p class="muted">The price of each node is divided between its CPU, memory and GPUs; a pod pays for what it requests. The cents of every table add up to the total.{b.foreign > 0 && ` Not in the bill: ${plural(b.foreign, 'node')} of no NodePool.`}{b.unpriced > 0 && ` The price of ${plural(b.unpriced, 'node')} is not known and counts as $0.`}</p>
    </>
  )}</Loaded>
}
