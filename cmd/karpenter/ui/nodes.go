// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"

	"karpenter/cmd/karpenter/explain"
	"karpenter/model"
)

// amount is what a node has of a resource, and what pods request of it.
type amount struct {
	Allocatable int64 `json:"allocatable"`
	Requested   int64 `json:"requested"`
}

// node is a node on the map.
type node struct {
	Name         string       `json:"name"`
	Pool         string       `json:"nodePool,omitempty"`
	InstanceType string       `json:"instanceType,omitempty"`
	Zone         string       `json:"zone,omitempty"`
	CapacityType string       `json:"capacityType,omitempty"`
	State        string       `json:"state"` // launching, booting, ready or removing
	CostPerHour  float64      `json:"costPerHour"`
	CPU          amount       `json:"milliCPU"`
	Memory       amount       `json:"memoryBytes"`
	Pods         int          `json:"pods"`
	Shares       []int        `json:"podShares"` // of the node that each pod takes, in thousandths, largest first
	Fate         explain.Fate `json:"fate"`
	Cause        string       `json:"cause,omitempty"`    // of what keeps it
	Why          string       `json:"why,omitempty"`      // it stays or goes, in words
	Launched     string       `json:"launched,omitempty"` // why it is there, in words
}

// pod is a pod on a node.
type pod struct {
	Namespace string            `json:"namespace,omitempty"`
	Name      string            `json:"name"`
	MilliCPU  int64             `json:"milliCPU"`
	Memory    int64             `json:"memoryBytes"`
	labels    map[string]string // nil = not known
	requests  model.Resources
	count     int // pods it stands for
}

// unlisted is the name of the pods of a node that a snapshot file does not name.
const unlisted = "pods that the snapshot does not name"

// podsOn returns the pods on each node, by the node's name.
func (s *state) podsOn() map[string][]pod {
	out := map[string][]pod{}
	axis := model.NewAxis()
	for _, name := range s.Situation.Snapshot.Resources {
		axis.Index(name)
	}
	for _, p := range s.Moment.Pods {
		if p.Spec.NodeName == "" || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		var requests model.Resources
		for name, q := range resource.PodRequests(p, resource.PodResourcesOptions{UseStatusResources: true}) {
			if i, known := axis.Position(string(name)); known && i == model.CPU {
				requests = requests.With(i, q.MilliValue())
			} else if known {
				requests = requests.With(i, q.Value())
			}
		}
		out[p.Spec.NodeName] = append(out[p.Spec.NodeName], newPod(p.Namespace, p.Name, requests, p.Labels, 1))
	}
	if s.Moment.Pods != nil {
		return out
	}
	for i := range s.Situation.Snapshot.Nodes {
		n := &s.Situation.Snapshot.Nodes[i]
		rest := n.Requested
		for _, m := range n.Movable {
			for _, p := range m.Pods {
				rest = rest.Minus(m.Shape.Requests)
				labels := map[string]string{}
				for _, l := range m.Peer.Labels {
					labels[l.Key] = l.Value
				}
				out[n.Name] = append(out[n.Name], newPod(p.Namespace, p.Name, m.Shape.Requests, labels, 1))
			}
		}
		if count := rest.At(model.Pods); count > 0 || rest.At(model.CPU) > 0 || rest.At(model.Memory) > 0 {
			out[n.Name] = append(out[n.Name], newPod("", unlisted, rest, nil, int(count)))
		}
	}
	return out
}

func newPod(namespace, name string, r model.Resources, labels map[string]string, count int) pod {
	return pod{namespace, name, r.At(model.CPU), r.At(model.Memory), labels, r, count}
}

// listNodes returns the nodes of the map, by name.
func (s *state) listNodes() []node {
	launched := map[string]string{}
	if s.View != nil {
		for i := range s.View.Nodes {
			launched[s.View.Nodes[i].Name] = s.View.Nodes[i].Why
		}
	}
	on := s.podsOn()
	out := []node{}
	for i := range s.Situation.Snapshot.Nodes {
		m := &s.Situation.Snapshot.Nodes[i]
		a := s.answers[m.Name]
		n := node{
			Name: m.Name, Pool: m.Pool, InstanceType: a.Node.InstanceType, Zone: a.Node.Zone, CapacityType: a.Node.CapacityType,
			State: stateOf(m), CostPerHour: m.Price.Dollars(), Fate: a.Fate, Launched: launched[m.Name], Shares: []int{},
			CPU:    amount{m.Allocatable.At(model.CPU), m.Requested.At(model.CPU)},
			Memory: amount{m.Allocatable.At(model.Memory), m.Requested.At(model.Memory)},
		}
		n.Cause, n.Why = becauseOf(&a)
		for _, p := range on[m.Name] {
			n.Pods += p.count
			n.Shares = append(n.Shares, share(&p, m))
		}
		slices.SortFunc(n.Shares, func(a, b int) int { return cmp.Compare(b, a) })
		out = append(out, n)
	}
	return out
}

func stateOf(n *model.Node) string {
	switch {
	case n.Deleting:
		return "removing"
	case !n.Registered:
		return "launching"
	case !n.Initialized:
		return "booting"
	}
	return "ready"
}

// share returns how many thousandths of the node the pod requests, of CPU or memory,
// whichever is more.
func share(p *pod, n *model.Node) int {
	part := func(i int) int64 { return p.requests.At(i) * 1000 / max(n.Allocatable.At(i), 1) }
	return int(min(1000, max(part(model.CPU), part(model.Memory))))
}

// The causes of a node that does not stay, beside those of package explain.
const (
	leaving = "leaving"
	foreign = "foreign"
)

// becauseOf returns the main cause for the fate of the node, and its text.
func becauseOf(a *explain.NodeAnswer) (cause, why string) {
	switch a.Fate {
	case explain.Going:
		return leaving, "it is being removed"
	case explain.Goes:
		return leaving, "the next decision removes it: " + a.Command.Reason
	case explain.Foreign:
		return foreign, "no NodePool manages it"
	}
	for _, r := range a.Reasons {
		if r.For == string(model.Underutilized) || r.For == string(model.Empty) || r.For == "" {
			return r.Cause, r.Why
		}
	}
	if len(a.Reasons) > 0 {
		return a.Reasons[0].Cause, a.Reasons[0].Why
	}
	return "", ""
}

// nodeDetail is one node with its pods.
type nodeDetail struct {
	node
	Explained explain.NodeAnswer `json:"explain"`
	List      []pod              `json:"podList"` // largest share first
}

func (s *state) detail(name string) (nodeDetail, bool) {
	i := slices.IndexFunc(s.nodes, func(n node) bool { return n.Name == name })
	if i < 0 {
		return nodeDetail{}, false
	}
	m := &s.Situation.Snapshot.Nodes[i]
	list := append([]pod{}, s.podsOn()[name]...)
	slices.SortStableFunc(list, func(a, b pod) int {
		return cmp.Or(cmp.Compare(share(&b, m), share(&a, m)), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return nodeDetail{s.nodes[i], s.answers[name], list}, true
}

// stayGroup is the nodes that one kind of thing keeps.
type stayGroup struct {
	Cause        string     `json:"cause"`
	Title        string     `json:"title"`
	Nodes        []stayNode `json:"nodes"` // most expensive first
	CostPerHour  float64    `json:"costPerHour"`
	CostPerMonth float64    `json:"costPerMonth"`
}

type stayNode struct {
	Name         string           `json:"name"`
	Pool         string           `json:"nodePool"`
	InstanceType string           `json:"instanceType,omitempty"`
	CostPerHour  float64          `json:"costPerHour"`
	CostPerMonth float64          `json:"costPerMonth"`
	Why          string           `json:"why"`
	Reasons      []explain.Reason `json:"reasons,omitempty"`
}

// titles are the causes in words.
func titles() map[string]string {
	return map[string]string{
		string(model.ByNode): "A pod, its PodDisruptionBudget or the node itself blocks removal", string(model.ByBudget): "The disruption budget of the NodePool allows no more now",
		string(model.ByUse): "Pending pods or a buffer need the capacity", string(model.ByPolicy): "The NodePool does not consolidate such nodes",
		string(model.ByPlace): "The pods have no other place", string(model.ByPrice): "Nothing else is cheaper, or not by enough",
		string(model.Unexamined): "Not examined in this decision", "waiting": "Not quiet for long enough yet",
		leaving: "On its way out", "": "No reason is known yet",
	}
}

// stays is the nodes of NodePools by what keeps them. Each node is in one group, so
// the groups add up to what all nodes cost.
func (s *state) stays() any {
	by := map[string]*stayGroup{}
	price := map[string]model.Price{}
	var total model.Price
	for i, n := range s.nodes {
		m := &s.Situation.Snapshot.Nodes[i]
		if n.Cause == foreign {
			continue
		}
		g := by[n.Cause]
		if g == nil {
			g = &stayGroup{Cause: n.Cause, Title: cmp.Or(titles()[n.Cause], n.Cause)}
			by[n.Cause] = g
		}
		g.Nodes = append(g.Nodes, stayNode{n.Name, n.Pool, n.InstanceType, n.CostPerHour, monthly(n.CostPerHour), n.Why, s.answers[n.Name].Reasons})
		price[n.Cause] += m.Price
		total += m.Price
	}
	groups := []stayGroup{}
	for cause, g := range by {
		g.CostPerHour, g.CostPerMonth = price[cause].Dollars(), monthly(price[cause].Dollars())
		slices.SortStableFunc(g.Nodes, func(a, b stayNode) int { return cmp.Compare(b.CostPerHour, a.CostPerHour) })
		groups = append(groups, *g)
	}
	slices.SortFunc(groups, func(a, b stayGroup) int {
		return cmp.Or(cmp.Compare(b.CostPerHour, a.CostPerHour), cmp.Compare(a.Cause, b.Cause))
	})
	return struct {
		Groups       []stayGroup `json:"groups"`
		CostPerHour  float64     `json:"costPerHour"`
		CostPerMonth float64     `json:"costPerMonth"`
	}{groups, total.Dollars(), monthly(total.Dollars())}
}
