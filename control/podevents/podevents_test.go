// SPDX-License-Identifier: Apache-2.0

package podevents

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "karpenter/api/v1"
	"karpenter/kube/join"
)

func start() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func reconciler(t *testing.T, objects ...client.Object) (*Reconciler, *clocktesting.FakeClock) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	clock := clocktesting.NewFakeClock(start())
	return &Reconciler{
		Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1.NodeClaim{}).
			WithIndex(&corev1.Node{}, join.NodeProviderID, func(o client.Object) []string { return []string{o.(*corev1.Node).Spec.ProviderID} }).
			WithIndex(&corev1.Pod{}, join.PodNodeName, func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }).
			WithIndex(&v1.NodeClaim{}, join.ClaimProviderID, func(o client.Object) []string {
				return []string{o.(*v1.NodeClaim).Status.ProviderID}
			}).Build(),
		Clock:   clock,
		Managed: func(c *v1.NodeClaim) bool { return c.Labels["foreign"] == "" },
	}, clock
}

func node() *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: corev1.NodeSpec{ProviderID: "test://n"}}
}

func claim(name string) *v1.NodeClaim {
	c := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	c.Status.ProviderID = "test://n"
	return c
}

// happen reconciles the node and returns when the claim c last had an event,
// counted from the start; -1 is never.
func happen(t *testing.T, r *Reconciler) time.Duration {
	t.Helper()
	result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "n"}})
	if err != nil || result != (reconcile.Result{}) {
		t.Fatalf("got %v, %v", result, err)
	}
	c := &v1.NodeClaim{}
	if err := r.Client.Get(t.Context(), types.NamespacedName{Name: "c"}, c); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	if c.Status.LastPodEventTime.IsZero() {
		return -1
	}
	return c.Status.LastPodEventTime.Sub(start())
}

// spec 30/70: bound; again 5 s later; again 11 s later.
func TestEventsAreNotedEveryTenSeconds(t *testing.T) {
	r, clock := reconciler(t, node(), claim("c"))
	for _, step := range []struct{ after, want time.Duration }{{0, 0}, {5 * time.Second, 0}, {6 * time.Second, 11 * time.Second}} {
		clock.Step(step.after)
		if got := happen(t, r); got != step.want {
			t.Errorf("%s after the start, the last event was at %s, want %s", clock.Since(start()), got, step.want)
		}
	}
}

// After a restart all pods are listed again: nothing is noted for those that were
// bound before the last event, or with it.
func TestPodsThatExisted(t *testing.T) {
	for _, tt := range []struct {
		name  string
		noted time.Duration // the last event, before the start; 0 = never
		bound time.Duration // the pod, before the start
		want  time.Duration
	}{
		{"bound before the last event", time.Hour, 2 * time.Hour, -time.Hour},
		{"bound with the last event", time.Hour, time.Hour - 5*time.Second, -time.Hour},
		{"bound while nobody looked", time.Hour, time.Minute, 0},
		{"never noted", 0, 2 * time.Hour, 0},
	} {
		c := claim("c")
		if tt.noted > 0 {
			c.Status.LastPodEventTime = metav1.NewTime(start().Add(-tt.noted))
		}
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}, Spec: corev1.PodSpec{NodeName: "n"},
			Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
				Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(start().Add(-tt.bound)),
			}}},
		}
		r, _ := reconciler(t, node(), c, pod)
		queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		noting().Create(t.Context(), event.CreateEvent{Object: pod, IsInInitialList: true}, queue)
		request, _ := queue.Get()
		if _, err := r.Reconcile(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		if err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(c), c); err != nil {
			t.Fatal(err)
		}
		if got := c.Status.LastPodEventTime.Sub(start()); got != tt.want {
			t.Errorf("%s: the last event is at %s, want %s", tt.name, got, tt.want)
		}
		noting().Create(t.Context(), event.CreateEvent{Object: pod}, queue)
		if request, _ := queue.Get(); request != (reconcile.Request{NamespacedName: types.NamespacedName{Name: "n"}}) {
			t.Errorf("%s: a pod that comes later asks for %v", tt.name, request)
		}
	}
}

// spec 30/71: nothing to note it on.
func TestNodesWithoutClaim(t *testing.T) {
	foreign := claim("c")
	foreign.Labels["foreign"] = "true"
	for name, objects := range map[string][]client.Object{
		"no node":    {claim("c")},
		"no claim":   {node()},
		"two claims": {node(), claim("c"), claim("d")},
		"foreign":    {node(), foreign},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := reconciler(t, objects...)
			if got := happen(t, r); got != -1 {
				t.Errorf("noted an event at %s", got)
			}
		})
	}
}

func TestFilter(t *testing.T) {
	pod := func(change ...func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
		for _, c := range change {
			c(p)
		}
		return p
	}
	unbound := func(p *corev1.Pod) { p.Spec.NodeName = "" }
	daemon := func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet"}}
	}
	ended := func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }
	ending := func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: start()} }
	resizing := func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizeInProgress, Status: corev1.ConditionTrue}}
	}
	f := filter()
	create := func(p *corev1.Pod) bool { return f.Create(event.CreateEvent{Object: p}) }
	remove := func(p *corev1.Pod) bool { return f.Delete(event.DeleteEvent{Object: p}) }
	update := func(old, p *corev1.Pod) bool { return f.Update(event.UpdateEvent{ObjectOld: old, ObjectNew: p}) }
	for _, tt := range []struct {
		name      string
		got, want bool
	}{
		{"created bound", create(pod()), true},
		{"created unbound", create(pod(unbound)), false},
		{"spec 30/70 created daemon", create(pod(daemon)), false},
		{"deleted", remove(pod()), true},
		{"deleted unbound", remove(pod(unbound)), false},
		{"spec 30/70 deleted daemon", remove(pod(daemon)), false},
		{"bound", update(pod(unbound), pod()), true},
		{"spec 30/70 bound daemon", update(pod(unbound, daemon), pod(daemon)), false},
		{"ended", update(pod(), pod(ended)), true},
		{"ended unbound", update(pod(unbound), pod(unbound, ended)), false},
		{"began to end", update(pod(), pod(ending)), true},
		{"spec 46/136 a resize begins", update(pod(), pod(resizing)), true},
		{"spec 46/136 a resize ends", update(pod(resizing), pod()), true},
		{"resized still", update(pod(resizing), pod(resizing)), false},
		{"nothing of interest", update(pod(), pod()), false},
		{"still ended", update(pod(ended), pod(ended)), false},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: passes %v, want %v", tt.name, tt.got, tt.want)
		}
	}
}
