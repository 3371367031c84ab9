// SPDX-License-Identifier: Apache-2.0

import { useAnswer } from './api.js'
import { count, perHour, perMonth, percent, plural, share } from './format.js'
import { Empty, Loaded, Panel, Table } from './parts.jsx'

export function Stays({ revision }) {
  const answer = useAnswer('stays', revision)
  return <Loaded answer={answer}>{(s) => s.groups.length === 0 ? <Panel><Empty>There are no nodes of NodePools.</Empty></Panel> : (
    <>
      <p class="lead">Each node counts for the one cause that has the most to do with it. Together the causes are the {perMonth(s.costPerMonth)} a month that all nodes cost.</p>
      <Panel>
        <div class="stack" role="img" aria-label={s.groups.map((g) => `${g.title}: ${percent(share(g.costPerHour, s.costPerHour))}`).join('; ')}>
          {s.groups.map((g, i) => <span class={`c${i % 8}`} style={{ width: `${100 * share(g.costPerHour, s.costPerHour)}%` }} />)}
        </div>
        <Table caption="Causes and what the nodes cost" hideCaption columns={[
          { head: 'Cause', cell: (g) => <span class="keyed"><i class={`dot c${s.groups.indexOf(g) % 8}`} /><span>{g.title}</span></span> },
          { head: 'Nodes', number: true, cell: (g) => count(g.nodes.length) },
          { head: 'Share', number: true, wide: true, cell: (g) => percent(share(g.costPerHour, s.costPerHour)) },
          { head: '$/month', number: true, cell: (g) => perMonth(g.costPerMonth) },
        ]} rows={s.groups} foot={['All nodes', count(s.groups.reduce((n, g) => n + g.nodes.length, 0)), percent(1), perMonth(s.costPerMonth)]} />
      </Panel>
      {s.groups.map((g, i) => (
        <details class="panel" open={i === 0}>
          <summary><i class={`dot c${i % 8}`} /><span>{g.title}</span><span class="aside">{plural(g.nodes.length, 'node')} · {perMonth(g.costPerMonth)}/month</span></summary>
          <Table caption={`Nodes: ${g.title}`} hideCaption columns={[
            { head: 'Node', cell: (n) => <><span class="mono">{n.name}</span><span class="why narrow">{n.why}</span></> }, { head: 'NodePool', wide: true, cell: (n) => n.nodePool },
            { head: 'Instance type', wide: true, cell: (n) => n.instanceType ?? '–' }, { head: '$/h', number: true, wide: true, cell: (n) => perHour(n.costPerHour) },
            { head: '$/month', number: true, cell: (n) => perMonth(n.costPerMonth) }, { head: 'Why', wide: true, cell: (n) => <span class="why">{n.why}</span> },
          ]} rows={g.nodes.slice(0, 200)} />
          {g.nodes.length > 200 && <p class="muted">The 200 most expensive of {g.nodes.length}; /api/v1/stays has all.</p>}
        </details>
      ))}
    </>
  )}</Loaded>
}
