// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"karpenter/bench/workload"
	"karpenter/cloud/kwok"
)

// Step is what an engine decided about nodes: which ones to remove, and where
// their pods go.
type Step struct {
	Removed []string
	Plan    Plan
}

// Carry judges the step and carries it out: the machines of w become those after
// the step. What a claim becomes is the cheapest of its offerings. The prefix
// begins the names of the new machines.
func Carry(w *workload.Workload, s *Step, prefix string) (Verdict, workload.Change) {
	after := *w
	after.Machines, after.Evicted = nil, nil
	var change workload.Change
	pods := map[string]*corev1.Pod{}
	for _, m := range w.Machines {
		if !slices.Contains(s.Removed, m.Node.Name) {
			after.Machines = append(after.Machines, m)
			continue
		}
		change.Gone = append(change.Gone, m)
		for _, p := range m.Bound {
			if p.OwnerReferences[0].Kind != "DaemonSet" {
				pods[Key(p)], after.Evicted = p, append(after.Evicted, p)
			}
		}
	}
	j := New(&after)
	v := j.Judge(&s.Plan)
	if left := len(pods) - v.Scheduled; left > 0 || len(change.Gone) != len(s.Removed) {
		v.Count++
		v.Faults = append(v.Faults, fmt.Sprintf("%d of %d evicted pods have no place; %d of %d nodes exist", left, len(pods), len(change.Gone), len(s.Removed)))
	}
	if v.Count == 0 {
		j.carry(&after, s, pods, prefix, &change)
		w.Machines = after.Machines
	}
	return v, change
}

// carry binds the pods of a valid step.
func (j *Judge) carry(after *workload.Workload, s *Step, pods map[string]*corev1.Pod, prefix string, change *workload.Change) {
	at := map[string]int{}
	for i := range after.Machines {
		at[after.Machines[i].Node.Name] = i
	}
	for _, node := range slices.Sorted(maps.Keys(s.Plan.Placed)) {
		m := &after.Machines[at[node]]
		m.Bound = slices.Clone(m.Bound)
		for _, key := range s.Plan.Placed[node] {
			p := pods[key].DeepCopy()
			m.Bind(p)
			change.Moved = append(change.Moved, p)
		}
	}
	for i := range s.Plan.Claims {
		c := &s.Plan.Claims[i]
		e, o := j.cheapest(c)
		m := workload.NewMachine(fmt.Sprintf("%s-%d", prefix, i), j.pools[c.Pool], e, o)
		after.BindDaemons(&m)
		for _, key := range c.Pods {
			m.Bind(pods[key].DeepCopy())
		}
		m.Consolidatable()
		change.Added = append(change.Added, m)
		after.Machines = append(after.Machines, m)
	}
}

// cheapest returns the cheapest machine that a valid claim can become, the first
// of several.
func (j *Judge) cheapest(c *Claim) (*kwok.Entry, kwok.OfferingEntry) {
	price, entry, offering := math.Inf(1), (*kwok.Entry)(nil), kwok.OfferingEntry{}
	for _, name := range c.Types {
		e := j.entries[name]
		for k := range e.Offerings {
			o := e.Offerings[k]
			if *o.Price < price && j.allows(c, e, k) {
				price, entry, offering = *o.Price, e.Entry, o
			}
		}
	}
	return entry, offering
}

// allows reports whether the claim can become that offering of the type.
func (j *Judge) allows(c *Claim, e *entry, offering int) bool {
	return satisfies(e.labels[offering], j.pools[c.Pool].Spec.Template.Spec.Requirements) && meets(e.labels[offering], c.Requirements)
}

// Cost returns what the machines cost in dollars per hour.
func Cost(w *workload.Workload) float64 {
	prices := map[string]float64{}
	place := func(l map[string]string) string {
		return fmt.Sprint(l[corev1.LabelInstanceTypeStable], l[corev1.LabelTopologyZone], l["karpenter.sh/capacity-type"])
	}
	for i := range w.Entries {
		for k, l := range labelsOf(&w.Entries[i]) {
			prices[place(l)] = *w.Entries[i].Offerings[k].Price
		}
	}
	sum := 0.0
	for _, m := range w.Machines {
		sum += prices[place(m.Node.Labels)]
	}
	return sum
}
