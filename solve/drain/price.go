// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"fmt"
	"iter"
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
	var lots []lot
	for i := 0; i < len(c.Launches); i = t.Alike(i) {
		if len(c.Launches[i].MinValues) > 0 {
			o.blamed = c.Launches[i].Pool
			return model.ByPolicy, "minValues would have to be relaxed"
		}
		if ask.allSpot(o.sites) && !ask.policy.SpotToSpot && slices.Contains(c.Launches[i].CapacityTypes, capacitySpot) {
			return model.ByPolicy, noSpotToSpot
		}
		lots = append(lots, lot{t.Menu(i), c.Launches[i:t.Alike(i)], ""})
	}
	why := ask.afford(o, lots, most)
	if why == "" {
		return "", ""
	}
	for i := range lots {
		lots[i] = lots[i].inZone()
	}
	if ask.afford(o, lots, most) == "" {
		return "", ""
	}
	return model.ByPrice, why
}

// lot is launches that are the same but for their pods.
type lot struct {
	menu
	launches []model.Launch
	zone     string // that they are bound to; "" = none
}

// menu is what a launch may become.
type menu interface {
	Choices(capacityType, zone string) iter.Seq[pack.Choice]
}

// inZone returns the lot bound to the zone that it is planned in.
func (l lot) inZone() lot {
	zone := l.launches[0].Zone
	bound := l.launches[0].Requirements.And(model.NewRequirement(model.LabelZone, model.In, zone))
	launches := slices.Clone(l.launches)
	for i := range launches {
		launches[i].Requirements = bound
	}
	return lot{l.menu, launches, zone}
}

// afford has the launches list what they can be for at most most together, or
// returns why there is nothing.
func (ask *inquiry) afford(o *offer, lots []lot, most model.Price) string {
	kinds, least, slack, count := make([]string, len(lots)), make([]model.Price, len(lots)), most, 0
	for i, lot := range lots {
		if kinds[i], least[i] = lot.cheapest(); kinds[i] == "" {
			return "no cheaper place: no offering is available in one zone alone"
		}
		slack -= least[i] * model.Price(len(lot.launches))
		count += len(lot.launches)
	}
	if slack < 0 {
		return o.tooDear(most - slack)
	}
	spot := ask.allSpot(o.sites) && len(o.sites) == 1
	o.alike = nil
	var launches []model.Launch
	savings := o.command.Cost
	for i, lot := range lots {
		menu := lot.within(kinds[i], least[i]+slack/model.Price(count))
		if !o.whole { // of a unit, no node can be kept
			var alike []int
			if menu, alike = ask.unlike(menu, o.sites); len(menu) == 0 {
				o.alike = append(o.alike, alike...)
			}
			if len(o.alike) > 0 {
				continue // which nodes stand in the way of the other launches
			}
		}
		l := lot.launches[0]
		if spot && len(menu) > 0 && menu[0].CapacityType == capacitySpot {
			if len(menu) < mostSpot {
				return fmt.Sprintf("SpotToSpotConsolidation requires %d cheaper instance type options than the current candidate to consolidate, got %d", mostSpot, len(menu))
			}
			menu = ask.cut(&l, menu)
		}
		if why := ask.settle(&l, menu); why != "" {
			if len(menu) > 0 {
				o.blamed = l.Pool
			}
			return why
		}
		for j := range lot.launches {
			l.Pods = lot.launches[j].Pods
			launches, savings = append(launches, l), savings-l.Price
		}
	}
	if len(o.alike) > 0 {
		return noneCheaper
	}
	o.command.Launches, o.command.Savings = launches, savings
	return ""
}

// The capacity types, in the order a launch prefers them.
const (
	capacityReserved = "reserved"
	capacitySpot     = "spot"
	capacityOnDemand = "on-demand"
)

const noneCheaper = "no cheaper place: every type that would do costs too much, or is what one of the nodes is already"

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

// cheapest returns the first of the capacity types that the launches prefer which they may
// become instances of, and what they cost at worst as the type for which that is least: the
// provider chooses the zone.
func (l *lot) cheapest() (capacityType string, worst model.Price) {
	for _, capacityType := range []string{capacityReserved, capacitySpot, capacityOnDemand} {
		if !slices.Contains(l.launches[0].CapacityTypes, capacityType) {
			continue
		}
		least := unlimited
		for c := range l.Choices(capacityType, l.zone) {
			least = min(least, c.Worst)
		}
		if least < unlimited {
			return capacityType, least
		}
	}
	return "", 0
}

// within returns what the launches may become as instances of the capacity type for at most
// most at worst, cheapest first.
func (l *lot) within(capacityType string, most model.Price) []pack.Choice {
	var out []pack.Choice
	for c := range l.Choices(capacityType, l.zone) {
		if c.Worst <= most {
			out = append(out, c)
		}
	}
	slices.SortStableFunc(out, func(a, b pack.Choice) int { return cmp.Compare(a.Price, b.Price) })
	return out
}

// unlike leaves out types that some of the nodes are already, and all that cost as
// much: keeping that node would do as well. If that is all, it
// also returns those of the nodes that have to stay for something to be left.
func (ask *inquiry) unlike(menu []pack.Choice, sites []int) (rest []pack.Choice, alike []int) {
	if len(sites) == 1 {
		return menu, nil
	}
	limit := unlimited
	for _, i := range sites {
		kind, _ := ask.s.Nodes[i].Labels.Value(model.LabelInstanceType)
		if slices.ContainsFunc(menu, func(c pack.Choice) bool { return c.Type == kind }) {
			limit, alike = min(limit, ask.s.Nodes[i].Price), append(alike, i)
		}
	}
	least := unlimited
	for _, c := range menu {
		least = min(least, c.Worst)
	}
	alike = slices.DeleteFunc(alike, func(i int) bool { return ask.s.Nodes[i].Price > least })
	return slices.DeleteFunc(menu, func(c pack.Choice) bool { return c.Worst >= limit }), alike
}

// cut leaves the cheapest types, as many as minValues need.
func (ask *inquiry) cut(l *model.Launch, menu []pack.Choice) []pack.Choice {
	n := mostSpot
	for n < len(menu) && ask.short(l, menu[:n]) != "" {
		n++
	}
	return menu[:min(n, len(menu))]
}

// settle has the launch list these types, or returns why it cannot.
func (ask *inquiry) settle(l *model.Launch, menu []pack.Choice) string {
	if len(menu) == 0 {
		return noneCheaper
	}
	if key := ask.short(l, menu); key != "" {
		return "minValues of " + key + " are not met by the types that are cheaper"
	}
	l.Types = make([]string, len(menu))
	for i, c := range menu {
		l.Types[i] = c.Type
	}
	l.CapacityTypes = []string{menu[0].CapacityType}
	l.Type, l.Zone, l.CapacityType, l.Price = menu[0].Type, menu[0].Zone, menu[0].CapacityType, menu[0].Price
	return ""
}

// short returns the label of which the types do not span as many values as the
// launch must.
func (ask *inquiry) short(l *model.Launch, menu []pack.Choice) string {
	pool := &ask.s.Pools[ask.pools[l.Pool]]
	for _, demand := range l.Requirements {
		if demand.MinValues == 0 {
			continue
		}
		seen := map[string]bool{}
		for _, t := range pool.Types {
			if !slices.ContainsFunc(menu, func(c pack.Choice) bool { return c.Type == t.Name }) {
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
