// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"karpenter/model"
)

// shownValues is how many known values of a label a hint lists.
const shownValues = 5

// Endless is the amount that types have of a resource they do not limit.
const Endless = 1 << 50

// labelHint says what would help when none of the offers left meets r.
func (c *Catalogue) labelHint(pool int, left Bits, s *model.Shape, r model.Requirement) string {
	if _, _, ok := contradiction(s, r); ok {
		return "no node has both; drop one of them from the pod"
	}
	p := &c.Pools[pool]
	own, defined := p.Requirements.Get(r.Key)
	here := c.values(left, own)
	if r.Operator() == model.In {
		if why := c.unknown(pool, r, here); why != "" {
			return why
		}
	}
	switch {
	case r.Key == model.LabelHostname && r.Operator() == model.DoesNotExist:
		return "every node has one; remove this requirement"
	case r.Key == model.LabelHostname:
		return "a new node has no name before it is launched; remove this requirement"
	case len(here) == 0 && !defined && !c.wellKnown.Has(r.Key):
		return c.undefined(pool, r.Key)
	case len(here) == 0:
		return "the NodePool has " + own.String()
	}
	if r.Operator() == model.In {
		return "there it is " + listed(here) + "; ask for that"
	}
	return "there it is " + listed(here)
}

// wording names r; when nothing meets it because two demands of the pod
// contradict each other, it names these.
func wording(s *model.Shape, r model.Requirement) string {
	if selector, term, ok := contradiction(s, r); ok {
		return fmt.Sprintf("nodeSelector %s and node affinity %s", selector, term)
	}
	return r.String()
}

// contradiction returns the two demands of the pod of which r, which no value
// meets, is what is left.
func contradiction(s *model.Shape, r model.Requirement) (selector, term model.Requirement, found bool) {
	selector, ok := s.Selector.Get(r.Key)
	if !ok || r.Operator() != model.DoesNotExist || selector.Operator() == model.DoesNotExist {
		return selector, term, false
	}
	for _, alternative := range s.Terms {
		if demand, ok := alternative.Get(r.Key); ok && !demand.Intersects(selector) {
			return selector, demand, true
		}
	}
	return selector, term, false
}

// unknown says what is wrong with the values r asks for when what the pool
// demands itself, or a misspelling, is the reason; "" when it is neither.
func (c *Catalogue) unknown(pool int, r model.Requirement, here []string) string {
	p := &c.Pools[pool]
	own, _ := p.Requirements.Get(r.Key)
	offered := c.known(pool, r.Key)
	for _, v := range r.Values {
		if slices.Contains(offered, v) && !own.Has(v) {
			return fmt.Sprintf("the NodePool's requirement %s excludes %s; allow it there, or ask for what it allows", own, v)
		}
	}
	for _, v := range r.Values {
		if slices.Contains(offered, v) && len(here) > 0 {
			return fmt.Sprintf("the steps above leave %s only; ask for that, or relax one of them", listed(here))
		}
	}
	for _, v := range r.Values {
		pools := c.known(allPools, r.Key)
		if slices.Contains(pools, v) {
			continue
		}
		if meant, ok := nearest(v, pools); ok {
			hint := fmt.Sprintf("nothing has %s; did you mean %s?", v, meant)
			if !slices.Contains(here, meant) && len(here) > 0 {
				hint += " There it is " + listed(here)
			}
			return hint
		}
	}
	return ""
}

// undefined says what to do about a label that the pool does not define.
func (c *Catalogue) undefined(pool int, key string) string {
	if meant, ok := nearest(key, c.keys(pool)); ok {
		return fmt.Sprintf("nothing defines label %s; did you mean %s?", key, meant)
	}
	return fmt.Sprintf("the NodePool does not define label %s; add it to the labels or requirements of its template", key)
}

// keys returns the labels that the pool, its types or Karpenter define, sorted.
func (c *Catalogue) keys(pool int) []string {
	return c.remembered(poolKey{pool: pool}, func() []string {
		p := &c.Pools[pool]
		keys := slices.Collect(maps.Keys(c.wellKnown))
		for _, r := range p.Requirements {
			keys = append(keys, r.Key)
		}
		for i := p.Types.From; i < p.Types.To; i++ {
			for _, r := range c.Types[i].Requirements {
				keys = append(keys, r.Key)
			}
		}
		return keys
	})
}

// remembered returns what words returned for the same key before, sorted. No label has
// the empty key, which stands for the labels themselves.
func (c *Catalogue) remembered(key poolKey, words func() []string) []string {
	out, ok := c.words[key]
	if !ok {
		out = sortedUnique(words())
		c.words[key] = out
	}
	return out
}

func listed(values []string) string {
	if len(values) > shownValues {
		return fmt.Sprintf("%s or %d others", strings.Join(values[:shownValues], ", "), len(values)-shownValues)
	}
	return strings.Join(values, ", ")
}

// allPools stands for all pools, with what they demand themselves.
const allPools = -1

// known returns the values that types and offers of the pool have for key, whatever the
// pool demands, sorted.
func (c *Catalogue) known(pool int, key string) []string {
	return c.remembered(poolKey{pool, key}, func() []string {
		if pool != allPools {
			return c.values(c.in(c.Pools[pool].Offers), model.Requirement{Key: key, Complement: true})
		}
		var out []string
		for i := range c.Pools {
			out = append(out, c.known(i, key)...)
			if own, ok := c.Pools[i].Requirements.Get(key); ok && !own.Complement {
				out = append(out, own.Values...)
			}
		}
		return out
	})
}

// launches reports whether a type or an offer of some pool has a value for key.
func (c *Catalogue) launches(key string) bool {
	for i := range c.Pools {
		if len(c.known(i, key)) > 0 {
			return true
		}
	}
	return false
}

// values returns the values nodes launched from the offers can have for the key
// of own, which is what their pool demands of it, sorted.
func (c *Catalogue) values(left Bits, own model.Requirement) []string {
	seen := map[string]bool{}
	add := func(r model.Requirement, defined bool) {
		if !defined || r.Complement {
			return
		}
		for _, v := range r.Values {
			seen[v] = true
		}
	}
	add(own, true)
	last := -1 // type that was added
	for i := range left.All() {
		o, ok := c.Offers[i].Requirements.Get(own.Key)
		switch t := c.Offers[i].Type; {
		case ok:
			add(o, ok)
		case t != last:
			last = t
			add(c.Types[t].Requirements.Get(own.Key))
		}
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(seen)), func(v string) bool { return !own.Has(v) })
}

// sizeHint says what the largest of the offers left have of the resources that
// s requests too much of.
func (c *Catalogue) sizeHint(pool int, left Bits, s *model.Shape, names []string) string {
	var parts []string
	help := "; have the NodePool allow types that do"
	for resource, want := range s.Requests {
		largest, most := c.largest(left, resource)
		if want <= most {
			continue
		}
		name := names[resource]
		if most == 0 {
			parts = append(parts, "none of them has "+name)
		} else {
			help = "; request less, or have the NodePool allow larger types"
			parts = append(parts, fmt.Sprintf("the largest of them for %s, %s, has %s for pods", name, largest, model.FormatQuantity(resource, most)))
		}
		if other, more := c.largest(c.in(c.Pools[pool].Offers), resource); more >= want {
			help = "; request less, or relax these steps"
			has := "no limit"
			if more < Endless {
				has = model.FormatQuantity(resource, more)
			}
			parts = append(parts, fmt.Sprintf("%s, which the steps above exclude, has %s", other, has))
		}
	}
	if len(parts) > 0 {
		return strings.Join(parts, "; ") + help
	}
	if row := c.closest(left, s); row != nil {
		return fmt.Sprintf("none has all of it at once; %s comes closest with %s for pods; request less of the rest", row.Name, onlyOf(row.Free, s.Requests).Format(names))
	}
	return "the daemonsets of its nodes take more than any of them has"
}

// largest returns the type among the offers with most of a resource free for
// pods, and how much that is.
func (c *Catalogue) largest(of Bits, resource int) (name string, most int64) {
	if c.most.At(resource) <= 0 {
		return "", 0
	}
	last := -1
	for i := range of.All() {
		if t := c.Offers[i].Type; t != last { // offers of a type follow each other
			last = t
			if row := &c.Types[t]; row.Free.At(resource) > most {
				name, most = row.Name, row.Free.At(resource)
			}
		}
	}
	return name, most
}

// closest returns the type among the offers that has enough of most of the
// resources s requests, and of the others the largest part; nil when daemons
// overdraw them all.
func (c *Catalogue) closest(of Bits, s *model.Shape) *TypeRow {
	var best *TypeRow
	most := 0.0
	for i := range of.All() {
		row := &c.Types[c.Offers[i].Type]
		if (model.Resources{}).Fits(row.Free) && part(s.Requests, row.Free) > most {
			best, most = row, part(s.Requests, row.Free)
		}
	}
	return best
}

// part says how much of want there is in free: one for each resource there is
// enough of, and the least part of any.
func part(want, free model.Resources) float64 {
	enough, least := 0.0, 1.0
	for i, w := range want {
		if free.At(i) >= w {
			enough++
		} else {
			least = min(least, float64(free.At(i))/float64(w))
		}
	}
	return enough + least
}

// onlyOf returns the quantities of r that s has, too.
func onlyOf(r, s model.Resources) model.Resources {
	out := make(model.Resources, len(r))
	for i := range r {
		if s.At(i) > 0 {
			out[i] = r[i]
		}
	}
	return out
}
