// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"fmt"
	"slices"
	"strings"

	"karpenter/model"
)

// Why says in words why none of the types, given by their devices, has what the
// claims of one pod need: the first request that no type can meet, with how many
// devices each selector leaves, or what keeps requests apart that could be met alone.
func (b *Book) Why(types [][]model.DevicePool, claims []model.DeviceClaim) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var stocks []*Stock
	devices := 0
	for _, pools := range types {
		if s := b.stock(pools); len(s.devices)+len(s.broken) > 0 && !slices.Contains(stocks, s) {
			stocks = append(stocks, s)
			devices += len(s.devices)
		}
	}
	if len(stocks) == 0 {
		return "none of these types has devices; a driver's devices are known from the provider, or from nodes that have them"
	}
	for _, s := range stocks {
		if devices == 0 {
			return fmt.Sprintf("pool %s of %s gives nothing: %s", s.broken[0].Name, s.broken[0].Driver, s.broken[0].Broken)
		}
	}
	set := b.set(claims)
	for i := range set.claims {
		c := &set.claims[i]
		for j := range c.requests {
			alone := *c
			alone.requests, alone.constraints = c.requests[j:j+1], nil
			if b.anyFinds(stocks, &Set{claims: []claim{alone}}) == none {
				return b.whyNot(stocks, devices, c, &c.requests[j])
			}
		}
	}
	for i := range set.claims {
		c := set.claims[i]
		switch b.anyFinds(stocks, &Set{claims: []claim{c}}) {
		case found:
			continue
		case tooLong:
			return fmt.Sprintf("claim %s: each of its %d requests has devices; %s", c.Name, len(c.requests), TooLong)
		}
		for k := range c.constraints {
			without := c
			without.constraints = slices.Delete(slices.Clone(c.constraints), k, k+1)
			if b.anyFinds(stocks, &Set{claims: []claim{without}}) == found {
				return fmt.Sprintf("claim %s: each request has devices, but no type has enough of them with %s", c.Name, c.constraints[k])
			}
		}
		return fmt.Sprintf("claim %s: each of its %d requests has devices, but no type has enough for all of them together", c.Name, len(c.requests))
	}
	if b.anyFinds(stocks, set) == tooLong {
		return fmt.Sprintf("each of %d claims has devices; %s", len(set.claims), TooLong)
	}
	return fmt.Sprintf("each of %d claims has devices, but no type has enough for all of them together", len(set.claims))
}

// TooLong is what Why says if a search ended for want of steps.
const TooLong = "the search whether some type has enough for all of them together was too long"

// String prints the constraint for people.
func (k constraint) String() string {
	if k.distinct {
		return "different values of " + k.attribute
	}
	return "the same value of " + k.attribute
}

// anyFinds returns found if some stock has devices for the set, others not there; tooLong if
// that is not known, or none.
func (b *Book) anyFinds(stocks []*Stock, set *Set) outcome {
	best := none
	for _, s := range stocks {
		switch how, _ := b.find(s.start.clone(), set); how {
		case found:
			return found
		case tooLong:
			best = tooLong
		}
	}
	return best
}

// whyNot says why no stock meets the request.
func (b *Book) whyNot(stocks []*Stock, devices int, c *claim, r *request) string {
	var ways []string
	for _, w := range r.ways {
		ways = append(ways, b.wayTold(stocks, devices, w))
	}
	return fmt.Sprintf("claim %s, request %s", c.Name, strings.Join(ways, "; "))
}

// wayTold says how many devices each selector of a way leaves, and what of the rest
// is in the way.
func (b *Book) wayTold(stocks []*Stock, devices int, w *way) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s of DeviceClass %s: %d devices of these types", w.name, w.Class, devices)
	left, fail := 0, ""
	for n := range len(w.Selectors) {
		left = 0
		part := model.DeviceWay{Selectors: w.Selectors[:n+1]}
		for _, s := range stocks {
			for i := range s.devices {
				switch v, at := b.judge(&part, s.devices[i].Kind); {
				case v == yes:
					left++
				case v == fails && at == n:
					fail = fmt.Sprintf(" (it fails on %s)", s.devices[i].Name)
				}
			}
		}
		fmt.Fprintf(&out, " → %d after %s%s", left, w.Selectors[n], fail)
		if left == 0 {
			return out.String()
		}
	}
	free, most := 0, 0
	for _, s := range stocks {
		here := 0
		for i := range s.devices {
			v, _ := b.judge(w.DeviceWay, s.devices[i].Kind)
			if _, ok := asked(s.devices[i].Kind, w.Takes); v == yes && ok && !tainted(s.devices[i].Taints, w.Tolerations) {
				here++
			}
		}
		free, most = free+here, max(most, here)
	}
	if free < left || len(w.Selectors) == 0 && free < devices {
		fmt.Fprintf(&out, " → %d without taints that it does not tolerate and with the capacity that it asks for", free)
	}
	if !w.All && free > 0 {
		fmt.Fprintf(&out, "; at most %d on one node, and it asks for %d", most, w.Count)
	}
	return out.String()
}

// axisName is what the names of all axes begin with. No resource has a name with
// a blank.
const axisName = "devices "

// Plain returns how many of the names are those of resources that are no devices.
func Plain(names []string) int {
	if i := slices.IndexFunc(names, func(n string) bool { return strings.HasPrefix(n, axisName) }); i >= 0 {
		return i
	}
	return len(names)
}
