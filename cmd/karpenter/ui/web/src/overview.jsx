// SPDX-License-Identifier: Apache-2.0

import { aboutPerHour, aboutPerMonth, count, percent, plural, share } from './format.js'
import { Empty, Figure, Loaded, Meter, Panel, When } from './parts.jsx'

const verdicts = { failure: 'Failed', warning: 'Warning', skipped: 'Skipped', ok: 'OK' }

// most is how many lines of the next decision are shown; the screen Decisions has all.
const most = 5

function Gap({ o }) {
  if (!o.comparable) return null
  const least = share(o.boundPerHour, o.costPerHour)
  return (
    <div class="gap" role="img" aria-label={`The proven minimum is ${percent(least)} of the cost`}>
      <span class="least" style={{ width: `${100 * least}%` }} /><span class="over" />
    </div>
  )
}

function Health({ checks }) {
  if (checks.length === 0) return <Empty>A snapshot file says nothing about the installation. Run <code>karpenter status</code> on the cluster.</Empty>
  const bad = ['failure', 'warning', 'skipped'].flatMap((v) => checks.filter((c) => c.verdict === v))
  const good = checks.filter((c) => c.verdict === 'ok')
  return (
    <ul class="checks">
      {bad.map((c) => (
        <li><span class={`mark ${c.verdict}`}>{verdicts[c.verdict]}</span>
          <div><strong>{c.name}</strong> {c.summary}{c.remedy && <p class="remedy">{c.remedy}</p>}</div></li>
      ))}
      {good.length > 0 && <li><span class="mark ok">{good.length} OK</span><div class="muted">{good.map((c) => c.name).join(', ')}</div></li>}
    </ul>
  )
}

export function Overview({ overview }) {
  return <Loaded answer={overview}>{(o) => (
    <>
      <Panel class="hero">
        <dl class="figures">
          <Figure label="Cost" value={aboutPerMonth(o.costPerMonth)} unit="/month" note={`${aboutPerHour(o.costPerHour)}/h for ${plural(o.nodes, 'node')}${o.unpriced ? `, ${o.unpriced} without a price` : ''}`} />
          <Figure label="Proven minimum" value={aboutPerMonth(o.boundPerMonth)} unit="/month" note={`${aboutPerHour(o.boundPerHour)}/h; no plan for these pods costs less`} />
          <Figure label="Gap" value={o.comparable ? percent(o.gap) : '–'} note={o.comparable ? `${aboutPerMonth(o.costPerMonth - o.boundPerMonth)}/month above the minimum` : o.nodes === 0 ? 'there are no nodes of NodePools' : o.boundPerHour === 0 ? 'nothing to compare with: no pod needs a node' : 'not comparable: the nodes do not run all pods yet'} />
          <Figure label="Pending pods" value={count(o.pendingPods)} tone={o.noPlacePods ? 'warn' : ''} note={o.pendingPods === 0 ? `${plural(o.pods, 'pod')} on nodes` : o.noPlacePods ? `no plan has a place for ${o.noPlacePods}` : 'a place is planned for each'} />
        </dl>
        <Gap o={o} />
        <dl class="loads">
          <div><dt>CPU requested</dt><dd><Meter value={share(o.milliCPU.requested, o.milliCPU.allocatable)} /> {percent(share(o.milliCPU.requested, o.milliCPU.allocatable))} <span class="muted">of {count(o.milliCPU.allocatable / 1000)} vCPU</span></dd></div>
          <div><dt>Memory requested</dt><dd><Meter value={share(o.memoryBytes.requested, o.memoryBytes.allocatable)} /> {percent(share(o.memoryBytes.requested, o.memoryBytes.allocatable))} <span class="muted">of {count(o.memoryBytes.allocatable / 2 ** 30)} GiB</span></dd></div>
        </dl>
      </Panel>
      <div class="columns">
        <div>
          <Panel title="Next decision" aside={o.next.words.length > 0 && `then ${aboutPerHour(o.next.afterPerHour)}/h`}>
            {o.next.words.length === 0 ? <Empty>Karpenter would launch and remove nothing now. <a href="#stays">Why nodes stay</a></Empty> : <ul class="words">{o.next.words.slice(0, most).map((w) => <li>{w}</li>)}
              {o.next.words.length > most && <li><a href="#decisions">and {o.next.words.length - most} more</a></li>}</ul>}
          </Panel>
          <Panel title="What happened last" aside={<a href="#decisions">All</a>}>
            {o.last.length === 0 ? <Empty>A snapshot file is one moment. Record a cluster with <code>karpenter top --record FILE</code> to see what happened.</Empty>
              : <ol class="last">{o.last.map((c) => <li><When at={c.time} now={o.time} /><div>{c.entries.map((e) => <p><span class={`kind ${e.kind}`}>{e.kind}</span> {e.text}</p>)}</div></li>)}</ol>}
          </Panel>
        </div>
        <Panel title="Health"><Health checks={o.checks} /></Panel>
      </div>
    </>
  )}</Loaded>
}
