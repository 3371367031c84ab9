// SPDX-License-Identifier: Apache-2.0

package solve_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"karpenter/model"
	"karpenter/solve"
)

// BenchmarkSweep asks of every node of a cluster whether its pods can run for
// less elsewhere. The planner remembers only what it compiled, as when a pod has
// come or gone since the last pass. Besides the time it reports the CPU time of a
// pass, which a busy machine does not change much, and the heap that the planner
// keeps between passes.
func BenchmarkSweep(b *testing.B) {
	for _, c := range []struct {
		pods, shapes int
		full         bool
	}{
		{20_000, 40, true}, {20_000, 40, false}, {20_000, 300, true}, {20_000, 300, false},
		{20_000, 20_000, true}, {20_000, 20_000, false}, {100_000, 40, true},
	} {
		b.Run(fmt.Sprintf("pods=%d/shapes=%d/full=%t", c.pods, c.shapes, c.full), func(b *testing.B) {
			s := bought(c.pods, c.shapes, c.full)
			before := heap()
			var planner solve.Planner
			planner.Decide(s, model.DefaultPolicy())
			began := cpuTime(b)
			for b.Loop() {
				again := *s
				again.Nodes = slices.Clone(s.Nodes)
				planner.Decide(&again, model.DefaultPolicy())
			}
			b.ReportMetric((cpuTime(b)-began).Seconds()/float64(b.N), "cpu-s/op")
			b.ReportMetric(float64(heap()-before)/(1<<20), "kept-MiB")
			b.ReportMetric(float64(len(s.Nodes)), "nodes")
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(s.Nodes)), "µs/node")
			runtime.KeepAlive(&planner)
		})
	}
}

// heap returns how many bytes are in use when garbage has been collected.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// cpuTime returns the CPU time that the process has used.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// bought returns a cluster of the nodes that a plan launches for so many pods of so
// many shapes. Unless it is full, three of ten pods have gone since.
func bought(pods, shapes int, full bool) *model.Snapshot {
	rng := rand.New(rand.NewPCG(1, 2))
	any := map[model.Reason]int{model.Empty: pods, model.Drifted: pods, model.Underutilized: pods}
	s := &model.Snapshot{
		Now: time.Unix(1e9, 0), Resources: model.NewAxis().Names(),
		Pools:   []model.Pool{{Name: "general", Types: manyTypes(), Disruption: model.Disruption{Allowed: any}}},
		Pending: make([]model.Pending, shapes),
	}
	for i := range s.Pending {
		s.Pending[i].Shape = &model.Shape{
			Key:      fmt.Sprintf("shape-%05d", i),
			Requests: model.Resources{int64(100 + 50*rng.IntN(36)), int64(128+64*rng.IntN(60)) << 20, 1},
		}
	}
	entries := map[string]*model.Pending{}
	for i := range pods {
		p, name := &s.Pending[rng.IntN(shapes)], fmt.Sprintf("p%06d", i)
		p.Pods = append(p.Pods, model.Pod{Namespace: "default", Name: name, UID: name, Created: s.Now})
		entries[name] = p
	}
	plan := solve.Decide(s, model.DefaultPolicy())
	for i := range plan.Launches {
		l := &plan.Launches[i]
		if !full {
			l.Pods = slices.DeleteFunc(l.Pods, func(model.Pod) bool { return rng.IntN(10) < 3 })
		}
		s.Nodes = append(s.Nodes, running(s, l, fmt.Sprintf("node-%05d", i), entries))
	}
	s.Pending = nil
	return s
}

// running returns the node that a launch became, with its pods.
func running(s *model.Snapshot, l *model.Launch, name string, entries map[string]*model.Pending) model.Node {
	n := model.Node{Name: name, Claim: name, Pool: l.Pool, Registered: true, Initialized: true, Price: l.Price}
	kind := s.Pools[0].Types[slices.IndexFunc(s.Pools[0].Types, func(t *model.InstanceType) bool { return t.Name == l.Type })]
	n.Capacity, n.Allocatable = kind.Capacity, kind.Allocatable
	n.Labels = kind.Requirements.And(model.LabelRequirements(map[string]string{
		model.LabelInstanceType: l.Type, model.LabelZone: l.Zone, model.LabelCapacityType: l.CapacityType,
		model.LabelNodePool: l.Pool, model.LabelHostname: name,
	})...)
	n.Disruption = model.NodeDisruption{Consolidatable: true, Cost: 1 + float64(len(l.Pods)), Empty: len(l.Pods) == 0}
	for _, p := range l.Pods {
		shape := entries[p.Name].Shape
		n.Requested = n.Requested.Plus(shape.Requests)
		at := slices.IndexFunc(n.Movable, func(m model.Pending) bool { return m.Shape == shape })
		if at < 0 {
			at, n.Movable = len(n.Movable), append(n.Movable, model.Pending{Shape: shape})
		}
		p.From = name
		n.Movable[at].Pods = append(n.Movable[at].Pods, p)
	}
	return n
}

// manyTypes returns 60 types in three zones, on demand and as spot.
func manyTypes() []*model.InstanceType {
	var out []*model.InstanceType
	for i, cpu := range []int64{4, 8, 16, 32} {
		for j, ratio := range []int64{2, 4, 8} {
			for generation := range 5 {
				t := &model.InstanceType{
					Name:         fmt.Sprintf("f%d%d.%d", j, generation, cpu),
					Requirements: model.LabelRequirements(map[string]string{model.LabelArch: "amd64", model.LabelOS: "linux"}),
					Capacity:     model.Resources{cpu * 1000, cpu * ratio << 30, 110}.With(model.Nodes, 1),
					Allocatable:  model.Resources{cpu*1000 - 80, cpu*ratio<<30 - 1<<29, 110},
				}
				price := model.Price(cpu*(30+ratio*6)+int64(generation)*cpu) * model.Dollar / 1000
				for z, zone := range []string{"a", "b", "c"} {
					spot := price * model.Price(30+(i*7+j*3+generation*5+z)%15) / 100
					t.Offerings = append(t.Offerings, offering(zone, "on-demand", price), offering(zone, "spot", spot))
				}
				out = append(out, t)
			}
		}
	}
	return out
}

func offering(zone, capacityType string, price model.Price) model.Offering {
	return model.Offering{
		Zone: zone, CapacityType: capacityType, Price: price, Available: true,
		Requirements: model.LabelRequirements(map[string]string{model.LabelZone: zone, model.LabelCapacityType: capacityType}),
	}
}
