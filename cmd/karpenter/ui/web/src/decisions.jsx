// SPDX-License-Identifier: Apache-2.0

import { useState } from 'preact/hooks'
import { useAnswer } from './api.js'
import { date, perHour, time } from './format.js'
import { Choice, Empty, Loaded, Panel } from './parts.jsx'

const kinds = { all: null, nodes: ['launch', 'ready', 'remove', 'gone'], pods: ['pods'], warnings: ['warning', 'trouble', 'pool'] }
const most = 200

export function Decisions({ revision, overview }) {
  const [show, setShow] = useState('all')
  const answer = useAnswer('decisions', revision)
  const next = overview.value?.next
  return <Loaded answer={answer}>{(d) => {
    const cards = d.cards
      .map((c) => ({ ...c, entries: c.entries.filter((e) => !kinds[show] || kinds[show].includes(e.kind)) }))
      .filter((c) => c.entries.length > 0)
    return (
      <>
        {next && <Panel title="Next" aside={next.words.length > 0 && `predicted: ${perHour(next.afterPerHour)}/h, ${next.evictions} evictions`}>
          {next.words.length === 0 ? <Empty>Karpenter would launch and remove nothing now.</Empty> : <ul class="words">{next.words.map((w) => <li>{w}</li>)}</ul>}
        </Panel>}
        <div class="bar"><Choice label="Show" options={[['all', 'Everything'], ['nodes', 'Nodes'], ['pods', 'Pods'], ['warnings', 'Warnings']]} value={show} onChange={setShow} /></div>
        {cards.length === 0 ? <Panel><Empty>Nothing of this kind is known to have happened. A live page begins when it is opened; a recording is made with <code>karpenter top --record FILE</code>.</Empty></Panel> : (
          <ol class="timeline" aria-label="What happened, newest first">{cards.slice(0, most).map((c) => (
            <li><time dateTime={c.time} title={date(c.time)}>{time(c.time)}</time><div class="card">{c.entries.map((e) => <p><span class={`kind ${e.kind}`}>{e.kind}</span> {e.text}</p>)}</div></li>
          ))}</ol>
        )}
        {cards.length > most && <p class="muted">The {most} latest of {cards.length}; /api/v1/decisions has all.</p>}
      </>
    )
  }}</Loaded>
}
