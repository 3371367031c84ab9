// SPDX-License-Identifier: Apache-2.0

import { useAnswer } from './api.js'
import { count, perHour, plural } from './format.js'
import { Copy, Empty, Loaded, Panel, Table } from './parts.jsx'

// Funnel shows how many offerings each constraint leaves.
function Funnel({ pool }) {
  const most = Math.max(...pool.steps.map((s) => s.left), 1)
  return (
    <ol class="funnel">{pool.steps.map((s, i) => (
      <li class={s.left === 0 ? 'none' : ''}>
        <span class="left">{count(s.left)}</span>
        <span class="bar"><span style={{ width: `${(100 * Math.log(1 + s.left)) / Math.log(1 + most)}%` }} /></span>
        <span>{i === 0 ? s.constraint : `after ${s.constraint}`}</span>
      </li>
    ))}</ol>
  )
}

function Fix({ text }) {
  return <p class="fix"><span><strong>Fix</strong> {text}</span><Copy text={text}>Copy fix</Copy></p>
}

// Group is pods that are alike, and why no NodePool takes them.
export function Group({ g }) {
  const names = g.pods.slice(0, 3).join(', ') + (g.pods.length > 3 ? ` and ${count(g.pods.length - 3)} more` : '')
  return (
    <Panel title={plural(g.pods.length, 'pod')} aside={<span class="mono">{g.requests}</span>}>
      <p class="mono names">{names}</p>
      {g.reason && <p>{g.reason}</p>}
      <div class="verdicts">{(g.nodePools ?? []).map((p) => (
        <div class="verdict">
          <h3>NodePool {p.name}</h3>
          {p.reason && <p>{p.reason}</p>}
          {p.steps && <Funnel pool={p} />}
          {p.steps?.filter((s) => s.hint).map((s) => <Fix text={s.hint} />)}
        </div>
      ))}</div>
    </Panel>
  )
}

export function Pending({ revision }) {
  const answer = useAnswer('pending', revision)
  return <Loaded answer={answer}>{(p) => (
    <>
      <p class="lead">{p.pendingPods === 0 ? 'No pod waits for a node.' : `${plural(p.pendingPods, 'pod')} ${p.pendingPods === 1 ? 'waits' : 'wait'} for a node. For each group without a place, every NodePool says how many offerings its constraints leave. The bars have a logarithmic scale.`}</p>
      {p.noPlace.map((g) => <Group g={g} />)}
      {p.launches.length > 0 && <Panel title="Planned on new nodes">
        <Table caption="Nodes that the next decision launches" hideCaption columns={[
          { head: 'Instance type', cell: (l) => l.instanceType }, { head: 'NodePool', cell: (l) => l.nodePool }, { head: 'Capacity type', cell: (l) => l.capacityType, wide: true },
          { head: 'Zone', cell: (l) => l.zone, wide: true }, { head: 'Pods', number: true, cell: (l) => count(l.pods) }, { head: '$/h', number: true, cell: (l) => perHour(l.pricePerHour) },
        ]} rows={p.launches} />
      </Panel>}
      {p.existingNodes.length > 0 && <Panel title="Planned on nodes that are there or on their way">
        <Table caption="Nodes that take waiting pods" hideCaption columns={[{ head: 'Node', cell: (l) => l.node }, { head: 'Pods', number: true, cell: (l) => count(l.pods.length) }]} rows={p.existingNodes} />
      </Panel>}
      {p.pendingPods === 0 && <Panel><Empty>If a pod is pending all the same, kube-scheduler has not reported it as unschedulable, or it opted out: <code>karpenter explain pod NAME -n NAMESPACE</code></Empty></Panel>}
    </>
  )}</Loaded>
}
