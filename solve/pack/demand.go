// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"cmp"
	"slices"

	"karpenter/model"
	"karpenter/solve/fit"
)

// demand is what is left of the pods of one kind, or of those of them that
// rules between pods tie to one domain.
type demand struct {
	*fit.Demand
	kind    int  // index in Snapshot.Pending
	index   int  // in draft.demands
	class   int  // index in survey.classes
	buyable bool // some new node has room for one of its pods
	firm    bool // some is without a soft taint that it puts up with
	left    []model.Pod
	loose   int // pods that no earlier plan had settled

	most  int      // pods of it one new node takes at most; 0 = no bound
	apart fit.Bits // demands it shares no new node with; nil = none

	stuck []model.Pod // that rules between pods leave no place
	whole *demand     // of which it is the part tied to the area; nil = it is no part
	area  *area
	short int // pods of the part that no node was launched for

	bundle []member // what each of its pods stands for; nil = itself
}

// member is the pods of one demand in every bundle of a demand of bundles.
type member struct {
	of   *demand
	pods int
}

// tied is a pod of a bundle.
type tied struct {
	of  *demand
	pod model.Pod
}

// hardestFirst orders demands by priority, then by size as kube-scheduler's
// users expect: cpu, memory, age.
func hardestFirst(a, b demand) int {
	return cmp.Or(
		cmp.Compare(b.Shape.Priority, a.Shape.Priority),
		cmp.Compare(b.Shape.Requests.At(model.CPU), a.Shape.Requests.At(model.CPU)),
		cmp.Compare(b.Shape.Requests.At(model.Memory), a.Shape.Requests.At(model.Memory)),
		a.Pods[0].Created.Compare(b.Pods[0].Created),
		cmp.Compare(a.Shape.Key, b.Shape.Key),
		cmp.Compare(a.Pods[0].Key(), b.Pods[0].Key()),
	)
}

// draw takes the next pods of d.
func draw(d *demand, n int) []tied {
	var out []tied
	for _, p := range d.left[:n] {
		out = append(out, tied{d, p})
	}
	d.left = d.left[n:]
	return out
}

func conflict(a, b *demand) bool { return fit.Conflict(a.Shape.HostPorts, b.Shape.HostPorts) }

// parts returns what one pod of d stands for.
func (d *demand) parts() []member {
	if d.bundle != nil {
		return d.bundle
	}
	if d.whole != nil {
		return []member{{d.whole, 1}}
	}
	return []member{{d, 1}}
}

// clone returns a copy that shares nothing with d that changes.
func (d *demand) clone() demand {
	out, compiled := *d, *d.Demand
	out.Demand = &compiled
	out.left, out.stuck, out.apart = slices.Clone(d.left), slices.Clone(d.stuck), slices.Clone(d.apart)
	return out
}

// keepFrom has d, at position i of so many demands, share no new node with
// others.
func (d *demand) keepFrom(i int, others []int, demands int) {
	for _, o := range others {
		if o == i {
			continue
		}
		if d.apart == nil {
			d.apart = fit.NewBits(demands)
		}
		d.apart.Set(o)
	}
}
