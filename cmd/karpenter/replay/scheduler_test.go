// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"karpenter/model"
	"karpenter/solve/fit"
)

// TestScheduler: a pod goes to the emptiest node that takes it, wherever it is planned, and may take the place
// of another one. If the controller nominates nodes, it goes to its own, and others keep away from it.
func TestScheduler(t *testing.T) {
	shape := func(milliCPU int64) *model.Shape { return &model.Shape{Requests: model.Resources{milliCPU, 0, 1000}} }
	for _, x := range []struct {
		name      string
		nominates bool
		ruled     bool
		free      [2]int64 // of two nodes; the pod is planned on the first, and another one of 2 vCPUs is, too
		want      int
	}{
		{"to the emptiest", false, false, [2]int64{4000, 8000}, 1},
		{"to the only one", false, false, [2]int64{4000, 500}, 0},
		{"in the place of another", false, false, [2]int64{2500, 500}, 0},
		{"nowhere", false, false, [2]int64{500, 500}, -1},
		{"with rules, as planned", false, true, [2]int64{4000, 8000}, 0},
		{"with rules, and no longer", false, true, [2]int64{500, 8000}, -1},
		{"nominated", true, false, [2]int64{4000, 8000}, 0},
		{"nominated, and its node is full", true, false, [2]int64{2500, 8000}, 1},
		{"nominated, and all are full", true, false, [2]int64{2500, 500}, -1},
	} {
		r := &run{h: &history{nominates: x.nominates}}
		var places []place
		for _, free := range x.free {
			at := place{node: &node{}}
			at.NodeRow = fit.NodeRow{Node: &model.Node{Allocatable: model.Resources{8000, 0, 110_000}}, Free: model.Resources{free, 0, 110_000}}
			places = append(places, at)
		}
		p := &pod{shape: shape(1000), to: places[0].node, object: &corev1.Pod{}}
		if x.nominates {
			places[0].kept = shape(1000).Requests.Plus(shape(2000).Requests)
		}
		if x.ruled {
			p.shape.HostPorts = []model.HostPort{{Port: 80}}
		}
		got := -1
		if at := r.choose(p, places); at != nil {
			for i := range places {
				if at == &places[i] {
					got = i
				}
			}
			if left := at.Free.At(model.CPU); left != x.free[got]-1000 {
				t.Errorf("%s: %d of the CPU is free then", x.name, left)
			}
		}
		if got != x.want {
			t.Errorf("%s: to node %d, want %d", x.name, got, x.want)
		}
	}
}

// TestDelays: delays of a run are those that were recorded, one after the other, and again from the first.
func TestDelays(t *testing.T) {
	d := durations{3 * time.Second, 9 * time.Second}
	if d.at(0) != d[0] || d.at(1) != d[1] || d.at(2) != d[0] || d.mean() != 6*time.Second {
		t.Errorf("%v %v %v, on average %v", d.at(0), d.at(1), d.at(2), d.mean())
	}
}
