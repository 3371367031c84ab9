// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"strings"

	"karpenter/model"
	"karpenter/solve/pack"
)

// drift removes the nodes that are not what their pool asks for, each by
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
		} else if got, receives := r.receiving[n.Name]; receives && got.keeps(model.Drifted) {
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
	t, pending := &pack.Trial{}, r.s.Nodes[site].Movable
	if why := unplaceable(&r.s.Nodes[site]); why != "" {
		r.keep(&r.s.Nodes[site], model.Drifted, model.ByPlace, why)
		return
	}
	if len(pending) > 0 {
		t, pending = r.try(question{sites: []int{site}, most: unlimited}, r.policy)
		if len(t.Left) > 0 {
			r.close(infirm)
			t, pending = r.try(question{sites: []int{site}, most: unlimited}, r.policy)
			r.open(model.Drifted)
		}
	}
	n := &r.s.Nodes[site]
	if len(t.Left) > 0 {
		if c, placed, ok := r.terminateFirst(site, model.Drifted); ok {
			r.accept(c, []int{site}, placed)
		} else {
			r.keep(n, model.Drifted, model.ByPlace, homeless(t))
		}
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
