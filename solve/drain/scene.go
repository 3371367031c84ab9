// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"karpenter/model"
	"karpenter/solve/fit"
	"karpenter/solve/pack"
)

// scene is the cluster as it will be once what is decided is done.
type scene struct {
	given  *model.Snapshot
	s      model.Snapshot
	pools  map[string]int // by name: index in s.Pools
	sites  map[string]int // by name: index in given.Nodes
	memory *pack.Memory   // of s

	arrivals  []pack.Arrival                  // pods that are placed already, with the nodes they are to be on
	receiving map[string]receipt              // nodes that pods are planned on, by name
	anchors   anchors                         // pods that others are moved to
	lodgers   lodgers                         // room that buffers keep
	stage     []fit.NodeRow                   // by site, the nodes the scheduler may put pods on now, others without a Node; nil = to be made
	totals    []total                         // by index in s.Pools
	units     map[int][]int                   // of nodes that are removed together, by site; nil = to be made
	domains   map[string][]domain             // by topology key and site, as far as it was asked for
	menus     map[typeList]model.Requirements // what the types of launches have in common, as far as it was asked for
	wording   *wording                        // of the types of these
}

// typeList is the types that launches of a pool list: where their names are stored.
type typeList struct {
	pool  string
	first *string
	types int
}

// receipt is what is planned on a node.
type receipt struct {
	pending bool   // pods that were pending before
	buffer  string // with nothing but room for buffers, the first of them by name
}

// lodgers are the pods that stand in for buffers.
type lodgers struct {
	at     map[int][]*model.Pending // by site they are planned on
	shapes []*model.Shape           // different ones
}

// anchors are pods that others are moved to: those that run in a domain and that the
// required affinity of the moved pods wants them beside. The commands of a plan are carried
// out at the same time. Of each list, the sites of such pods, one must stay: if the
// domain emptied first, the moved pods could not come. And where moved pods must be spread,
// no node may open a domain: they would be too many in the others.
type anchors struct {
	lists  [][]int
	known  map[held]bool // what is listed
	spread []string      // topology keys that moved pods must be spread over
}

// held is a term of pods that are moved, and the domain they are moved to.
type held struct {
	term   *model.PodTerm
	domain string
}

// kindsOf returns the entries by the keys of their pods.
func kindsOf(pending []model.Pending) map[string]*model.Pending {
	out := map[string]*model.Pending{}
	for i := range pending {
		for j := range pending[i].Pods {
			out[keyOf(&pending[i].Pods[j])] = &pending[i]
		}
	}
	return out
}

// keyOf tells pods apart, those of buffers too.
func keyOf(p *model.Pod) string { return p.Buffer + "/" + p.Key() }

// receivers returns the nodes that pods are planned on.
func receivers(plan *model.Plan) map[string]receipt {
	out := map[string]receipt{}
	for _, p := range plan.Placements {
		got, known := out[p.Node]
		switch {
		case !known, p.Pod.Buffer == "":
			out[p.Node] = receipt{true, p.Pod.Buffer}
		case got.buffer != "":
			out[p.Node] = receipt{true, min(got.buffer, p.Pod.Buffer)}
		}
	}
	return out
}

// total is what the nodes of a pool cost, and what taking all away would
// disrupt.
type total struct{ price, disruption float64 }

// pods counts the pods of a node that need a place elsewhere.
func pods(n *model.Node) int {
	count := 0
	for i := range n.Movable {
		count += len(n.Movable[i].Pods)
	}
	return count
}

// total returns what all nodes of the pool add up to, those that stay included.
func (sc *scene) total(pool int) total {
	if sc.totals == nil {
		sc.totals = make([]total, len(sc.s.Pools))
		for i := range sc.given.Nodes {
			n := &sc.given.Nodes[i]
			if at, ok := sc.pools[n.Pool]; ok && n.Claim != "" {
				sc.totals[at].price += float64(n.Price)
				sc.totals[at].disruption += n.Disruption.Cost
			}
		}
	}
	return sc.totals[pool]
}

// domain is that of a topology key which a node is in, if it is in any.
type domain struct {
	name  string
	known bool
}

func domainOf(n *model.Node, key string) domain {
	name, known := n.Labels.Value(key)
	return domain{name, known}
}

// domain returns the domain of the key that the node is in.
func (sc *scene) domain(n *fit.NodeRow, key string) domain {
	if n.Site >= len(sc.given.Nodes) {
		return domainOf(n.Node, key)
	}
	if sc.domains[key] == nil {
		if sc.domains == nil {
			sc.domains = map[string][]domain{}
		}
		for i := range sc.given.Nodes {
			sc.domains[key] = append(sc.domains[key], domainOf(&sc.given.Nodes[i], key))
		}
	}
	return sc.domains[key][n.Site]
}
