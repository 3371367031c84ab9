// SPDX-License-Identifier: Apache-2.0

package scenario

import "karpenter/model"

// said is what the line of a node says itself; the rest follows from the pods
// on it.
type said struct {
	used, runs, ports, cost bool
	free                    []model.Limit // what is left of these resources, if used is not said
}

// follow fills in what a line leaves out.
func (s said) follow(n *model.Node, asked bool) {
	if !s.used {
		n.Requested = requestedOn(n)
		for _, e := range s.free {
			n.Requested = n.Requested.With(e.Resource, n.Allocatable.At(e.Resource)-e.Max)
		}
	}
	if !s.runs && asked {
		n.Residents = residentsOf(n)
	}
	if !s.ports {
		n.HostPorts = portsOn(n)
	}
	if !s.cost {
		n.Disruption.Cost = usualCost(n)
	}
}

// requestedOn is what the daemons and the movable pods on n request.
func requestedOn(n *model.Node) model.Resources {
	sum := n.DaemonRequested
	for _, p := range n.Movable {
		sum = sum.Plus(p.Shape.Requests.Times(int64(len(p.Pods))))
	}
	return sum
}

// residentsOf are the movable pods as other pods see them.
func residentsOf(n *model.Node) []model.Resident {
	var out []model.Resident
	for _, p := range n.Movable {
		if len(p.Pods) == 0 {
			continue
		}
		r := model.Resident{Peer: p.Peer, Count: len(p.Pods)}
		for _, t := range p.Shape.PodTerms {
			if t.Anti && t.Weight == 0 {
				r.Anti = append(r.Anti, t)
			}
		}
		out = append(out, r)
	}
	return out
}

// portsOn are the host ports of the movable pods.
func portsOn(n *model.Node) []model.HostPort {
	var out []model.HostPort
	for _, p := range n.Movable {
		for range p.Pods {
			out = append(out, p.Shape.HostPorts...)
		}
	}
	return out
}

// usualCost is what it takes to disrupt a node of ours whose pods are nothing
// special.
func usualCost(n *model.Node) float64 {
	if n.Claim == "" {
		return 0
	}
	cost := 1.0
	for _, p := range n.Movable {
		cost += float64(len(p.Pods))
	}
	return cost
}

// poolUsage is what a pool uses unless a scenario says otherwise.
func poolUsage(s *model.Snapshot, pool string) model.Resources {
	var sum model.Resources
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Pool == pool && !n.Deleting {
			sum = sum.Plus(n.Capacity)
		}
	}
	return sum
}

// nodesOf counts the nodes of a pool that are being removed, or are not.
func nodesOf(s *model.Snapshot, pool string, deleting bool) int {
	n := 0
	for i := range s.Nodes {
		if s.Nodes[i].Pool == pool && s.Nodes[i].Deleting == deleting {
			n++
		}
	}
	return n
}
