// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"cmp"
	"math"
	"slices"

	"karpenter/cmd/karpenter/plan"
	"karpenter/cmd/karpenter/record"
	"karpenter/model"
)

// Bill divides what nodes cost among pods. All tables have the same total.
type Bill struct {
	CostPerHour  float64 `json:"costPerHour"`
	CostPerMonth float64 `json:"costPerMonth"` // in whole cents
	IdlePerHour  float64 `json:"idlePerHour"`  // that no pod requests
	Nodes        int     `json:"nodes"`
	Unpriced     int     `json:"unpriced"` // of the nodes, whose price is not known: they count as 0
	Foreign      int     `json:"foreign"`  // nodes that no NodePool manages, not in the bill

	Label  string   `json:"label"`  // key of Labels
	Labels []string `json:"labels"` // keys to choose from, the most frequent first

	ByNamespace    []Charge `json:"byNamespace"`
	ByLabel        []Charge `json:"byLabel"`
	ByNodePool     []Charge `json:"byNodePool"`
	ByCapacityType []Charge `json:"byCapacityType"`

	Costs   *record.Costs         `json:"costs,omitempty"`   // since the record began; nil = there is no record
	Savings *record.SavingsReport `json:"savings,omitempty"` // since the baseline; nil = there is none
}

// Charge is a row of a table. Dollars per month are whole cents, and the rows of a
// table add up to CostPerMonth of the Bill to the cent.
type Charge struct {
	Name         string  `json:"name"` // "" = idle capacity
	Pods         int     `json:"pods"`
	UsedPerHour  float64 `json:"usedPerHour"`
	IdlePerHour  float64 `json:"idlePerHour"`
	CostPerHour  float64 `json:"costPerHour"`
	CostPerMonth float64 `json:"costPerMonth"`

	used, idle model.Price
}

const (
	// unlabelled is the row of pods without the label.
	unlabelled = "(no label)"
	// unnamed is the row of pods whose namespace is not known.
	unnamed = "(" + unlisted + ")"
)

// divide returns what each pod pays of the price of the node, in the order of the
// pods. A resource is worth its weight's part of the price, and a pod pays for its part
// of the allocatable amount. If the pods request more than that, they pay for all of it.
func divide(n *model.Node, pods []pod, weights map[int]float64) []model.Price {
	sum := 0.0
	for i, w := range weights {
		sum += w * float64(n.Allocatable.At(i))
	}
	out := make([]model.Price, len(pods))
	if sum == 0 {
		return out
	}
	for j := range pods {
		share := 0.0
		for i, w := range weights {
			asked := int64(0)
			for k := range pods {
				asked += pods[k].requests.At(i)
			}
			if of := max(asked, n.Allocatable.At(i)); of > 0 {
				share += w * float64(n.Allocatable.At(i)) / sum * float64(pods[j].requests.At(i)) / float64(of)
			}
		}
		out[j] = model.Price(math.Floor(share * float64(n.Price)))
	}
	return out
}

// table is rows in the making.
type table map[string]*Charge

func (t table) add(name string, pods int, used, idle model.Price) {
	if t[name] == nil {
		t[name] = &Charge{Name: name}
	}
	t[name].Pods += pods
	t[name].used += used
	t[name].idle += idle
}

// bill returns the bill, with a table of the values of the label.
func (s *state) bill(label string) Bill {
	b := Bill{Label: label, Costs: s.Record.Costs, Savings: s.Record.Savings}
	namespaces, labels, pools, capacityTypes := table{}, table{}, table{}, table{}
	keys := map[string]int{}
	var total, idle model.Price
	on := s.podsOn()
	weights := record.Weights(s.Situation.Snapshot.Resources)
	for i := range s.Situation.Snapshot.Nodes {
		n := &s.Situation.Snapshot.Nodes[i]
		if n.Claim == "" {
			b.Foreign++
			continue
		}
		b.Nodes++
		if n.Price == 0 {
			b.Unpriced++
		}
		pods := on[n.Name]
		used := model.Price(0)
		count := 0
		for j, pays := range divide(n, pods, weights) {
			p := &pods[j]
			used += pays
			count += p.count
			namespaces.add(cmp.Or(p.Namespace, unnamed), p.count, pays, 0)
			labels.add(cmp.Or(p.labels[label], unlabelled), p.count, pays, 0)
			for key := range p.labels {
				keys[key]++
			}
		}
		total += n.Price
		idle += n.Price - used
		pools.add(n.Pool, count, used, n.Price-used)
		capacityType, _ := n.Labels.Value(model.LabelCapacityType)
		capacityTypes.add(cmp.Or(capacityType, "(not launched yet)"), count, used, n.Price-used)
	}
	if idle > 0 {
		namespaces.add("", 0, 0, idle)
		labels.add("", 0, 0, idle)
	}
	b.CostPerHour, b.IdlePerHour = total.Dollars(), idle.Dollars()
	b.CostPerMonth = float64(toCents(total)) / 100
	b.ByNamespace, b.ByLabel, b.ByNodePool, b.ByCapacityType = namespaces.rows(total), labels.rows(total), pools.rows(total), capacityTypes.rows(total)
	b.Labels = frequent(keys)
	return b
}

// frequent returns the keys, the most frequent first.
func frequent(keys map[string]int) []string {
	out := []string{}
	for key := range keys {
		out = append(out, key)
	}
	slices.SortFunc(out, func(a, b string) int { return cmp.Or(cmp.Compare(keys[b], keys[a]), cmp.Compare(a, b)) })
	return out
}

// nanosPerCent is how many nano-dollars a month a cent is.
const nanosPerCent = int64(model.Dollar) / 100

// toCents returns cents per month, rounded.
func toCents(p model.Price) int64 {
	return (int64(p)*plan.HoursPerMonth + nanosPerCent/2) / nanosPerCent
}

// rows returns the rows, those that cost most first and idle capacity last. Cents are
// given to the rows with the largest fractions until the rows add up to the total.
func (t table) rows(total model.Price) []Charge {
	out := []Charge{}
	for _, c := range t {
		c.UsedPerHour, c.IdlePerHour, c.CostPerHour = c.used.Dollars(), c.idle.Dollars(), (c.used + c.idle).Dollars()
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b Charge) int {
		return cmp.Or(order(a.Name == "", b.Name == ""), cmp.Compare(b.used+b.idle, a.used+a.idle), cmp.Compare(a.Name, b.Name))
	})
	type part struct {
		row       int
		remainder int64
	}
	parts := make([]part, len(out))
	cents := make([]int64, len(out))
	left := toCents(total)
	for i := range out {
		nanos := int64(out[i].used+out[i].idle) * plan.HoursPerMonth
		cents[i], parts[i] = nanos/nanosPerCent, part{i, nanos % nanosPerCent}
		left -= cents[i]
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(b.remainder, a.remainder) })
	for _, p := range parts[:min(int(max(left, 0)), len(parts))] {
		cents[p.row]++
	}
	for i := range out {
		out[i].CostPerMonth = float64(cents[i]) / 100
	}
	return out
}

// order puts false before true.
func order(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}
