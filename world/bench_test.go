// SPDX-License-Identifier: Apache-2.0

package world_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"karpenter/model"
	"karpenter/scenario"
	"karpenter/world"
)

// fill makes a cluster of nodes with pods bound to them, all of 40 shapes.
func fill(nodes, podsPerNode int) *world.World {
	w := emptyWorld()
	labels := map[string]string{model.LabelNodePool: "p0", model.LabelRegistered: "true", model.LabelInitialized: "true"}
	for i := range 20 {
		labels[fmt.Sprint("example.com/label-", i)] = "value"
	}
	for i := range nodes {
		id := fmt.Sprintf("i%05d", i)
		own := maps.Clone(labels)
		own[model.LabelInstanceType] = "t"
		w.SetClaim(world.Claim{Name: "c" + id, ProviderID: id, Labels: own})
		w.SetNode(world.Node{Name: "n" + id, ProviderID: id, Labels: own, Ready: true, Allocatable: model.Resources{64000, 1 << 38, 110}})
		for j := range podsPerNode {
			w.SetPod(benchPod(fmt.Sprintf("a%05d-%03d", i, j), "n"+id, j%40))
		}
	}
	return w
}

func benchPod(name, node string, shape int) world.Pod {
	return world.Pod{
		Namespace: "default", Name: name, UID: name, Node: node, Reschedulable: true, EvictionCost: 1, Pending: node == "",
		Shape: &model.Shape{Key: fmt.Sprint("shape", shape), Requests: model.Resources{int64(shape + 1), 1 << 20, 1}},
	}
}

// BenchmarkSnapshot takes a Snapshot of 2,000 nodes and 50,000 bound pods
// after ten pods have come and gone.
func BenchmarkSnapshot(b *testing.B) {
	w := fill(2000, 25)
	now := scenario.DefaultNow()
	w.Snapshot(now)
	for i := 0; b.Loop(); i++ {
		for j := range 10 {
			node := fmt.Sprintf("ni%05d", (i*10+j)%2000)
			w.SetPod(benchPod(fmt.Sprint("x", j), node, j))
		}
		w.Snapshot(now)
	}
}

// BenchmarkFirstSnapshot is the same with everything new.
func BenchmarkFirstSnapshot(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		w := fill(2000, 25)
		b.StartTimer()
		w.Snapshot(scenario.DefaultNow())
	}
}

// BenchmarkPending has 10,000 pending pods of 40 shapes, of which one changes.
func BenchmarkPending(b *testing.B) {
	w := emptyWorld()
	for i := range 10_000 {
		w.SetPod(benchPod(fmt.Sprintf("a%05d", i), "", i%40))
	}
	for i := 0; b.Loop(); i++ {
		p := benchPod(fmt.Sprintf("a%05d", i%10_000), "", i%40)
		p.Labels = map[string]string{"changed": fmt.Sprint(i)}
		w.SetPod(p)
		w.Snapshot(scenario.DefaultNow())
	}
}

// shapesOfBench has 400 shapes, of which every other one spreads its pods.
func shapesOfBench() []*model.Shape {
	out := make([]*model.Shape, 400)
	for i := range out {
		out[i] = &model.Shape{Requests: model.Resources{int64(i + 1), 1 << 20, 1}}
		if i%2 == 0 {
			sel := model.PodSelector{
				Namespaces: []string{"default"},
				Labels:     model.NewRequirements(model.NewRequirement("app", model.In, fmt.Sprint("app", i))),
			}
			out[i].Spread = []model.Spread{{Key: model.LabelZone, MaxSkew: 1, Select: sel}}
		}
		out[i].Key = out[i].Identity(model.NewAxis().Names())
	}
	return out
}

func podOfBench(shapes []*model.Shape, i int, node string) world.Pod {
	kind := i % len(shapes)
	name := fmt.Sprintf("a%06d", i)
	return world.Pod{
		Namespace: "default", Name: name, UID: name, Node: node, Reschedulable: true, EvictionCost: 1, Pending: node == "",
		Created: scenario.DefaultNow().Add(time.Duration(i) * time.Millisecond),
		Labels:  map[string]string{"app": fmt.Sprint("app", kind), "pod": name}, Shape: shapes[kind],
	}
}

// BenchmarkOneMorePod takes a Snapshot whenever a pod has come to 2,000 nodes
// with 20,000 pods, is planned, and is bound.
func BenchmarkOneMorePod(b *testing.B) {
	w, shapes, now := twentyThousand(), shapesOfBench(), scenario.DefaultNow()
	for i := 20_000; b.Loop(); i++ {
		w.SetPod(podOfBench(shapes, i, ""))
		s := w.Snapshot(now)
		if len(s.Pending) != 1 {
			b.Fatalf("%d kinds of pods are pending, want 1", len(s.Pending))
		}
		b.StopTimer()
		w.DeletePod("default", s.Pending[0].Pods[0].Name)
		w.Snapshot(now)
		b.StartTimer()
	}
}

// BenchmarkOneMoreBinding is the same for a pod that is bound.
func BenchmarkOneMoreBinding(b *testing.B) {
	w, shapes, now := twentyThousand(), shapesOfBench(), scenario.DefaultNow()
	for i := 0; b.Loop(); i++ {
		w.SetPod(podOfBench(shapes, i%20_000, fmt.Sprintf("ni%05d", (i*7+i/20_000+1)%2000)))
		w.Snapshot(now)
	}
}

// BenchmarkManyPending takes the first Snapshot of 100,000 pending pods of 400
// shapes, with 2,000 nodes.
func BenchmarkManyPending(b *testing.B) {
	shapes := shapesOfBench()
	for b.Loop() {
		b.StopTimer()
		w := fill(2000, 0)
		w.Snapshot(scenario.DefaultNow())
		for i := range 100_000 {
			w.SetPod(podOfBench(shapes, i*7919%100_000, ""))
		}
		b.StartTimer()
		if s := w.Snapshot(scenario.DefaultNow()); len(s.Pending) != 400 {
			b.Fatalf("%d kinds of pods are pending, want 400", len(s.Pending))
		}
	}
}

// BenchmarkSetPod tells of 100,000 pods that are pending.
func BenchmarkSetPod(b *testing.B) {
	shapes := shapesOfBench()
	pods := make([]world.Pod, 100_000)
	for i := range pods {
		pods[i] = podOfBench(shapes, i, "")
	}
	for b.Loop() {
		w := emptyWorld()
		for _, p := range pods {
			w.SetPod(p)
		}
	}
}

// twentyThousand is 2,000 nodes with ten pods each, of 400 shapes.
func twentyThousand() *world.World {
	w := fill(2000, 0)
	shapes := shapesOfBench()
	for i := range 20_000 {
		w.SetPod(podOfBench(shapes, i, fmt.Sprintf("ni%05d", i%2000)))
	}
	w.Snapshot(scenario.DefaultNow())
	return w
}

// BenchmarkBudget has a PodDisruptionBudget that all pods have run out of room,
// or get some: all nodes are looked at again.
func BenchmarkBudget(b *testing.B) {
	w := twentyThousand()
	for i := 0; b.Loop(); i++ {
		w.SetDisruptionBudget(world.DisruptionBudget{
			Namespace: "default", Name: "all", Selector: "all",
			Selects: func(map[string]string) bool { return true }, Allowed: i % 2,
		})
		w.Snapshot(scenario.DefaultNow())
	}
}

// BenchmarkLeaving has a pod come while 200 nodes are being removed.
func BenchmarkLeaving(b *testing.B) {
	w := twentyThousand()
	for i := range 200 {
		w.MarkForDeletion(fmt.Sprintf("ci%05d", i*10))
	}
	shapes := shapesOfBench()
	for i := 20_000; b.Loop(); i++ {
		w.SetPod(podOfBench(shapes, i, fmt.Sprintf("ni%05d", 1+i%9)))
		w.Snapshot(scenario.DefaultNow())
		b.StopTimer()
		w.DeletePod("default", fmt.Sprintf("a%06d", i))
		b.StartTimer()
	}
}
