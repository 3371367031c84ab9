// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"karpenter/sandbox/fleet"
)

func machine(name, kind string, state fleet.State) fleet.Machine {
	m := fleet.Machine{Name: name, Type: kind, State: state}
	if kind != "" {
		m.Zone, m.CapacityType, m.Price = "a", "spot", 0.25
	}
	return m
}

func warning(object, message string) fleet.Notice {
	return fleet.Notice{Object: object, Warning: true, Reason: "FailedScheduling", Message: message}
}

func TestBetween(t *testing.T) {
	ready := fleet.View{Price: 0.5, Machines: []fleet.Machine{machine("c1", "m5.large", fleet.Ready), machine("c2", "m5.large", fleet.Ready)}}
	for _, c := range []struct {
		name          string
		before, after fleet.View
		want          string
	}{
		{"nothing", ready, ready, ""},
		{
			"launch: a claim is none, and becomes one",
			fleet.View{Machines: []fleet.Machine{machine("c1", "", fleet.Launching)}},
			fleet.View{Price: 0.25, Machines: []fleet.Machine{machine("c1", "m5.large", fleet.Booting), machine("c2", "", fleet.Launching)}},
			"launch: 1 node (now 1 at $0.250/h): 1 × m5.large spot a $0.2500/h",
		},
		{
			"bought and ready at once",
			fleet.View{}, ready,
			"launch: 2 nodes (now 2 at $0.500/h): 2 × m5.large spot a $0.2500/h\nready: 2 nodes (2 of 2): 2 × m5.large spot a $0.2500/h",
		},
		{
			"drain", ready,
			fleet.View{Machines: []fleet.Machine{machine("c1", "m5.large", fleet.Ready), machine("c2", "m5.large", fleet.Removing)}},
			"drain: 1 node: 1 × m5.large spot a $0.2500/h",
		},
		{"gone", ready, fleet.View{}, "gone: 2 nodes (now 0 at $0.000/h): 2 × m5.large spot a $0.2500/h"},
		{
			"refused", fleet.View{Machines: []fleet.Machine{machine("c1", "", fleet.Launching)}}, fleet.View{},
			"refused: 1 claim gone without a machine",
		},
		{
			"many kinds",
			fleet.View{},
			fleet.View{Machines: []fleet.Machine{
				machine("1", "a", fleet.Booting), machine("2", "b", fleet.Booting), machine("3", "c", fleet.Booting), machine("4", "d", fleet.Booting),
				machine("5", "e", fleet.Booting), machine("6", "f", fleet.Booting), machine("7", "f", fleet.Booting),
			}},
			"launch: 7 nodes (now 7 at $0.000/h): 2 × f spot a $0.2500/h, 1 × a spot a $0.2500/h, 1 × b spot a $0.2500/h, 1 × c spot a $0.2500/h, " +
				"1 × d spot a $0.2500/h and 1 kind more",
		},
		{
			"pods",
			fleet.View{Workloads: []fleet.Workload{{Name: "gone", Running: 1}, {Name: "web", Waiting: 2}}},
			fleet.View{Workloads: []fleet.Workload{{Name: "web", Waiting: 1, Starting: 1}}},
			"pods: gone: no pods\npods: web: 1 waiting, 1 starting",
		},
		{
			"pods of many workloads",
			fleet.View{},
			fleet.View{Workloads: []fleet.Workload{{Name: "a", Running: 1}, {Name: "b", Running: 1}, {Name: "c", Running: 1}, {Name: "d", Running: 1}, {Name: "e", Waiting: 2}}},
			"pods: 5 workloads: 2 waiting, 4 running",
		},
		{
			"pools",
			fleet.View{Pools: []fleet.Pool{{Name: "a", Ready: true}, {Name: "b", Reason: "x"}, {Name: "z"}}},
			fleet.View{Pools: []fleet.Pool{
				{Name: "a", Reason: "NodeClass not found"},
				{Name: "b", Ready: true, Limits: corev1.ResourceList{"memory": resource.MustParse("1Gi"), "cpu": resource.MustParse("8")}},
			}},
			"pool: a is not ready: NodeClass not found\npool: b is ready, limited to 1Gi memory, 8 cpu\npool: z is gone",
		},
		{
			"warnings that differ in numbers only are one",
			fleet.View{},
			fleet.View{Noticed: 4, Notices: []fleet.Notice{
				warning("pod/a", "10 left"), {Object: "pod/c", Reason: "Nominated"}, warning("pod/b", "9 left"), warning("pod/b", "no pool"),
			}},
			"warning: FailedScheduling, pod/a and 1 other: 9 left\nwarning: FailedScheduling, pod/b: no pool",
		},
		{
			"a warning that is known",
			fleet.View{Noticed: 1, Notices: []fleet.Notice{warning("pod/a", "10 left")}},
			fleet.View{Noticed: 2, Notices: []fleet.Notice{warning("pod/a", "10 left"), warning("pod/b", "9 left")}},
			"warning: FailedScheduling, pod/b: as before",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var lines []string
			for _, e := range Between(&c.before, &c.after) {
				lines = append(lines, string(e.Kind)+": "+e.Text)
			}
			if got := strings.Join(lines, "\n"); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestStanding(t *testing.T) {
	v := fleet.View{
		Price:     0.5,
		Machines:  []fleet.Machine{machine("c1", "m5.large", fleet.Ready), machine("c2", "m5.large", fleet.Booting)},
		Workloads: []fleet.Workload{{Name: "web", Running: 3, Waiting: 1}},
	}
	if got, want := Standing(&v), "1 of 2 nodes ready, $0.500/h; pods: 1 waiting, 3 running"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
