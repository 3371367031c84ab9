// SPDX-License-Identifier: Apache-2.0

// Package upstream takes nodes away by the rules of Karpenter upstream, to compare
// with: consolidationPolicy WhenEmptyOrUnderutilized, and Balanced. It knows the
// rules alone (spec 40, sections 6 and 9). Where upstream simulates a
// scheduler, package solve places the pods, with as few new nodes as it can; empty
// and drifted nodes go as they do there. A pass takes one command, for any saving,
// and pods that are ending hold their room until they have gone.
package upstream

import (
	"cmp"
	"math"
	"slices"

	"karpenter/model"
	"karpenter/solve"
)

const (
	mostTogether = 100
	mostSpot     = 15
	leastScore   = 0.5
)

// Rules plans as upstream does. The zero value is ready.
type Rules struct {
	planner, simulator solve.Planner
	settled            *model.Node // the first of the nodes for which there was no command
	nodes              int         // how many those were
}

// Place implements wiring.Planner.
func (r *Rules) Place(s *model.Snapshot, p model.Policy) *model.Plan {
	return r.planner.Place(crowded(s), p)
}

// Decide implements wiring.Planner.
func (r *Rules) Decide(s *model.Snapshot, p model.Policy) *model.Plan {
	given := s
	s = crowded(s)
	tame := *s
	tame.Pools = slices.Clone(s.Pools)
	for i := range tame.Pools {
		tame.Pools[i].Disruption.Policy = model.WhenEmpty
	}
	plan := r.planner.Decide(&tame, p)
	plan.Stays = nil
	if len(plan.Commands) > 0 || len(plan.Launches) > 0 || len(s.Pending) > 0 {
		return plan
	}
	if len(s.Nodes) == 0 || len(s.Intents) == 0 && r.settled == &given.Nodes[0] && r.nodes == len(given.Nodes) {
		return plan // nothing has changed
	}
	c := &consolidation{Rules: r, s: s, policy: p, left: map[string]int{}}
	for i := range s.Pools {
		c.left[s.Pools[i].Name] = s.Pools[i].Disruption.Allowed[model.Underutilized]
	}
	if command := c.command(); command != nil {
		plan.Commands = append(plan.Commands, *command)
		r.settled = nil
	} else {
		r.settled, r.nodes = &given.Nodes[0], len(given.Nodes)
	}
	return plan
}

// crowded returns the Snapshot with the pods that are ending as they are.
func crowded(s *model.Snapshot) *model.Snapshot {
	out := *s
	out.Nodes = slices.Clone(s.Nodes)
	for i := range out.Nodes {
		out.Nodes[i].Leaving = nil
	}
	return &out
}

// consolidation is one look for a command.
type consolidation struct {
	*Rules
	s      *model.Snapshot
	policy model.Policy
	left   map[string]int // what budgets leave, by pool
}

// command returns what is being confirmed, if it is still good, else a command for
// several nodes, else one for a single node, else nil.
func (c *consolidation) command() *model.Command {
	all := c.candidates()
	for _, in := range c.s.Intents {
		sites := slices.DeleteFunc(slices.Clone(all), func(i int) bool { return !slices.Contains(in.Claims, c.s.Nodes[i].Claim) })
		if in.Reason == model.Underutilized && len(sites) == len(in.Claims) {
			if command := c.try(sites); command != nil {
				return command
			}
		}
	}
	var some []int
	for _, i := range all {
		if pool := c.s.Nodes[i].Pool; c.left[pool] > 0 {
			c.left[pool]--
			some = append(some, i)
		}
	}
	if command := c.several(some); command != nil {
		return command
	}
	for _, i := range some {
		if command := c.try([]int{i}); command != nil {
			return command
		}
	}
	return nil
}

// several searches prefixes of the candidates by halving.
func (c *consolidation) several(sites []int) *model.Command {
	var found *model.Command
	for low, high := 1, min(len(sites)-1, mostTogether); low <= high; {
		mid := (low + high) / 2
		if command := c.try(sites[:mid+1]); command != nil {
			found, low = command, mid+1
		} else {
			high = mid - 1
		}
	}
	return found
}

// candidates are the nodes that may go, those first that cost most for what they
// disrupt.
func (c *consolidation) candidates() []int {
	var out []int
	for i := range c.s.Nodes {
		n := &c.s.Nodes[i]
		pool := c.pool(n.Pool)
		if pool == nil || pool.Static != nil || pool.Disruption.Never || pool.Disruption.Policy == model.WhenEmpty {
			continue
		}
		d := &n.Disruption
		if n.Claim != "" && n.Initialized && !n.Deleting && n.Price > 0 && !d.Empty && d.Consolidatable && d.Blocked == "" && d.Held == "" {
			out = append(out, i)
		}
	}
	ratio := func(i int) float64 { return float64(c.s.Nodes[i].Price) / c.s.Nodes[i].Disruption.Cost }
	slices.SortStableFunc(out, func(a, b int) int { return cmp.Compare(ratio(b), ratio(a)) })
	return out
}

func (c *consolidation) pool(name string) *model.Pool {
	for i := range c.s.Pools {
		if c.s.Pools[i].Name == name {
			return &c.s.Pools[i]
		}
	}
	return nil
}

// try returns the command that takes the nodes away, or nil if there is none.
func (c *consolidation) try(sites []int) *model.Command {
	sites = slices.Sorted(slices.Values(sites))
	what := *c.s
	what.Nodes, what.Intents = slices.Clone(c.s.Nodes), nil
	command := &model.Command{Reason: model.Underutilized}
	for i := range what.Nodes {
		n := &what.Nodes[i]
		n.Closed = n.Closed || n.Disruption.Settling || n.Claim != "" && !n.Initialized
	}
	for _, i := range sites {
		n := &what.Nodes[i]
		command.Nodes = append(command.Nodes, model.Target{Node: n.Name, Claim: n.Claim})
		command.Cost += n.Price
		what.Pending = append(what.Pending, n.Movable...)
		n.Deleting, n.Closed, n.Residents, n.Movable = true, true, nil, nil
	}
	policy := c.policy
	policy.RelaxMinValues, policy.NodeCountPremium = false, 1000
	plan := c.simulator.Place(&what, policy)
	if len(plan.Verdicts) > 0 || len(plan.Launches) > 1 {
		return nil
	}
	command.Moves, command.Savings = plan.Placements, command.Cost
	if len(plan.Launches) == 1 {
		l := plan.Launches[0]
		if !c.cheaper(&l, sites, command.Cost) {
			return nil
		}
		command.Launches, command.Savings = []model.Launch{l}, command.Cost-l.Price
	}
	if !c.balanced(command, sites) {
		return nil
	}
	return command
}

// choice is a type that a replacement may become.
type choice struct {
	name        string
	best, worst model.Price
	zone        string // of the best
}

// cheaper leaves of what the launch may become the types that cost less than the
// nodes wherever they are launched, and reports whether there is one.
func (c *consolidation) cheaper(l *model.Launch, sites []int, cost model.Price) bool {
	var class string
	for _, ct := range []string{model.Reserved, model.Spot, model.OnDemand} {
		if class == "" && slices.Contains(l.CapacityTypes, ct) {
			class = ct
		}
	}
	spot := class == model.Spot && !slices.ContainsFunc(sites, func(i int) bool {
		ct, _ := c.s.Nodes[i].Labels.Value(model.LabelCapacityType)
		return ct != model.Spot
	})
	if spot && !c.policy.SpotToSpot {
		return false
	}
	limit := cost
	if len(sites) > 1 {
		limit = c.below(l, sites, cost)
	}
	menu := slices.DeleteFunc(c.choices(l, class), func(x choice) bool { return x.worst >= limit })
	if len(menu) == 0 || spot && len(sites) == 1 && len(menu) < mostSpot {
		return false
	}
	if spot && len(sites) == 1 {
		menu = menu[:mostSpot]
	}
	l.Types = nil
	for _, x := range menu {
		l.Types = append(l.Types, x.name)
	}
	l.CapacityTypes = []string{class}
	l.Type, l.Zone, l.CapacityType, l.Price = menu[0].name, menu[0].zone, class, menu[0].best
	return true
}

// below returns the price of the cheapest of the nodes whose type the launch may
// become: what costs as much would be the same node again.
func (c *consolidation) below(l *model.Launch, sites []int, limit model.Price) model.Price {
	for _, i := range sites {
		if kind, _ := c.s.Nodes[i].Labels.Value(model.LabelInstanceType); slices.Contains(l.Types, kind) {
			limit = min(limit, c.s.Nodes[i].Price)
		}
	}
	return limit
}

// choices returns the types of the launch that can be had as the capacity type,
// cheapest first.
func (c *consolidation) choices(l *model.Launch, class string) []choice {
	zones, bound := l.Requirements.Get(model.LabelZone)
	var out []choice
	for _, t := range c.pool(l.Pool).Types {
		if !slices.Contains(l.Types, t.Name) {
			continue
		}
		x := choice{name: t.Name, best: math.MaxInt64}
		for _, o := range t.Offerings {
			if !o.Available || o.CapacityType != class || bound && !zones.Has(o.Zone) {
				continue
			}
			if x.worst = max(x.worst, o.Price); o.Price < x.best {
				x.best, x.zone = o.Price, o.Zone
			}
		}
		if x.zone != "" {
			out = append(out, x)
		}
	}
	slices.SortStableFunc(out, func(a, b choice) int { return cmp.Compare(a.best, b.best) })
	return out
}

// balanced scores the command for the pools that ask for it, and reports whether
// they approve.
func (c *consolidation) balanced(command *model.Command, sites []int) bool {
	type sums struct{ price, disruption float64 }
	all, part := map[string]sums{}, map[string]sums{}
	add := func(to map[string]sums, n *model.Node) {
		to[n.Pool] = sums{to[n.Pool].price + float64(n.Price), to[n.Pool].disruption + n.Disruption.Cost}
	}
	for i := range c.s.Nodes {
		if n := &c.s.Nodes[i]; n.Claim != "" {
			add(all, n)
		}
	}
	var pools []string
	for _, i := range sites {
		n := &c.s.Nodes[i]
		if c.pool(n.Pool).Disruption.Policy == model.Balanced && !slices.Contains(pools, n.Pool) {
			pools = append(pools, n.Pool)
		}
		add(part, n)
	}
	for _, pool := range pools {
		savings := float64(command.Savings) * part[pool].price / float64(command.Cost) / all[pool].price
		disruption := part[pool].disruption / all[pool].disruption
		score := model.Score{Pool: pool, Value: savings / disruption, Savings: savings, Disruption: disruption}
		command.Scores = append(command.Scores, score)
		if score.Value < leastScore {
			return false
		}
	}
	return true
}
