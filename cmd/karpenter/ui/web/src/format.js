// SPDX-License-Identifier: Apache-2.0

const fixed = (digits) => new Intl.NumberFormat('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits })
const cents = fixed(2)
const fine = fixed(4)
const whole = fixed(0)
const one = fixed(1)

const signed = (v, text) => (v < 0 ? '−' : '') + text
// Amounts that stand alone have as many digits as can be told apart; those of tables have all cents.
export const aboutPerMonth = (v) => (Math.abs(v) < 10_000 ? perMonth(v) : signed(v, '$' + whole.format(Math.abs(v))))
export const aboutPerHour = (v) => (Math.abs(v) < 100 ? perHour(v) : signed(v, '$' + cents.format(Math.abs(v))))
export const perMonth = (v) => signed(v, '$' + cents.format(Math.abs(v)))
export const perHour = (v) => signed(v, '$' + fine.format(Math.abs(v)))
// known is the amount in words, or that there is none: a price of 0 is not known.
export const known = (v, f) => (v > 0 ? f(v) : '–')
export const change = (v, f) => (v > 0 ? '+' : '') + f(v)
export const hours = 730
export const count = (v) => whole.format(v)
export const percent = (v) => one.format(100 * v) + '%'
export const share = (part, of) => (of > 0 ? part / of : 0)
export const vcpu = (milli) => new Intl.NumberFormat('en-US', { maximumFractionDigits: 2 }).format(milli / 1000)
export const gib = (bytes) => new Intl.NumberFormat('en-US', { maximumFractionDigits: 1 }).format(bytes / 2 ** 30)
export const plural = (n, noun) => `${count(n)} ${noun}${n === 1 ? '' : 's'}`
export const time = (text) => new Date(text).toISOString().slice(11, 19)
export const day = (text) => new Date(text).toISOString().slice(0, 10)
export const date = (text) => new Date(text).toISOString().slice(0, 16).replace('T', ' ') + ' UTC'
// used is how full a node is: of CPU or memory, whichever is more.
export const used = (n) => Math.min(1, Math.max(share(n.milliCPU.requested, n.milliCPU.allocatable), share(n.memoryBytes.requested, n.memoryBytes.allocatable)))
