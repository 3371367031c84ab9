// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"fmt"
	"slices"

	"karpenter/model"
	"karpenter/solve/fit"
	"karpenter/solve/pack"
)

// mostSpot is how many types a launch lists that replaces one spot node by
// another, and how many cheaper ones there must be: so the one that is launched
// is among the cheapest, and is not replaced again soon.
const mostSpot = 15

// cheaper settles what the launches of the offer may become, so that all of
// them together cost at most most whatever they become, or returns why there is
// no such thing. Where an expensive zone stands in the way, they are bound to the zones
// they are planned in.
func (ask *inquiry) cheaper(o *offer, t *pack.Trial, most model.Price) (model.Cause, string) {
	c := &o.command
	c.Savings, c.Launches = c.Cost, t.Launches
	if len(c.Launches) == 0 {
		return "", ""
	}
	var options [][]pack.Option
	for i := range c.Launches {
		if len(c.Launches[i].MinValues) > 0 {
			return model.ByPolicy, "minValues would have to be relaxed"
		}
		if ask.allSpot(o.sites) && !ask.policy.SpotToSpot && slices.Contains(c.Launches[i].CapacityTypes, capacitySpot) {
			return model.ByPolicy, noSpotToSpot
		}
		options = append(options, t.Options(i))
	}
	why := ask.afford(o, options, most)
	if why == "" {
		return "", ""
	}
	c.Launches = slices.Clone(t.Launches)
	for i := range c.Launches {
		l := &c.Launches[i]
		l.Requirements = l.Requirements.And(model.NewRequirement(model.LabelZone, model.In, l.Zone))
		for j := range options[i] {
			options[i][j].Quotes = slices.DeleteFunc(options[i][j].Quotes, func(q pack.Quote) bool { return q.Zone != l.Zone })
		}
	}
	if ask.afford(o, options, most) == "" {
		return "", ""
	}
	return model.ByPrice, why
}

// afford has the launches list what they can be for at most most together, or
// returns why there is nothing.
func (ask *inquiry) afford(o *offer, options [][]pack.Option, most model.Price) string {
	c := &o.command
	launches, savings := slices.Clone(c.Launches), c.Cost
	byWorst := func(a, b choice) int { return cmp.Compare(a.worst, b.worst) }
	menus, slack := make([][]choice, len(launches)), most
	for i := range launches {
		if menus[i] = choices(&launches[i], options[i]); len(menus[i]) == 0 {
			return "no cheaper place: no offering is available in one zone alone"
		}
		slack -= slices.MinFunc(menus[i], byWorst).worst
	}
	if slack < 0 {
		return o.tooDear(most - slack)
	}
	spot := ask.allSpot(o.sites) && len(o.sites) == 1
	for i := range launches {
		l := &launches[i]
		limit := slices.MinFunc(menus[i], byWorst).worst + slack/model.Price(len(launches))
		menu := slices.DeleteFunc(menus[i], func(x choice) bool { return x.worst > limit })
		if !o.whole { // of a unit, no node can be kept
			if menu, o.alike = ask.unlike(menu, o.sites); len(menu) > 0 {
				o.alike = nil
			}
		}
		if spot && len(menu) > 0 && menu[0].CapacityType == capacitySpot {
			if len(menu) < mostSpot {
				return fmt.Sprintf("SpotToSpotConsolidation requires %d cheaper instance type options than the current candidate to consolidate, got %d", mostSpot, len(menu))
			}
			menu = ask.cut(l, menu)
		}
		if why := ask.settle(l, menu); why != "" {
			return why
		}
		savings -= l.Price
	}
	c.Launches, c.Savings = launches, savings
	return ""
}

// The capacity types, in the order a launch prefers them.
const (
	capacityReserved = "reserved"
	capacitySpot     = "spot"
	capacityOnDemand = "on-demand"
)

const noSpotToSpot = "SpotToSpotConsolidation is disabled, can't replace a spot node with a spot node"

// spotOnly reports whether the nodes are spot nodes which only others could
// replace, and may not.
func (ask *inquiry) spotOnly(sites []int) bool {
	if ask.policy.SpotToSpot || !ask.allSpot(sites) {
		return false
	}
	catalogue := ask.memory.Catalogue(&ask.s)
	return !slices.ContainsFunc(catalogue.Pools, func(p fit.Pool) bool {
		for i := range p.Usable.All() {
			if catalogue.Offers[i].CapacityType == capacitySpot {
				return false
			}
		}
		return true
	})
}

func (ask *inquiry) allSpot(sites []int) bool {
	return !slices.ContainsFunc(sites, func(i int) bool {
		ct, _ := ask.s.Nodes[i].Labels.Value(model.LabelCapacityType)
		return ct != capacitySpot
	})
}

// choice is a type a launch may become, with what it costs at worst: the
// provider chooses the zone.
type choice struct {
	pack.Quote // the cheapest
	name       string
	worst      model.Price
}

// choices returns what the launch may become as the first of the capacity types
// that it prefers, cheapest first.
func choices(l *model.Launch, options []pack.Option) []choice {
	for _, ct := range []string{capacityReserved, capacitySpot, capacityOnDemand} {
		if !slices.Contains(l.CapacityTypes, ct) {
			continue
		}
		var out []choice
		for _, o := range options {
			c := choice{name: o.Type}
			for _, q := range o.Quotes {
				switch {
				case q.CapacityType != ct:
				case c.CapacityType == "":
					c.Quote, c.worst = q, q.Price
				default:
					c.worst = max(c.worst, q.Price)
				}
			}
			if c.CapacityType != "" {
				out = append(out, c)
			}
		}
		slices.SortStableFunc(out, func(a, b choice) int { return cmp.Compare(a.Price, b.Price) })
		return out
	}
	return nil
}

// unlike leaves out types that some of the nodes are already, and all that cost as
// much: keeping that node would do as well. It returns those nodes too.
func (ask *inquiry) unlike(menu []choice, sites []int) (rest []choice, alike []int) {
	if len(sites) == 1 {
		return menu, nil
	}
	limit := unlimited
	for _, i := range sites {
		kind, _ := ask.s.Nodes[i].Labels.Value(model.LabelInstanceType)
		if slices.ContainsFunc(menu, func(c choice) bool { return c.name == kind }) {
			limit, alike = min(limit, ask.s.Nodes[i].Price), append(alike, i)
		}
	}
	return slices.DeleteFunc(menu, func(c choice) bool { return c.worst >= limit }), alike
}

// cut leaves the cheapest types, as many as minValues need.
func (ask *inquiry) cut(l *model.Launch, menu []choice) []choice {
	n := mostSpot
	for n < len(menu) && ask.short(l, menu[:n]) != "" {
		n++
	}
	return menu[:min(n, len(menu))]
}

// settle has the launch list these types, or returns why it cannot.
func (ask *inquiry) settle(l *model.Launch, menu []choice) string {
	if len(menu) == 0 {
		return "no cheaper place: every type that would do costs too much, or is what one of the nodes is already"
	}
	if key := ask.short(l, menu); key != "" {
		return "minValues of " + key + " are not met by the types that are cheaper"
	}
	l.Types = make([]string, len(menu))
	for i, c := range menu {
		l.Types[i] = c.name
	}
	l.CapacityTypes = []string{menu[0].CapacityType}
	l.Type, l.Zone, l.CapacityType, l.Price = menu[0].name, menu[0].Zone, menu[0].CapacityType, menu[0].Price
	return ""
}

// short returns the label of which the types do not span as many values as the
// launch must.
func (ask *inquiry) short(l *model.Launch, menu []choice) string {
	pool := &ask.s.Pools[ask.pools[l.Pool]]
	for _, demand := range l.Requirements {
		if demand.MinValues == 0 {
			continue
		}
		seen := map[string]bool{}
		for _, t := range pool.Types {
			if !slices.ContainsFunc(menu, func(c choice) bool { return c.name == t.Name }) {
				continue
			}
			if demand.Key == model.LabelInstanceType {
				seen[t.Name] = true
				continue
			}
			if has, ok := t.Requirements.Get(demand.Key); ok {
				for _, v := range has.Intersect(demand).Values {
					seen[v] = true
				}
			}
		}
		if len(seen) < demand.MinValues {
			return demand.Key
		}
	}
	return ""
}
