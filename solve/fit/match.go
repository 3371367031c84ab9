// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"encoding/binary"
	"slices"
	"strconv"

	"karpenter/model"
)

// Match returns the offers whose nodes could have a label that meets r.
// They must not be changed.
func (c *Catalogue) Match(r model.Requirement) Bits {
	var room [256]byte // so that a key of usual length needs no memory of its own
	text := appendKey(room[:0], &r)
	if m, ok := c.matches[string(text)]; ok {
		return m
	}
	m, ok := c.older[string(text)]
	if !ok {
		m = c.match(r)
	}
	if (len(c.matches)+1)*len(m) > mostMatched {
		c.matches, c.older = map[string]Bits{}, c.matches
	}
	c.matches[string(text)] = m
	return m
}

// mostMatched is how many words of Bits the sets have that are remembered of
// requirements asked about recently. Those asked about before are forgotten when there
// are as many again.
const mostMatched = 1 << 21

func (c *Catalogue) match(r model.Requirement) Bits {
	if r.Key == model.LabelHostname && r.Operator() == model.DoesNotExist {
		return c.none // every node has a name
	}
	m := NewBits(len(c.Offers))
	for i := range c.Pools {
		c.matchPool(i, r, m)
	}
	if m.Empty() {
		return c.none
	}
	return m
}

// MatchAll returns the offers that meet every requirement of rs.
func (c *Catalogue) MatchAll(rs model.Requirements) Bits {
	out := c.in(Range{To: len(c.Offers)})
	c.narrow(out, rs)
	return out
}

// narrow leaves those of the offers that meet every requirement of rs.
func (c *Catalogue) narrow(offers Bits, rs model.Requirements) {
	for _, r := range rs {
		for i, w := range c.Match(r) {
			offers[i] &= w
		}
		if offers.Empty() {
			return
		}
	}
}

// Meets reports whether the offer is one of those that MatchAll returns.
func (c *Catalogue) Meets(offer int, rs model.Requirements) bool {
	return !slices.ContainsFunc(rs, func(r model.Requirement) bool { return !c.Match(r).Has(offer) })
}

// Any returns the offers whose nodes could meet one of the alternatives.
func (c *Catalogue) Any(alternatives []model.Requirements) Bits {
	out := NewBits(len(c.Offers))
	for _, alt := range alternatives {
		out.Add(c.MatchAll(alt))
	}
	return out
}

// appendKey appends what tells a requirement apart from others. No key is the beginning
// of another one.
func appendKey(to []byte, r *model.Requirement) []byte {
	text := func(s string) { to = append(binary.AppendUvarint(to, uint64(len(s))), s...) }
	text(r.Key)
	for _, yes := range []bool{r.Complement, r.Present, r.Gte.Set, r.Lte.Set} {
		to = strconv.AppendBool(to, yes)
	}
	for _, n := range []int64{r.Gte.N, r.Lte.N, int64(r.MinValues), int64(len(r.Values))} {
		to = binary.AppendVarint(to, n)
	}
	for _, v := range r.Values {
		text(v)
	}
	return to
}

// appendKeys is appendKey for requirements together.
func appendKeys(to []byte, rs model.Requirements) []byte {
	to = binary.AppendUvarint(to, uint64(len(rs)))
	for i := range rs {
		to = appendKey(to, &rs[i])
	}
	return to
}

// valueKey tells apart what is demanded of one label. For most it is the value.
func valueKey(r *model.Requirement) string {
	if !r.Complement && len(r.Values) == 1 && !r.Gte.Set && !r.Lte.Set && r.MinValues == 0 && !r.Present {
		return r.Values[0]
	}
	return string(appendKey([]byte{' '}, r)) // no value has spaces
}

func (c *Catalogue) matchPool(pool int, r model.Requirement, m Bits) {
	p := &c.Pools[pool]
	own, defined := p.Requirements.Get(r.Key)
	if !defined && !c.wellKnown.Has(r.Key) && !r.AllowsAbsence() {
		return
	}
	if defined {
		if !agree(own, r) {
			return
		}
		r = own.Intersect(r)
	}
	m.addRange(p.Offers)
	labels := c.labelsOf(poolKey{pool, r.Key})
	switch {
	case labels.byValue == nil || r.Complement && (r.Gte.Set || r.Lte.Set):
		for _, l := range labels.all {
			if !agree(l.Requirement, r) {
				m.unset(l.offers)
			}
		}
	case r.Complement: // all but few of many values, often
		for _, v := range r.Values {
			if i, ok := labels.byValue[v]; ok {
				m.unset(labels.all[i].offers)
			}
		}
	default: // few of many values, often
		m[p.Offers.From/64:].Remove(labels.single)
		for _, v := range r.Values {
			if i, ok := labels.byValue[v]; ok && r.Has(v) {
				m.set(labels.all[i].offers)
			}
		}
	}
}

// labelsOf returns what types and offers of the pool demand of the label.
func (c *Catalogue) labelsOf(k poolKey) *labels {
	if out, ok := c.labels[k]; ok {
		return out
	}
	var out []labelled
	known := map[string]int{}
	note := func(rs model.Requirements, offers Range) {
		r, ok := rs.Get(k.key)
		if !ok {
			return
		}
		text := valueKey(&r)
		i, ok := known[text]
		if !ok {
			i = len(out)
			known[text] = i
			out = append(out, labelled{Requirement: r})
		}
		for o := offers.From; o < offers.To; o++ {
			out[i].offers = append(out[i].offers, int32(o))
		}
	}
	if c.defined[k.key] {
		p := &c.Pools[k.pool]
		for i := p.Types.From; i < p.Types.To; i++ {
			note(c.Types[i].Requirements, c.Types[i].Offers)
		}
		for o := p.Offers.From; o < p.Offers.To; o++ {
			note(c.Offers[o].Requirements, Range{o, o + 1})
		}
	}
	c.labels[k] = index(out, c.Pools[k.pool].Offers)
	return c.labels[k]
}

// index finds the labels of a pool's offers by value, if each of them demands one value
// and no offer has two.
func index(all []labelled, pool Range) *labels {
	first := pool.From / 64 * 64
	byValue, single := map[string]int{}, NewBits(pool.To-first)
	for i, l := range all {
		if l.Complement || len(l.Values) != 1 || l.Gte.Set || l.Lte.Set {
			return &labels{all: all}
		}
		byValue[l.Values[0]] = i
		for _, o := range l.offers {
			if single.Has(int(o) - first) {
				return &labels{all: all}
			}
			single.Set(int(o) - first)
		}
	}
	return &labels{all: all, byValue: byValue, single: single}
}

func agree(a, b model.Requirement) bool {
	if !a.Complement && len(a.Values) == 1 && !a.Gte.Set && !a.Lte.Set {
		return b.Has(a.Values[0])
	}
	return a.Intersects(b) || (a.AllowsAbsence() && b.AllowsAbsence())
}
