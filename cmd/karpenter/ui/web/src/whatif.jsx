// SPDX-License-Identifier: Apache-2.0

import { useState } from 'preact/hooks'
import { plan, useAnswer } from './api.js'
import { aboutPerMonth, change, count, perHour, hours, plural } from './format.js'
import { Group } from './pending.jsx'
import { Empty, Figure, Loaded, Panel, Table } from './parts.jsx'

function Result({ r }) {
  const was = r.unchanged ?? r.before
  const differs = r.after.costPerHour - was.costPerHour
  const drifted = (r.changes ?? []).reduce((n, c) => n + (c.drifted?.length ?? 0), 0)
  return (
    <div role="region" aria-label="Plan" tabIndex={-1}>
      <Panel class="hero">
        <dl class="figures">
          <Figure label="Cost after the next decision" value={aboutPerMonth(r.after.costPerHour * hours)} unit="/month" note={`${change(differs * hours, aboutPerMonth)}/month against no change`} tone={differs > 1e-9 ? 'warn' : ''} />
          <Figure label="Nodes" value={count(r.after.nodes)} note={`${count(r.launches.length + r.commands.reduce((n, c) => n + (c.launches?.length ?? 0), 0))} launched, ${count(r.commands.reduce((n, c) => n + c.nodes.length, 0))} removed`} />
          <Figure label="Evictions" value={count(r.evictions)} note={`${plural(drifted, 'node')} would drift`} tone={r.evictions ? 'warn' : ''} />
          <Figure label="Pending pods" value={count(r.after.pending)} note={`${count(was.pending)} without the change`} tone={r.after.pending > was.pending ? 'warn' : ''} />
        </dl>
      </Panel>
      <Panel title="Changes">
        <ul class="words">{(r.changes ?? []).map((c) => <li><strong>NodePool {c.nodePool}</strong> is {c.change}{c.drifted && `; ${plural(c.drifted.length, 'node')} would drift`}
          {c.fields && <ul class="fields">{c.fields.map((f) => <li>{f}</li>)}</ul>}</li>)}
          {(r.notes ?? []).map((n) => <li class="muted">{n}</li>)}</ul>
      </Panel>
      {r.launches.length > 0 && <Panel title="Launches">
        <Table caption="Nodes that are launched for pending pods" hideCaption columns={[
          { head: 'Instance type', cell: (l) => l.instanceType }, { head: 'NodePool', cell: (l) => l.nodePool }, { head: 'Capacity type', cell: (l) => l.capacityType, wide: true },
          { head: 'Zone', cell: (l) => l.zone, wide: true }, { head: 'Pods', number: true, cell: (l) => count(l.pods) }, { head: '$/h', number: true, cell: (l) => perHour(l.pricePerHour) }]} rows={r.launches} />
      </Panel>}
      {r.commands.length > 0 && <Panel title="Removals">
        <Table caption="Nodes that are removed" hideCaption columns={[
          { head: 'Nodes', cell: (c) => <span class="mono">{c.nodes.map((n) => n.name).join(', ')}</span> }, { head: 'Reason', cell: (c) => c.reason },
          { head: 'Replaced by', wide: true, cell: (c) => (c.launches ?? []).map((l) => `${l.instanceType} ${l.capacityType} ${l.zone}`).join(', ') || '–' },
          { head: 'Evictions', number: true, cell: (c) => count(c.evictions) }, { head: 'Saves $/h', number: true, cell: (c) => perHour(c.savingsPerHour) }]} rows={r.commands} />
      </Panel>}
      {r.pending.length > 0 && <section><h2 class="between">Pods that stay pending</h2>{r.pending.map((g) => <Group g={g} />)}</section>}
    </div>
  )
}

function Editor({ pools }) {
  const [name, setName] = useState(pools.find((p) => p.yaml)?.name ?? '')
  const [text, setText] = useState(pools.find((p) => p.yaml)?.yaml ?? '')
  const [result, setResult] = useState({})
  const choose = (n) => { setName(n); setText(pools.find((p) => p.name === n)?.yaml ?? '') }
  const run = async (e) => {
    e.preventDefault()
    setResult({ busy: true })
    try { setResult({ report: await plan(text) }) } catch (error) { setResult({ error: error.message }) }
  }
  return (
    <>
      <Panel>
        <form onSubmit={run}>
          {pools.some((p) => p.yaml) && <label class="field">NodePool{' '}
            <select value={name} onChange={(e) => choose(e.target.value)}>{pools.map((p) => <option>{p.name}</option>)}</select></label>}
          <label class="field block" for="manifest">Manifest{!pools.some((p) => p.yaml) && ' (a snapshot file holds no manifests: paste yours)'}</label>
          <textarea id="manifest" rows={18} wrap="off" spellcheck={false} value={text} onInput={(e) => setText(e.target.value)} />
          <p class="bar"><button class="primary" disabled={result.busy || !text.trim()}>{result.busy ? 'Planning…' : 'Plan with this NodePool'}</button>
            <span class="muted">Nothing is changed. To apply it, use <code>kubectl apply</code>.</span></p>
        </form>
      </Panel>
      <div aria-live="polite">
        {result.error && <p class="problem" role="alert">{result.error}</p>}
        {result.report && <Result r={result.report} />}
        {!result.error && !result.report && <Panel><Empty>Edit the NodePool and plan: you see launches, drift, evictions and the change of cost, as <code>karpenter plan -f</code> does.</Empty></Panel>}
      </div>
    </>
  )
}

export function WhatIf() {
  const answer = useAnswer('nodepools', 0)
  return <Loaded answer={answer}>{(a) => <Editor pools={a.nodePools} />}</Loaded>
}
