// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"

	"karpenter/model"
)

// Outcome is the kind of result that a plan has for a pod.
type Outcome string

// The outcomes.
const (
	OnNode  Outcome = "node"    // it goes to a node that is there or on its way
	OnNew   Outcome = "launch"  // it goes to a node that is to be launched
	Pending Outcome = "pending" // no node can take it
	NoNeed  Outcome = "none"    // it does not ask for a node; Reason says why
)

// Answer explains what a plan does for one pod.
type Answer struct {
	Pod     string  `json:"pod"` // namespace/name
	Outcome Outcome `json:"outcome"`
	Reason  string  `json:"reason,omitempty"`

	Shape  string  `json:"requests,omitempty"` // "cpu=500m memory=1Gi"
	Node   *Node   `json:"node,omitempty"`
	Launch *Launch `json:"launch,omitempty"`

	Preferences []Preference `json:"preferencesGivenUp,omitempty"` // of the pod and equal pods
	Crowd       *Crowd       `json:"crowd,omitempty"`              // that its workload is

	Pools []Pool `json:"nodePools,omitempty"` // why each of them launches nothing
	Nodes int    `json:"existingNodes,omitempty"`
	Alike int    `json:"podsAlike,omitempty"` // others that wait for the same reasons
}

// Node is capacity that exists or is on its way.
type Node struct {
	Name         string  `json:"name"`
	Claim        string  `json:"nodeClaim,omitempty"`
	Pool         string  `json:"nodePool,omitempty"`
	InstanceType string  `json:"instanceType,omitempty"`
	Zone         string  `json:"zone,omitempty"`
	CapacityType string  `json:"capacityType,omitempty"`
	PricePerHour float64 `json:"pricePerHour,omitempty"` // dollars
	PriceParts   []Part  `json:"priceParts,omitempty"`   // if it is not the price of the instance alone
	Ready        bool    `json:"ready"`                  // initialized
}

// Launch is a node to be launched.
type Launch struct {
	Pool          string   `json:"nodePool"`
	InstanceType  string   `json:"instanceType"`
	Zone          string   `json:"zone"`
	CapacityType  string   `json:"capacityType"`
	PricePerHour  float64  `json:"pricePerHour"`            // dollars
	PriceParts    []Part   `json:"priceParts,omitempty"`    // if it is not the price of the instance alone
	Alternatives  []string `json:"alternatives,omitempty"`  // other types the cloud may choose, cheapest first
	CapacityTypes []string `json:"capacityTypes,omitempty"` // it may choose among
	Reservations  []string `json:"reservations,omitempty"`  // it takes from
	Relaxed       []string `json:"relaxed,omitempty"`       // minValues that were, in words
	Requests      string   `json:"requests"`                // of its pods and daemons
	Pods          int      `json:"pods"`
}

// Pool is one NodePool's rejection.
type Pool struct {
	Name   string `json:"name"`
	Reason string `json:"reason,omitempty"` // set when it was not asked; then there are no Steps
	Steps  []Step `json:"steps,omitempty"`
}

// Step is one constraint, how many offerings it left, and what would help.
type Step struct {
	Left       int    `json:"left"`
	Constraint string `json:"constraint"`
	Hint       string `json:"hint,omitempty"`
}

// Of returns what the plan for s does for the pod, and whether the pod needs a
// node at all.
func Of(s *model.Snapshot, plan *model.Plan, key string) (Answer, bool) {
	a := Answer{Pod: key}
	is := func(p model.Pod) bool { return p.Key() == key }
	for _, pending := range s.Pending {
		if slices.ContainsFunc(pending.Pods, is) {
			a.Shape = pending.Shape.Requests.Format(s.Resources)
		}
	}
	for _, p := range plan.Placements {
		if is(p.Pod) {
			a.Outcome, a.Node = OnNode, NodeOf(s, p.Node)
			return a, true
		}
	}
	for i := range plan.Launches {
		if slices.ContainsFunc(plan.Launches[i].Pods, is) {
			a.Outcome, a.Launch = OnNew, LaunchOf(s, &plan.Launches[i])
			return a, true
		}
	}
	for i := range plan.Verdicts {
		if slices.ContainsFunc(plan.Verdicts[i].Pods, is) {
			v := plan.Verdicts[i]
			a.refused(v.For(v.Pods[slices.IndexFunc(v.Pods, is)]))
			return a, true
		}
	}
	return a, false
}

// NodeOf returns the node with this name. For a node that s does not have, only
// the name is set.
func NodeOf(s *model.Snapshot, name string) *Node {
	i := slices.IndexFunc(s.Nodes, func(n model.Node) bool { return n.Name == name })
	if i < 0 {
		return &Node{Name: name}
	}
	n := &s.Nodes[i]
	out := &Node{Name: name, Claim: n.Claim, Pool: n.Pool, PricePerHour: n.Price.Dollars(), Ready: n.Initialized}
	out.InstanceType, _ = n.Labels.Value(model.LabelInstanceType)
	out.Zone, _ = n.Labels.Value(model.LabelZone)
	out.CapacityType, _ = n.Labels.Value(model.LabelCapacityType)
	out.PriceParts = parts(s, n.Pool, out.InstanceType, out.Zone, n.Price)
	return out
}

// LaunchOf returns the launch with the resource names of s.
func LaunchOf(s *model.Snapshot, l *model.Launch) *Launch {
	var relaxed []string
	for _, r := range l.MinValues {
		relaxed = append(relaxed, fmt.Sprintf("minValues of %s to %d", r.Key, r.Spans))
	}
	return &Launch{
		Reservations: l.ReservationIDs, Relaxed: relaxed,
		Pool: l.Pool, InstanceType: l.Type, Zone: l.Zone, CapacityType: l.CapacityType,
		PricePerHour: l.Price.Dollars(), PriceParts: parts(s, l.Pool, l.Type, l.Zone, l.Price), CapacityTypes: l.CapacityTypes,
		Alternatives: slices.DeleteFunc(slices.Clone(l.Types), func(t string) bool { return t == l.Type }),
		Requests:     l.Requests.Format(s.Resources), Pods: len(l.Pods),
	}
}

func (a *Answer) refused(v model.Verdict) {
	a.Outcome, a.Reason, a.Nodes, a.Alike = Pending, v.Reason, v.Nodes, len(v.Pods)-1
	a.Pools = Refusals(&v)
}

// Refusals returns why each NodePool rejects the pods.
func Refusals(v *model.Verdict) []Pool {
	var all []Pool
	for _, p := range v.Pools {
		out := Pool{Name: p.Pool, Reason: p.Reason}
		for _, s := range p.Steps {
			out.Steps = append(out.Steps, Step{Left: s.Left, Constraint: s.Constraint, Hint: s.Hint})
		}
		all = append(all, out)
	}
	return all
}
