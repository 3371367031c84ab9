package drain

import (
	"fmt"
	"slices"
	"strings"

	"karpenter/model"
	"karpenter/solve/pack"
)

// confirm looks again at the commands that are being confirmed, and keeps
// those that are still good.
func (r *round) confirm() {
	if len(r.given.Intents) == 0 {
		return
	}
	sites := map[string]int{}
	for i := range r.s.Nodes {
		if claim := r.s.Nodes[i].Claim; claim != "" {
			sites[claim] = i
		}
	}
	for _, intent := range r.given.Intents {
		for _, claim := range intent.Claims {
			r.intended[claim] = true
		}
	}
	defer clear(r.intended)
	for _, intent := range r.given.Intents {
		group := make([]int, 0, len(intent.Claims))
		for _, claim := range intent.Claims {
			if i, ok := sites[claim]; ok && r.eligible(&r.s.Nodes[i], intent.Reason) {
				group = append(group, i)
			}
		}
		if len(group) < len(intent.Claims) || !r.allowed(intent.Reason, group...) {
			continue
		}
		slices.Sort(group)
		switch intent.Reason {
		case model.Empty:
			r.remove(group[0])
		case model.Drifted:
			r.open(model.Drifted)
			r.replace(group[0])
		case model.Underutilized:
			r.open(model.Underutilized)
			if o := r.weigh(group); o.good() {
				r.take(o)
			}
		}
	}
}

// empty takes away the nodes that no pod needs.
func (r *round) empty() {
	for _, i := range r.candidates(model.Empty) {
		if !r.allowed(model.Empty, i) {
			r.overBudget(&r.s.Nodes[i], model.Empty)
			continue
		}
		r.remove(i)
	}
}

// remove takes an empty node away.
func (r *round) remove(site int) {
	n := &r.s.Nodes[site]
	r.accept(model.Command{Reason: model.Empty, Nodes: []model.Target{{Node: n.Name, Claim: n.Claim}}, Cost: n.Price, Savings: n.Price}, []int{site}, nil)
}

// drift takes away the nodes that are not what their pool asks for, each by
// itself, once there is a place for its pods.
func (r *round) drift() {
	candidates := r.candidates(model.Drifted)
	if len(candidates) == 0 {
		return
	}
	r.open(model.Drifted)
	for _, i := range candidates {
		if n := &r.s.Nodes[i]; !r.allowed(model.Drifted, i) {
			r.overBudget(n, model.Drifted)
		} else if got, receives := r.receiving[n.Name]; receives {
			r.keep(n, model.Drifted, model.ByUse, use(got))
		} else {
			r.replace(i)
		}
	}
}

// replace takes a drifted node away if its pods find places. Those on nodes that
// are drifted themselves are the last resort, since the pods would have to move
// again.
func (r *round) replace(site int) {
	t, pending := nothing(), r.s.Nodes[site].Movable
	if why := unplaceable(&r.s.Nodes[site]); why != "" {
		r.keep(&r.s.Nodes[site], model.Drifted, model.ByPlace, why)
		return
	}
	if len(pending) > 0 {
		t, pending = r.try([]int{site}, unlimited, r.policy)
		if len(t.Left) > 0 {
			r.close(func(n *model.Node) bool { return uninitialized(n) })
			t, pending = r.try([]int{site}, unlimited, r.policy)
			r.open(model.Drifted)
		}
	}
	n := &r.s.Nodes[site]
	if len(t.Left) > 0 {
		r.keep(n, model.Drifted, model.ByPlace, homeless(t))
		return
	}
	r.accept(model.Command{
		Reason: model.Drifted, Nodes: []model.Target{{Node: n.Name, Claim: n.Claim}},
		Moves: t.Moves, Launches: t.Launches, Cost: n.Price, Savings: n.Price - t.Cost,
	}, []int{site}, pending)
}

// unplaceable returns which pod of the node no plan can place, and why.
func unplaceable(n *model.Node) string {
	for i := range n.Movable {
		if refused := n.Movable[i].Shape.Refused; len(refused) > 0 && len(n.Movable[i].Pods) > 0 {
			return fmt.Sprintf("no other place is found for pod %s with %s", n.Movable[i].Pods[0].Key(), strings.Join(refused, ", "))
		}
	}
	return ""
}

func homeless(t *pack.Trial) string {
	text := fmt.Sprintf("no other place is found for pod %s", t.Left[0].Key())
	if more := len(t.Left) - 1; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// open closes the nodes that may not take pods of nodes that are taken away for
// the reason, and opens the others.
func (r *round) open(reason model.Reason) {
	r.close(func(n *model.Node) bool {
		switch {
		case uninitialized(n), r.intended[n.Claim]:
			return true
		case !n.Disruption.Drifted.IsZero() && (reason == model.Drifted || r.soonGone(n)):
			return true // the pods would have to move again
		}
		return reason == model.Underutilized && n.Disruption.Settling
	})
}

// soonGone reports whether drift will take the drifted node: nothing but its
// turn is known to stand in the way.
func (r *round) soonGone(n *model.Node) bool {
	stay := r.refused[n.Name]
	if stay.Reason == model.Drifted && stay.Cause != model.ByBudget {
		return false
	}
	pool, ok := r.pools[n.Pool]
	return ok && r.given.Pools[pool].Disruption.Allowed[model.Drifted] > 0
}

func uninitialized(n *model.Node) bool {
	return n.Claim != "" && !n.Initialized || n.Claim == "" && n.Pool != ""
}

func (r *round) close(which func(*model.Node) bool) {
	for i := range r.s.Nodes {
		n := &r.s.Nodes[i]
		n.Closed = which(n)
	}
}
