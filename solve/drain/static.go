package drain

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"karpenter/model"
)

// static replaces drifted nodes of static pools, each by one launch straight from
// its pool's template, whatever pods there are, so that the number of nodes stays
// what the pool asks for. Of each pool, nodes go without pods first, then those
// that drifted first, as many as all of these allow:
//
//   - its budget for drift;
//   - its limit of nodes, which what is leaving counts towards, and what its
//     scale-up is still to bring: replacements come before the node goes;
//   - its replicas: a pool that has too many nodes is scaled down first. Nodes
//     of commands under way do not count as too many.
func (r *round) static() {
	drifted := r.driftedOfStatic()
	for i := range r.given.Pools {
		p := &r.given.Pools[i]
		if len(drifted[p.Name]) == 0 {
			continue
		}
		left := r.turnover(p)
		for _, site := range drifted[p.Name] {
			n := &r.s.Nodes[site]
			if cause, why := r.holds(n); why != "" {
				r.keep(n, model.Drifted, cause, why)
			} else if left.why == "" && !r.allowed(model.Drifted, site) {
				r.overBudget(n, model.Drifted)
			} else if c, cause, why := r.staged(n, model.Drifted, left); why != "" {
				r.keep(n, model.Drifted, cause, why)
			} else {
				r.accept(c, []int{site}, nil)
			}
		}
	}
}

// driftedOfStatic returns by pool the sites of the drifted nodes of static
// pools, in the order in which they are to go.
func (r *round) driftedOfStatic() map[string][]int {
	out := map[string][]int{}
	for i := range r.given.Nodes {
		n := &r.s.Nodes[i]
		pool, known := r.pools[n.Pool]
		if known && r.given.Pools[pool].Static != nil && n.Claim != "" && n.Initialized && !n.Deleting && !n.Disruption.Drifted.IsZero() {
			out[n.Pool] = append(out[n.Pool], i)
		}
	}
	for _, sites := range out {
		slices.SortStableFunc(sites, func(a, b int) int {
			x, y := &r.s.Nodes[a], &r.s.Nodes[b]
			return cmp.Or(r.gives(x)-r.gives(y), cmp.Compare(min(pods(x), 1), min(pods(y), 1)), x.Disruption.Drifted.Compare(y.Disruption.Drifted))
		})
	}
	return out
}

// gives returns 0 for nodes that leave a slot in a full reservation, which go
// first where that is what replacements wait for, and 1 for others.
func (r *round) gives(n *model.Node) int {
	p := &r.given.Pools[r.pools[n.Pool]]
	if r.policy.TerminateFirstDrift && isReserved(n) && slices.ContainsFunc(fullOfferings(p), func(o *model.Offering) bool { return takesFrom(n, o) }) {
		return 0
	}
	return 1
}

// holds returns what about the node itself keeps it.
func (r *round) holds(n *model.Node) (model.Cause, string) {
	got, receives := r.receiving[n.Name]
	switch d := &n.Disruption; {
	case d.Blocked != "":
		return model.ByNode, d.Blocked
	case d.Held != "" && !d.Deadline:
		return model.ByNode, d.Held
	case receives && got.buffer == "":
		return model.ByUse, use(got)
	}
	return "", ""
}

// turnover is what a static pool lets be replaced of its nodes.
type turnover struct {
	cause  model.Cause // why none of them
	why    string      // "" = some may be, within budgets
	room   int         // how many
	full   string      // why there is no more
	launch model.Launch
	// reservations are what the template allows, if nothing can be launched
	// because they are all full.
	reservations []*model.Offering
}

// turnover returns what is left of what the pool lets be replaced.
func (r *round) turnover(p *model.Pool) *turnover {
	if r.turns == nil {
		r.turns = map[string]*turnover{}
	}
	if r.turns[p.Name] == nil {
		r.turns[p.Name] = turnovers(p)
	}
	return r.turns[p.Name]
}

func turnovers(p *model.Pool) *turnover {
	out := &turnover{room: math.MaxInt, launch: fromTemplate(p), reservations: fullOfferings(p)}
	st := p.Static
	switch {
	case p.Unavailable != "" && p.Unavailable != "static":
		out.cause, out.why = model.ByPolicy, fmt.Sprintf("nodepool %s is %s", p.Name, p.Unavailable)
	case st.Active > st.Replicas:
		out.cause, out.why = model.ByPolicy, fmt.Sprintf("nodepool %s is scaled down first: it has %d nodes for %d replicas", p.Name, st.Active, st.Replicas)
	}
	for _, l := range p.Limits {
		if l.Resource == model.Nodes {
			missing := max(st.Replicas-st.Active-st.Pending, 0)
			out.room = int(l.Max) - st.Active - st.Leaving - st.Pending - missing
			out.full = fmt.Sprintf("the limit nodes=%d of nodepool %s leaves no room for its replacement", l.Max, p.Name)
		}
	}
	return out
}

// fromTemplate returns a launch of whatever the pool's template allows. It
// counts on the cheapest offering there is now; with none it has no Type.
func fromTemplate(p *model.Pool) model.Launch {
	out := model.Launch{Pool: p.Name, Requirements: p.Requirements}
	for _, t := range p.Types {
		if _, ok := p.Requirements.Intersects(t.Requirements); !ok {
			continue
		}
		for i := range t.Offerings {
			o := &t.Offerings[i]
			if _, ok := p.Requirements.Intersects(o.Requirements); !ok || !o.Available || out.Type != "" && o.Price >= out.Price {
				continue
			}
			out.Type, out.Zone, out.CapacityType, out.Price = t.Name, o.Zone, o.CapacityType, o.Price
		}
	}
	return out
}
