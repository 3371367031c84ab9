// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"cmp"
	"slices"
	"strings"

	"karpenter/model"
)

// Defines reports whether some pool, type or offer demands anything of a label.
func (c *Catalogue) Defines(key string) bool { return c.defined[key] }

// Label returns what is known of a label of a node launched from the offer. It
// reports false when the node lacks the label.
func (c *Catalogue) Label(offer int, key string) (model.Requirement, bool) {
	if !c.defined[key] {
		return model.Requirements(nil).Get(key)
	}
	if r, ok := c.settledBy(offer, key); ok {
		return r, true
	}
	return c.labelOfType(c.Offers[offer].Type, key)
}

// settledBy returns the label if the offer itself says which value it has.
func (c *Catalogue) settledBy(offer int, key string) (model.Requirement, bool) {
	rs := c.Offers[offer].Requirements
	for i := range rs { // they are few
		if r := &rs[i]; r.Key == key {
			return *r, !r.Complement && len(r.Values) == 1
		}
	}
	return model.Requirement{}, false
}

// labelOfType is Label for the offers of a type that do not settle the label.
func (c *Catalogue) labelOfType(at int, key string) (model.Requirement, bool) {
	row := &c.Types[at]
	own, defined := c.Pools[row.Pool].Requirements.Get(key)
	t, has := row.Requirements.Get(key)
	switch {
	case !defined && !has:
		return own, false
	case defined && has:
		own = own.Intersect(t)
	case has:
		own = t
	}
	return own, own.Complement || len(own.Values) > 0
}

// Spelling returns what is known of the label of the nodes of each offer. It must not
// be changed.
func (c *Catalogue) Spelling(key string) *Spelling {
	if !c.defined[key] {
		key = "" // which no label has either
	}
	if s, ok := c.spellings[key]; ok {
		return s
	}
	s := &Spelling{Of: make([]int32, len(c.Offers))}
	index := map[string]int32{}
	number := func(label model.Requirement, has bool) int32 {
		if !has {
			return -1
		}
		text := valueKey(&label)
		i, ok := index[text]
		if !ok {
			i = int32(len(s.Labels))
			index[text], s.Labels = i, append(s.Labels, label)
		}
		return i
	}
	last, ofLast := -1, int32(-1)
	for o := range c.Offers {
		if label, ok := c.settledBy(o, key); ok {
			s.Of[o] = number(label, true)
			continue
		}
		if at := c.Offers[o].Type; at != last { // offers of a type follow each other
			last, ofLast = at, number(c.labelOfType(at, key))
		}
		s.Of[o] = ofLast
	}
	s.Absent, s.Open = NewBits(len(c.Offers)), NewBits(len(c.Offers))
	for o, i := range s.Of {
		switch {
		case i < 0:
			s.Absent.Set(o)
		case s.Labels[i].Complement || len(s.Labels[i].Values) > 1:
			s.Open.Set(o)
		}
	}
	c.spellings[key] = s
	return s
}

// mostAlike is how many offers are remembered in all divisions that Alike returned.
const mostAlike = 1 << 22

// Alike divides the offers into those of whose labels the same is known. What it
// returns must not be changed.
func (c *Catalogue) Alike(labels []string) [][]int32 {
	name := strings.Join(labels, "\x00")
	if out, ok := c.alike[name]; ok {
		return out
	}
	all, next := make([]int32, len(c.Offers)), make([]int32, len(c.Offers))
	for o := range all {
		all[o] = int32(o)
	}
	var out, before [][]int32
	if len(all) > 0 {
		out = append(out, all)
	}
	for _, key := range labels {
		out, before = divide(out, c.Spelling(key), next, before[:0]), out
		all, next = next, all
	}
	slices.SortFunc(out, func(a, b []int32) int { return cmp.Compare(a[0], b[0]) })
	if (len(c.alike)+1)*len(c.Offers) > mostAlike {
		clear(c.alike)
	}
	c.alike[name] = out
	return out
}

// divide divides sets of offers by what is known of a label, and appends the parts to out.
// They are in all, which is as long as there are offers.
func divide(sets [][]int32, s *Spelling, all []int32, out [][]int32) [][]int32 {
	size := make([]int, len(s.Labels)+1) // by label; the first is none
	into := make([][]int32, len(size))
	for _, offers := range sets {
		for _, o := range offers {
			size[s.Of[o]+1]++
		}
		for _, o := range offers {
			of := s.Of[o] + 1
			if n := size[of]; n > 0 {
				into[of], all, size[of] = all[:0:n], all[n:], 0
				out = append(out, into[of][:n])
			}
			into[of] = append(into[of], o)
		}
	}
	return out
}
