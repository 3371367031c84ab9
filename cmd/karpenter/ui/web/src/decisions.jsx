// SPDX-License-Identifier: Apache-2.0

import { useState } from 'preact/hooks'
import { useAnswer } from './api.js'
import { aboutPerHour, change, count, perHour, plural } from './format.js'
import { Choice, Empty, Loaded, Panel, When } from './parts.jsx'

const kinds = { all: null, nodes: ['launch', 'ready', 'remove', 'gone'], pods: ['pods'], warnings: ['warning', 'trouble', 'pool'] }
const most = 200
const mostNext = 10

const offering = (o) => `${o.instanceType} ${o.capacityType} ${o.zone} ${perHour(o.pricePerHour)}/h`

// changes is by how much a decision changes the cost.
const changes = (d, f) => `${change(d.kind === 'Provision' ? f.launchedPerHour : -f.savingsPerHour, perHour)}/h`

function wait(seconds) {
  return seconds < 60 ? `${count(seconds)} s` : `${count(Math.floor(seconds / 60))} min ${count(seconds % 60)} s`
}

function Next({ next }) {
  const [all, setAll] = useState(false)
  const rest = all ? 0 : next.words.length - mostNext
  return (
    <Panel title="Next" aside={next.words.length > 0 && `predicted: ${aboutPerHour(next.afterPerHour)}/h, ${plural(next.evictions, 'eviction')}`}>
      {next.words.length === 0 ? <Empty>Karpenter would launch and remove nothing now.</Empty>
        : <ul class="words">{next.words.slice(0, all ? undefined : mostNext).map((w) => <li>{w}</li>)}</ul>}
      {rest > 0 && <p class="more"><button type="button" class="copy" onClick={() => setAll(true)}>Show {count(rest)} more</button></p>}
    </Panel>
  )
}

function Decision({ d, now }) {
  const a = d.actual
  const others = d.launches.filter((l) => l.alternatives.length > 0)
  return (
    <li>
      <When at={d.time} now={now} />
      <div class="card">
        <p><span class={`kind ${d.kind === 'Provision' ? 'launch' : 'remove'}`}>{d.kind}</span> {d.words}</p>
        <dl class="facts">
          <div><dt>Before</dt><dd>{plural(d.nodes, 'node')}, {perHour(d.costPerHour)}/h; {plural(d.pods, 'pod')} to place{d.noPlacePods > 0 && `, ${count(d.noPlacePods)} without a place`}</dd></div>
          <div><dt>Predicted</dt><dd>{changes(d, d.predicted)}{d.boundPerHour > 0 && `, no plan below ${perHour(d.boundPerHour)}/h`}{d.moves > 0 && `; ${plural(d.moves, 'pod')} to existing nodes`}</dd></div>
          <div><dt>Actual</dt><dd>{!a ? 'under way' : <>
            {changes(d, a)}{a.ready > 0 && `; ${plural(a.ready, 'node')} ready`}{a.failed > 0 && `, ${count(a.failed)} failed`}
            {a.removed > 0 && `; ${plural(a.removed, 'node')} terminated`}{a.kept > 0 && `, ${count(a.kept)} kept`}
            {d.removes.length > 0 && `; ${plural(a.evictions, 'eviction')}`}{a.waitSeconds > 0 && `; the oldest pod waited ${wait(a.waitSeconds)}`}{a.late && ' (incomplete)'}
          </>}</dd></div>
        </dl>
        {d.reasons.map((r) => <p class="muted">{plural(r.pods, 'pod')} without a place: {r.text}</p>)}
        {others.length > 0 && <details><summary>Alternatives</summary><ul class="words">{others.map((l) => (
          <li>{count(l.count)} × {offering(l)} was chosen before {l.alternatives.map(offering).join(', ')}</li>
        ))}</ul></details>}
      </div>
    </li>
  )
}

export function Decisions({ revision, overview }) {
  const [show, setShow] = useState('all')
  const answer = useAnswer('decisions', revision)
  const next = overview.value?.next
  const now = overview.value?.time ?? Date.now()
  return <Loaded answer={answer}>{(d) => {
    const cards = d.cards
      .map((c) => ({ ...c, entries: c.entries.filter((e) => !kinds[show] || kinds[show].includes(e.kind)) }))
      .filter((c) => c.entries.length > 0)
    return (
      <>
        {next && <Next next={next} />}
        {d.record.length > 0 && <Panel title="Record" aside="predicted and actual, kept in the cluster">
          <ol class="timeline" aria-label="Decisions of the record, newest first">{d.record.slice(0, most).map((r) => <Decision key={r.id} d={r} now={now} />)}</ol>
          {d.record.length > most && <p class="muted">The {most} latest of {d.record.length}; /api/v1/decisions has all.</p>}
        </Panel>}
        <div class="bar"><Choice label="Show" options={[['all', 'Everything'], ['nodes', 'Nodes'], ['pods', 'Pods'], ['warnings', 'Warnings']]} value={show} onChange={setShow} /></div>
        {cards.length === 0 ? <Panel><Empty>{overview.value?.source === 'snapshot' ? 'A snapshot file is one moment, without past decisions.' : 'No events of this kind are known. A live page lists events from when it is opened.'} To keep events, record the cluster with <code>karpenter top --record FILE</code>.</Empty></Panel> : (
          <ol class="timeline" aria-label="What happened, newest first">{cards.slice(0, most).map((c) => (
            <li><When at={c.time} now={now} /><div class="card">{c.entries.map((e) => <p><span class={`kind ${e.kind}`}>{e.kind}</span> {e.text}</p>)}</div></li>
          ))}</ol>
        )}
        {cards.length > most && <p class="muted">The {most} latest of {cards.length}; /api/v1/decisions has all.</p>}
      </>
    )
  }}</Loaded>
}
