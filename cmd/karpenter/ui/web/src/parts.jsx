// SPDX-License-Identifier: Apache-2.0

import { useEffect, useState } from 'preact/hooks'
import { date, day, time } from './format.js'

export function Figure({ label, value, unit, note, tone }) {
  return (
    <div class={`figure ${tone ?? ''}`}>
      <dt>{label}</dt>
      <dd><span class="value">{value}</span>{unit && <span class="unit"> {unit}</span>}{note && <span class="note">{note}</span>}</dd>
    </div>
  )
}

export function Panel({ title, aside, children, class: name }) {
  return (
    <section class={`panel ${name ?? ''}`}>
      {title && <header><h2>{title}</h2>{aside && <span class="aside">{aside}</span>}</header>}
      {children}
    </section>
  )
}

// Table is rows with named columns: { head, cell, number, wide }. Columns that are wide
// are left out on narrow screens.
export function Table({ caption, columns, rows, foot, hideCaption }) {
  const [drawn, draw] = useState(100)
  useEffect(() => {
    if (drawn >= rows.length) return
    const soon = setTimeout(() => draw(2 * drawn))
    return () => clearTimeout(soon)
  }, [drawn, rows.length])
  const name = (c) => `${c.number ? 'number' : ''} ${c.wide ? 'wide' : ''}`
  return (
    <div class="scroll" role="region" aria-label={caption} tabIndex={0}>
      <table>
        <caption class={hideCaption ? 'quiet' : ''}>{caption}</caption>
        <thead><tr>{columns.map((c) => <th scope="col" class={name(c)}>{c.head}</th>)}</tr></thead>
        <tbody>{rows.slice(0, drawn).map((r) => <tr>{columns.map((c, i) => i === 0
          ? <th scope="row" class={name(c)}>{c.cell(r)}</th>
          : <td class={name(c)}>{c.cell(r)}</td>)}</tr>)}</tbody>
        {foot && <tfoot><tr>{columns.map((c, i) => i === 0 ? <th scope="row">{foot[i]}</th> : <td class={name(c)}>{foot[i]}</td>)}</tr></tfoot>}
      </table>
    </div>
  )
}

// Choice is a row of options of which one is chosen.
export function Choice({ label, options, value, onChange }) {
  return (
    <fieldset class="choice">
      <legend>{label}</legend>
      <div>{options.map(([key, text]) => (
        <label class={key === value ? 'chosen' : ''}>
          <input type="radio" name={label} value={key} checked={key === value} onChange={() => onChange(key)} />{text}
        </label>
      ))}</div>
    </fieldset>
  )
}

// When is a time, with the day unless that is the one of now.
export function When({ at, now }) {
  return <time dateTime={at} title={date(at)}>{day(at) !== day(now) && <span class="day">{day(at)} </span>}{time(at)}</time>
}

// Meter draws a share that stands beside it in words.
export function Meter({ value }) {
  return <span class="meter" aria-hidden="true"><span style={{ width: `${Math.min(100, 100 * value)}%` }} /></span>
}

export function Copy({ text, children }) {
  const [done, set] = useState(false)
  const copy = async () => {
    await navigator.clipboard.writeText(text)
    set(true)
    setTimeout(() => set(false), 2000)
  }
  return <button type="button" class="copy" onClick={copy}>{done ? 'Copied' : children}</button>
}

export function Empty({ children }) { return <p class="empty">{children}</p> }

// Loaded shows what was answered, or that it is on its way, or why there is nothing.
export function Loaded({ answer, children }) {
  if (answer.value) return children(answer.value)
  if (answer.error) return <p class="problem" role="alert">{answer.error}</p>
  return <p class="loading" role="status">Loading…</p>
}
