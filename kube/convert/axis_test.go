// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karpenter/model"
	"karpenter/world"
)

// asking is a pod that waits for a node, and asks for as many of a resource.
func asking(name, of string, n int) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	amount := *resource.NewQuantity(int64(n), resource.DecimalSI)
	p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceName(of): amount}}}}
	return p
}

// device is a node that has as many of a resource.
func device(name, of string, n int) *corev1.Node {
	list := corev1.ResourceList{"cpu": resource.MustParse("4"), corev1.ResourceName(of): *resource.NewQuantity(int64(n), resource.DecimalSI)}
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Capacity: list, Allocatable: list}}
}

// named returns the vector without standard resources, by name.
func named(r model.Resources, names []string) string {
	var out []string
	for i, v := range r {
		if v != 0 && !slices.Contains(model.NewAxis().Names(), names[i]) {
			out = append(out, fmt.Sprintf("%s=%d", names[i], v))
		}
	}
	return strings.Join(out, " ")
}

// TestAxisForgetsNames: names of resources that only pods have asked for are
// gone with the pods, however many there have been.
func TestAxisForgetsNames(t *testing.T) {
	c := converter()
	w := world.New(c.Axis, c.WellKnown())
	standard := len(c.Axis.Names())
	for round := range 6 {
		for i := range 1000 {
			w.SetPod(c.Pod(asking(fmt.Sprintf("p%d", i), fmt.Sprintf("example.com/r%d-%d", round, i), 1+i)))
		}
		s := w.Snapshot(time.Unix(int64(round), 0))
		if len(s.Pending) != 1000 || len(s.Resources) != standard+1000 {
			t.Fatalf("round %d: %d kinds of pods and %d resources", round, len(s.Pending), len(s.Resources))
		}
		for _, p := range s.Pending {
			var i int
			fmt.Sscanf(p.Pods[0].Name, "p%d", &i)
			if got, want := named(p.Shape.Requests, s.Resources), fmt.Sprintf("example.com/r%d-%d=%d", round, i, i+1); got != want {
				t.Fatalf("round %d: pod %s requests %s, want %s", round, p.Pods[0].Name, got, want)
			}
		}
		if round%2 == 0 {
			continue // the next round changes the pods in place
		}
		for i := range 1000 {
			w.DeletePod("default", fmt.Sprintf("p%d", i))
		}
		if got := len(w.Snapshot(time.Unix(int64(round), 1)).Resources); got != standard {
			t.Fatalf("round %d: %d resources are left, want the %d standard ones", round, got, standard)
		}
	}
	for i := range 20_000 {
		w.SetPod(c.Pod(asking("one", fmt.Sprintf("example.com/s%d", i), 1)))
	}
	s := w.Snapshot(time.Unix(100, 0))
	if len(s.Resources) > standard+2 || len(s.Pending[0].Shape.Requests) > standard+2 {
		t.Errorf("one pod after 20,000 names: %d resources, and the pod has a vector of %d", len(s.Resources), len(s.Pending[0].Shape.Requests))
	}
}

// TestAxisMemory: names that have gone take no memory.
func TestAxisMemory(t *testing.T) {
	c := converter()
	w := world.New(c.Axis, c.WellKnown())
	inUse := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := inUse()
	for i := range 1000 {
		w.SetPod(c.Pod(asking(fmt.Sprintf("p%d", i), fmt.Sprintf("example.com/%d", i), 1)))
	}
	w.Snapshot(time.Unix(1, 0))
	grown := inUse() - before
	for i := range 1000 {
		w.DeletePod("default", fmt.Sprintf("p%d", i))
	}
	w.Snapshot(time.Unix(2, 0))
	if left := inUse() - before; left > grown/4 {
		t.Errorf("%d bytes are left of %d", left, grown)
	}
	runtime.KeepAlive(w)
}

// TestAxisNameBecomesPermanent: a resource that a pod asked for first keeps its
// position once a node has it, for pods that come before and after.
func TestAxisNameBecomesPermanent(t *testing.T) {
	c := converter()
	w := world.New(c.Axis, c.WellKnown())
	late := c.Pod(asking("late", "example.com/b", 2)) // not seen by the world before the node is
	w.SetPod(c.Pod(asking("first", "example.com/a", 1)))
	w.SetPod(c.Pod(asking("second", "example.com/b", 2)))
	w.SetNode(c.Node(device("n", "example.com/b", 8)))
	w.DeletePod("default", "first")
	w.DeletePod("default", "second")
	w.SetPod(late)
	w.SetPod(c.Pod(asking("new", "example.com/b", 2)))
	w.SetPod(c.Pod(asking("other", "example.com/c", 3)))
	s := w.Snapshot(time.Unix(1, 0))
	if len(s.Pending) != 2 || len(s.Pending[0].Pods) != 2 {
		t.Fatalf("the pods are %+v", s.Pending)
	}
	if a, b := named(s.Pending[0].Shape.Requests, s.Resources), named(s.Pending[1].Shape.Requests, s.Resources); a != "example.com/b=2" || b != "example.com/c=3" {
		t.Errorf("the pods request %q and %q", a, b)
	}
	if got := named(s.Nodes[0].Allocatable, s.Resources); got != "example.com/b=8" || !s.Pending[0].Shape.Requests.Fits(s.Nodes[0].Allocatable.With(model.Pods, 9)) {
		t.Errorf("the node has %q", got)
	}
}

// TestAxisDaemonNames: what a daemon's newest pod asked for stays named after
// the pod has gone, and no longer than the DaemonSet.
func TestAxisDaemonNames(t *testing.T) {
	c := converter()
	w := world.New(c.Axis, c.WellKnown())
	standard := len(c.Axis.Names())
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "d"}}
	set.Spec.Template.Spec = asking("", "example.com/template", 1).Spec
	daemon, ok := c.Daemon(set)
	if !ok {
		t.Fatal("no room is kept")
	}
	w.SetDaemon(daemon)
	p := asking("d-1", "example.com/live", 2)
	controller := true
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d", Controller: &controller}}
	p.UID = "1"
	w.SetPod(c.Pod(p))
	w.DeletePod("default", "d-1")
	w.SetPod(c.Pod(asking("web", "example.com/other", 3)))
	s := w.Snapshot(time.Unix(1, 0))
	if got := named(s.Daemons[0].Shape.Requests, s.Resources); got != "example.com/live=2" {
		t.Errorf("the daemon requests %q, want what its newest pod does", got)
	}
	if got := named(s.Pending[0].Shape.Requests, s.Resources); got != "example.com/other=3" {
		t.Errorf("the pod requests %q", got)
	}
	w.DeleteDaemon("default/d")
	w.DeletePod("default", "web")
	if got := w.Snapshot(time.Unix(2, 0)).Resources; len(got) != standard {
		t.Errorf("the names are %v, want the standard ones", got)
	}
}

// TestAxisConcurrently: while names come and go, some of them permanently, no
// Snapshot confuses two of them.
func TestAxisConcurrently(t *testing.T) {
	c := converter()
	w := world.New(c.Axis, c.WellKnown())
	var workers sync.WaitGroup
	for g := range 4 {
		workers.Go(func() {
			for i := range 1500 {
				name := fmt.Sprintf("p%d-%d", g, i%7)
				if i%5 == 4 {
					w.DeletePod("default", name)
					continue
				}
				of := (g + i) % 40
				w.SetPod(c.Pod(asking(name, fmt.Sprintf("example.com/r%d", of), of+1)))
				if i%100 == 50 {
					kind := i / 100
					w.SetNode(c.Node(device(fmt.Sprintf("n%d", kind), fmt.Sprintf("example.com/r%d", kind), 100+kind)))
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { workers.Wait(); close(done) }()
	check := func(s *model.Snapshot) {
		for _, p := range s.Pending {
			var of, n int
			got := named(p.Shape.Requests, s.Resources)
			if _, err := fmt.Sscanf(got, "example.com/r%d=%d", &of, &n); err != nil || n != of+1 || strings.Contains(got, " ") || !strings.Contains(p.Shape.Key, got) {
				t.Errorf("pods %s request %q, and their key is %s", p.Pods[0].Name, got, p.Shape.Key)
			}
		}
		for _, node := range s.Nodes {
			if got, want := named(node.Allocatable, s.Resources), fmt.Sprintf("example.com/r%s=%d", node.Name[1:], node.Allocatable[len(node.Allocatable)-1]); got != want {
				t.Errorf("node %s has %q, want %q", node.Name, got, want)
			}
		}
	}
	for now := int64(1); ; now++ {
		s := w.Snapshot(time.Unix(now, 0))
		check(s)
		select {
		case <-done:
			check(s) // nor does it change
			check(w.Snapshot(time.Unix(now+1, 0)))
			return
		default:
		}
	}
}
