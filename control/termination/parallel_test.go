// SPDX-License-Identifier: Apache-2.0

package termination

import (
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "karpenter/api/v1"
)

// spec 35/6: nodes deleted in parallel all go, one worker each.
func TestNodesInParallel(t *testing.T) {
	s := newStage(t)
	const nodes = 20
	for i := range nodes {
		s.declare(fmt.Sprintf("node n%d", i))
		s.declare(fmt.Sprintf("claim c%d node=n%d", i, i))
	}
	s.open()
	s.clock.Step(time.Second)
	for range 2 {
		var wg sync.WaitGroup
		for i := range nodes {
			wg.Go(func() {
				if _, err := s.nodes.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: fmt.Sprint("n", i)}}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		s.clock.Step(10 * time.Second)
	}
	left := &corev1.NodeList{}
	if err := s.client.List(t.Context(), left); err != nil || len(left.Items) != 0 {
		t.Errorf("%d nodes are left, %v; want none", len(left.Items), err)
	}
}

// spec 35/28: pods are added while the queue works.
func TestQueueInParallel(t *testing.T) {
	s := newStage(t)
	s.open()
	var wg sync.WaitGroup
	for i := range 1000 {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint(i % 50), UID: types.UID(fmt.Sprint(i))}}
		wg.Go(func() { s.queue.Add(nil, pod) })
		wg.Go(func() {
			if _, err := s.queue.Reconcile(t.Context(), keyOf(pod)); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() { s.queue.Has(pod) })
	}
	wg.Wait()
	s.work()
	if len(s.queue.entries) != 0 {
		t.Errorf("%d entries are left of pods that do not exist", len(s.queue.entries))
	}
}

func TestQueueHandsOutKeys(t *testing.T) {
	s := newStage(t)
	s.open()
	work := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[Key]())
	defer work.ShutDown()
	pod := func(name string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}}
	}
	expect := func(when string, want int) {
		t.Helper()
		if got := work.Len(); got != want {
			t.Fatalf("%s: %d keys to work on, want %d", when, got, want)
		}
		for range want {
			k, _ := work.Get()
			work.Done(k)
		}
	}
	s.queue.Add(nil, pod("early"))
	if err := s.queue.start(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	expect("added before the start", 1)
	s.queue.Add(nil, pod("late"))
	expect("added after the start", 1)
	s.queue.Add(nil, pod("late"))
	expect("added again", 0)
	soon, later := s.start, s.start.Add(time.Hour)
	s.queue.Add(&soon, pod("late"))
	expect("became urgent", 1)
	s.queue.Add(&later, pod("late"))
	expect("less urgent", 0)
}

// A claim that changes while a pass is under way is not overwritten.
func TestConflictRepeatsThePass(t *testing.T) {
	s := newStage(t)
	s.declare("node n1")
	s.declare("claim c1 node=n1")
	s.declare("pod web")
	s.open()
	s.nodes.Evictions = evictions(func() {
		claim := &v1.NodeClaim{}
		s.must(s.client.Get(t.Context(), types.NamespacedName{Name: "c1"}, claim))
		claim.Annotations = map[string]string{"touched": "true"}
		s.must(s.client.Update(t.Context(), claim))
	})
	result, err := s.nodes.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "n1"}})
	if err != nil || !result.Requeue || result.RequeueAfter != 0 {
		t.Errorf("got %v, %v; want a rate-limited requeue", result, err)
	}
}

type evictions func()

func (e evictions) Add(_ *time.Time, added ...*corev1.Pod) {
	if len(added) > 0 {
		e()
	}
}
