// SPDX-License-Identifier: Apache-2.0

import { memo } from './memo.js'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { ask, useAnswer } from './api.js'
import { count, gib, hours, known, percent, perHour, perMonth, plural, share, used, vcpu } from './format.js'
import { Choice, Empty, Loaded, Meter, Panel, Table } from './parts.jsx'

const colours = {
  used: { text: 'Utilization', of: (n) => ['up to 20%', '20 to 40%', '40 to 60%', '60 to 80%', '80 to 100%'][Math.min(4, Math.floor(used(n) * 5))] },
  pool: { text: 'NodePool', of: (n) => n.nodePool || 'no NodePool' },
  capacity: { text: 'Capacity type', of: (n) => n.capacityType || 'unknown' },
  zone: { text: 'Zone', of: (n) => n.zone || 'unknown' },
}

// longest is the length of the largest of so many tiles, in pixels.
const longest = (tiles) => (tiles > 300 ? 46 : tiles > 40 ? 76 : 110)

// side is the length of a tile, so that its area grows with the size.
const side = (size, most, length) => Math.round(Math.max(12, length * Math.sqrt(share(size, most))))

// Inside draws the pods of a node from the bottom up, each as high as its part of the
// node.
function Inside({ shares, length }) {
  let y = length - 2
  const bars = []
  for (const s of shares) {
    const bottom = Math.round(y)
    y -= (s / 1000) * (length - 4)
    if (y < 1 || bars.length > 60) break
    bars.push(`M2 ${Math.round(y)}h${length - 4}v${Math.max(1, bottom - Math.round(y) - 1)}h-${length - 4}z`)
  }
  return <svg width={length} height={length} viewBox={`0 0 ${length} ${length}`} aria-hidden="true"><path d={bars.join('')} /></svg>
}

const words = (n) => `${n.name}: ${n.instanceType ?? 'no instance yet'}, ${n.capacityType ?? ''} ${n.zone ?? ''}, ${n.costPerHour > 0 ? `${perMonth(n.costPerHour * hours)} a month` : 'no known price'}, ${percent(used(n))} requested, ${plural(n.pods, 'pod')}, ${n.state}. ${n.fate}: ${n.why ?? ''}`

const Tiles = memo(function Tiles({ groups, size, most, colour, classes, first, longest }) {
  return groups.map(([pool, nodes]) => (
    <section class="pool" aria-label={pool || 'Nodes without a NodePool'}>
      <h2>{pool || 'No NodePool'} <span class="aside">{plural(nodes.length, 'node')} · {perMonth(nodes.reduce((s, n) => s + n.costPerHour, 0) * hours)}/month</span></h2>
      <div class="tiles">{nodes.map((n) => {
        const length = side(size(n), most, longest)
        return (
          <button type="button" class={`tile ${classes[colours[colour].of(n)]} ${n.state} ${n.cause === 'leaving' ? 'leaving' : ''}`} data-name={n.name} aria-label={words(n)}
            tabIndex={n.name === first ? 0 : -1} style={{ width: `${length}px`, height: `${length}px` }}>
            <Inside shares={n.podShares} length={length} />
          </button>
        )
      })}</div>
    </section>
  ))
})

function Details({ node: n, pinned, revision, onClose }) {
  const [detail, set] = useState(null)
  useEffect(() => {
    set(null)
    if (!pinned) return
    const abort = new AbortController()
    ask(`nodes/${encodeURIComponent(pinned)}`, abort.signal).then(set, () => {})
    return () => abort.abort()
  }, [pinned, revision])
  if (!n) return <aside class="details"><p class="muted">Point at a node, or focus it with Tab and the arrow keys, to see what it is. Enter lists its pods.</p></aside>
  return (
    <aside class={`details ${pinned ? 'pinned' : ''}`} aria-label="Selected node">
      <header><h2 class="mono">{n.name}</h2>{pinned && <button type="button" class="copy" onClick={onClose}>Close</button>}</header>
      <dl class="facts">
        <div><dt>Instance</dt><dd>{n.instanceType ?? '–'} {n.capacityType} {n.zone}</dd></div>
        <div><dt>NodePool</dt><dd>{n.nodePool ?? '–'}</dd></div>
        <div><dt>Cost</dt><dd>{n.costPerHour > 0 ? <>{perMonth(n.costPerHour * hours)}/month <span class="muted">{perHour(n.costPerHour)}/h</span></> : 'not known'}</dd></div>
        <div><dt>CPU</dt><dd><Meter value={share(n.milliCPU.requested, n.milliCPU.allocatable)} /> {vcpu(n.milliCPU.requested)} of {vcpu(n.milliCPU.allocatable)} vCPU</dd></div>
        <div><dt>Memory</dt><dd><Meter value={share(n.memoryBytes.requested, n.memoryBytes.allocatable)} /> {gib(n.memoryBytes.requested)} of {gib(n.memoryBytes.allocatable)} GiB</dd></div>
        <div><dt>Pods</dt><dd>{count(n.pods)}</dd></div>
        <div><dt>State</dt><dd>{n.state}</dd></div>
        {n.launched && <div><dt>{n.state === 'removing' ? 'Removed' : 'Purpose'}</dt><dd>{n.launched.replace('removed: ', '')}</dd></div>}
        {n.why && <div><dt>{n.fate === 'stays' ? 'Stays' : 'Fate'}</dt><dd>{n.why}</dd></div>}
      </dl>
      {detail && detail.podList.length > 0 && <Table caption="Pods" columns={[
        { head: 'Pod', cell: (p) => <span class="mono">{p.namespace ? `${p.namespace}/` : ''}{p.name}</span> },
        { head: 'vCPU', number: true, cell: (p) => vcpu(p.milliCPU) }, { head: 'GiB', number: true, cell: (p) => gib(p.memoryBytes) },
      ]} rows={detail.podList} />}
    </aside>
  )
}

// near returns the tile above or below another one.
function near(tiles, from, down) {
  const at = from.getBoundingClientRect()
  let best = null
  let least = Infinity
  for (const t of tiles) {
    const b = t.getBoundingClientRect()
    const dy = down ? b.top - at.bottom : at.top - b.bottom
    if (dy < -4) continue
    const distance = 4 * dy + Math.abs(b.left + b.width / 2 - at.left - at.width / 2)
    if (distance < least) [best, least] = [t, distance]
  }
  return best
}

function Nodes({ nodes, revision }) {
  const [by, setBy] = useState('vcpu')
  const [colour, setColour] = useState('used')
  const [view, setView] = useState('map')
  const [shown, setShown] = useState(null)
  const [pinned, setPinned] = useState(null)
  const root = useRef()
  const size = by === 'vcpu' ? (n) => n.milliCPU.allocatable : (n) => n.costPerHour
  const { groups, most, classes, legend, first, byName } = useMemo(() => {
    const pools = {}
    for (const n of nodes) (pools[n.nodePool ?? ''] ??= []).push(n)
    const groups = Object.entries(pools).sort(([a], [b]) => (a === '') - (b === '') || a.localeCompare(b))
    for (const [, list] of groups) list.sort((a, b) => size(b) - size(a) || a.name.localeCompare(b.name))
    const counts = {}
    for (const n of nodes) counts[colours[colour].of(n)] = (counts[colours[colour].of(n)] ?? 0) + 1
    const names = Object.keys(counts).sort((a, b) => (colour === 'used' ? parseInt(a.replace('up to', '0')) - parseInt(b.replace('up to', '0')) : counts[b] - counts[a]))
    const classes = {}
    names.forEach((name, i) => { classes[name] = colour === 'used' ? `u${['up', '20', '40', '60', '80'].indexOf(name.split(' ')[0])}` : `c${i % 8}` })
    return { groups, most: Math.max(...nodes.map(size)), classes, legend: names.map((name) => [name, counts[name]]), first: groups[0]?.[1][0].name, byName: new globalThis.Map(nodes.map((n) => [n.name, n])) }
  }, [nodes, by, colour])
  const point = (e) => {
    const name = e.target.closest?.('.tile')?.dataset.name
    if (name && !pinned) setShown(name)
  }
  const pin = (e) => {
    const name = e.target.closest?.('.tile')?.dataset.name
    if (name) { setShown(name); setPinned(name) }
  }
  const move = (e) => {
    if (e.key === 'Escape') setPinned(null)
    const tiles = [...root.current.querySelectorAll('.tile')]
    const at = tiles.indexOf(document.activeElement)
    const to = {
      ArrowRight: () => tiles[at + 1], ArrowLeft: () => tiles[at - 1], Home: () => tiles[0], End: () => tiles.at(-1),
      ArrowDown: () => near(tiles, tiles[at], true), ArrowUp: () => near(tiles, tiles[at], false),
    }[e.key]
    if (at < 0 || !to) return
    e.preventDefault()
    const next = to()
    if (!next) return
    tiles[at].tabIndex = -1
    next.tabIndex = 0
    next.focus()
  }
  if (nodes.length === 0) return <Panel><Empty>There are no nodes.</Empty></Panel>
  return (
    <>
      <div class="bar">
        <Choice label="Size" options={[['vcpu', 'vCPU'], ['cost', 'Cost']]} value={by} onChange={setBy} />
        <Choice label="Color" options={Object.entries(colours).map(([k, c]) => [k, c.text])} value={colour} onChange={setColour} />
        <Choice label="View" options={[['map', 'Map'], ['table', 'Table']]} value={view} onChange={setView} />
      </div>
      {view === 'table' ? <Panel><Table caption={plural(nodes.length, 'node')} columns={[
        { head: 'Node', cell: (n) => <span class="mono">{n.name}</span> }, { head: 'NodePool', wide: true, cell: (n) => n.nodePool ?? '–' }, { head: 'Instance type', cell: (n) => n.instanceType ?? '–' },
        { head: 'Capacity type', wide: true, cell: (n) => n.capacityType ?? '–' }, { head: 'Zone', wide: true, cell: (n) => n.zone ?? '–' }, { head: 'Requested', number: true, cell: (n) => percent(used(n)) },
        { head: 'Pods', number: true, cell: (n) => count(n.pods) }, { head: '$/month', number: true, cell: (n) => known(n.costPerHour * hours, perMonth) },
      ]} rows={groups.flatMap(([, list]) => list)} /></Panel> : (
        <>
          <ul class="legend" aria-label={`Colors: ${colours[colour].text}`}>{legend.map(([name, n]) => <li><i class={`dot ${classes[name]}`} />{name} <span class="muted">{count(n)}</span></li>)}
            {nodes.some((n) => n.cause === 'leaving') && <li><i class="dot dashed" />on its way out</li>}</ul>
          <div class="with-details">
            <div class="map" ref={root} onMouseOver={point} onFocusIn={point} onClick={pin} onKeyDown={move}>
              <Tiles groups={groups} size={size} most={most} colour={colour} classes={classes} first={first} longest={longest(nodes.length)} />
            </div>
            <Details node={byName.get(pinned ?? shown)} pinned={pinned} revision={revision} onClose={() => setPinned(null)} />
          </div>
        </>
      )}
    </>
  )
}

export function Map({ revision }) {
  const answer = useAnswer('nodes', revision)
  return <Loaded answer={answer}>{(a) => <Nodes nodes={a.nodes} revision={revision} />}</Loaded>
}
