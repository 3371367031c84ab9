// SPDX-License-Identifier: Apache-2.0

package provisioningrequest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	autoscalingv1 "karpenter/api/autoscaling/v1"
	"karpenter/api/scheme"
	v1 "karpenter/api/v1"
	"karpenter/kube/convert"
	"karpenter/model"
	"karpenter/solve"
	"karpenter/world"
)

// stage is a Reconciler with an API server in memory, a real world and solver.
type stage struct {
	*Reconciler
	t     *testing.T
	world *world.World
	clock *clocktesting.FakePassiveClock
}

func newStage(t *testing.T) *stage {
	t.Helper()
	objects := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{kubescheme.AddToScheme, scheme.AddToScheme} {
		if err := add(objects); err != nil {
			t.Fatal(err)
		}
	}
	c := convert.Converter{Axis: model.NewAxis(), Labels: v1.DefaultLabels()}
	s := &stage{t: t, clock: clocktesting.NewFakePassiveClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)), world: world.New(c.Axis, c.WellKnown())}
	s.Reconciler = &Reconciler{
		Client: fake.NewClientBuilder().WithScheme(objects).WithStatusSubresource(&autoscalingv1.ProvisioningRequest{}).Build(),
		World:  s.world, Convert: c, Clock: s.clock,
	}
	s.world.SetPool(world.Pool{Name: "p", Allowed: func(time.Time, int, model.Reason) int { return 10 }})
	s.sell(true)
	return s
}

// sell has the pool launch instances with four cores, if there is capacity.
func (s *stage) sell(available bool) {
	four := model.Resources{}.With(model.CPU, 4000).With(model.Memory, 64<<30).With(model.Pods, 100).With(model.Nodes, 1)
	s.world.SetTypes("p", []*model.InstanceType{{
		Name: "t", Capacity: four, Allocatable: four,
		Requirements: model.Requirements{model.NewRequirement(model.LabelInstanceType, model.In, "t")},
		Offerings: []model.Offering{{Zone: "a", CapacityType: model.OnDemand, Price: model.Dollar, Available: available, Requirements: model.Requirements{
			model.NewRequirement(model.LabelCapacityType, model.In, model.OnDemand), model.NewRequirement(model.LabelZone, model.In, "a"),
		}}},
	}})
}

func (s *stage) create(o client.Object) {
	s.t.Helper()
	o.SetNamespace("default")
	o.SetUID(types.UID("uid-of-" + o.GetName()))
	o.SetCreationTimestamp(metav1.NewTime(s.clock.Now()))
	if err := s.Client.Create(s.t.Context(), o); err != nil {
		s.t.Fatal(err)
	}
}

// containers request that many cores.
func containers(cpu string) []corev1.Container {
	return []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}}}
}

// request creates a request of the class, with a pod set for each number of cores: "3:2"
// is two pods of three cores.
func (s *stage) request(name, class string, parameters map[string]string, sets ...string) {
	s.t.Helper()
	q := &autoscalingv1.ProvisioningRequest{ObjectMeta: metav1.ObjectMeta{Name: name}}
	q.Spec.ProvisioningClassName, q.Spec.Parameters = class, parameters
	for i, set := range sets {
		cpu, count, _ := strings.Cut(set, ":")
		template := &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("ppt-%s-%d", name, i)}}
		template.Template.Spec.Containers = containers(cpu)
		s.create(template)
		var n int32
		if _, err := fmt.Sscan(count, &n); err != nil {
			s.t.Fatal(err)
		}
		q.Spec.PodSets = append(q.Spec.PodSets, autoscalingv1.PodSet{PodTemplateRef: autoscalingv1.Reference{Name: template.Name}, Count: n})
	}
	s.create(q)
	s.reconcile(name)
}

func (s *stage) reconcile(name string) {
	s.t.Helper()
	if _, err := s.Reconcile(s.t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "default", Name: name}}); err != nil {
		s.t.Fatal(err)
	}
}

// pass decides, as provisioning does, has the requests looked at, and returns how many nodes
// are launched.
func (s *stage) pass(names ...string) int {
	s.t.Helper()
	s.clock.SetTime(s.clock.Now().Add(time.Second))
	snapshot := s.world.Snapshot(s.clock.Now())
	plan := solve.Decide(snapshot, model.DefaultPolicy())
	for _, p := range plan.Placements {
		s.world.Placed(p.Node, []model.Pod{p.Pod})
	}
	for i, l := range plan.Launches {
		s.world.Planned(world.Claim{
			Name: fmt.Sprintf("n%d-claim", i+1), Labels: map[string]string{model.LabelNodePool: l.Pool}, Requests: l.Requests, Requirements: l.Requirements,
		}, l.Pods)
	}
	for _, v := range plan.Verdicts {
		s.world.Unplaced(v.Pods)
	}
	s.Planned(snapshot, plan)
	for _, name := range names {
		s.reconcile(name)
	}
	return len(plan.Launches)
}

// node has the claim of a launch become a node.
func (s *stage) node(name string, initialized bool) {
	have := model.Resources{}.With(model.CPU, 4000).With(model.Memory, 64<<30).With(model.Pods, 100)
	labels := map[string]string{model.LabelNodePool: "p", model.LabelInstanceType: "t", model.LabelRegistered: "true", model.LabelHostname: name}
	if initialized {
		labels[model.LabelInitialized] = "true"
	}
	s.world.SetClaim(world.Claim{Name: name + "-claim", ProviderID: name, Labels: labels, Capacity: have, Allocatable: have, Consolidatable: true})
	s.world.SetNode(world.Node{Name: name, UID: name, ProviderID: name, Labels: labels, Capacity: have, Allocatable: have, Ready: true})
}

// says returns "Condition Status Reason" of the conditions in order, without Accepted True.
func (s *stage) says(name string) string {
	s.t.Helper()
	q := &autoscalingv1.ProvisioningRequest{}
	if err := s.Client.Get(s.t.Context(), client.ObjectKey{Namespace: "default", Name: name}, q); err != nil {
		s.t.Fatal(err)
	}
	var out []string
	for _, c := range q.Status.Conditions {
		if c.Type != autoscalingv1.Accepted || c.Status != metav1.ConditionTrue {
			out = append(out, fmt.Sprintf("%s %s %s", c.Type, c.Status, c.Reason))
		}
	}
	return strings.Join(out, ", ")
}

func (s *stage) wants(name, want string) {
	s.t.Helper()
	if got := s.says(name); got != want {
		s.t.Errorf("%s says %q, want %q", name, got, want)
	}
}

// asked counts the pods that the world has for requests.
func (s *stage) asked() int {
	n := 0
	for _, pending := range s.world.Snapshot(s.clock.Now()).Pending {
		for _, p := range pending.Pods {
			if p.Buffer != "" {
				n++
			}
		}
	}
	return n
}

func (s *stage) wait(d time.Duration) { s.clock.SetTime(s.clock.Now().Add(d)) }

// consumer creates a pod that uses the capacity of the request, as the API server and
// the scheduler show it.
func (s *stage) consumer(name, request, cpu, node string) {
	s.t.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{autoscalingv1.ConsumeAnnotation: request}}}
	p.Spec.Containers, p.Spec.NodeName = containers(cpu), node
	s.create(p)
	s.world.SetPod(s.Convert.Pod(p))
}

// spec 46/123: three pod sets of the class atomic are one purchase, and provisioned when
// all nodes are initialized.
func TestAtomic(t *testing.T) {
	s := newStage(t)
	s.request("train", autoscalingv1.BestEffortAtomicScaleUp, nil, "3:1", "2:2", "1:1")
	s.wants("train", "Provisioned False Provisioning")
	if n := s.pass("train"); n != 2 {
		t.Fatalf("%d launches, want 2", n)
	}
	s.wants("train", "Provisioned False Provisioning")
	s.node("n1", true)
	s.node("n2", false)
	s.pass("train")
	s.wants("train", "Provisioned False Provisioning")
	s.node("n2", true)
	if n := s.pass("train"); n != 0 {
		t.Errorf("%d launches more", n)
	}
	s.wants("train", "Provisioned True CapacityIsFound")
}

// spec 46/123: without capacity for all pods none is launched, and the request fails when it
// is not valid any more.
func TestAtomicWithoutCapacity(t *testing.T) {
	s := newStage(t)
	s.request("train", autoscalingv1.BestEffortAtomicScaleUp, map[string]string{autoscalingv1.ValidUntilSeconds: "600"}, "3:2", "5:1")
	if n := s.pass("train"); n != 0 {
		t.Errorf("%d launches", n)
	}
	s.wants("train", "Provisioned False CapacityIsNotFound")
	s.wait(9 * time.Minute)
	s.pass("train")
	s.wants("train", "Provisioned False CapacityIsNotFound")
	s.wait(time.Minute)
	s.reconcile("train")
	s.wants("train", "Provisioned False CapacityIsNotFound, Failed True CapacityIsNotFound")
	if n := s.asked(); n != 0 {
		t.Errorf("%d pods stand in for a request that has failed", n)
	}
	if n := s.pass(); n != 0 {
		t.Errorf("%d launches", n)
	}
}

// spec 46/124: the class check-capacity launches nothing, and looks again when there may be
// capacity, unless it is not to be retried.
func TestCheckCapacity(t *testing.T) {
	s := newStage(t)
	s.request("train", autoscalingv1.CheckCapacity, nil, "3:2")
	s.request("once", autoscalingv1.CheckCapacity, map[string]string{autoscalingv1.NoRetry: "true"}, "3:2")
	if n := s.pass("train", "once"); n != 0 {
		t.Errorf("%d launches", n)
	}
	s.wants("train", "Provisioned False CapacityIsNotFound")
	s.wants("once", "Provisioned False CapacityIsNotFound, Failed True CapacityIsNotFound")
	s.node("n1", true)
	s.pass("train")
	s.wants("train", "Provisioned False CapacityIsNotFound")
	s.node("n2", true)
	if n := s.pass("train"); n != 0 {
		t.Errorf("%d launches", n)
	}
	s.wants("train", "Provisioned True CapacityIsFound")
	// What is booked is booked for others.
	s.request("other", autoscalingv1.CheckCapacity, nil, "3:1")
	s.pass("train", "other")
	s.wants("other", "Provisioned False CapacityIsNotFound")
}

// spec 46/125: pods that use a request have its places: nothing is launched for both. Their
// nodes are not removed before they run.
func TestConsumed(t *testing.T) {
	s := newStage(t)
	s.request("train", autoscalingv1.BestEffortAtomicScaleUp, nil, "3:2", "4:1")
	s.pass("train")
	for i := range 3 {
		s.node(fmt.Sprintf("n%d", i+1), true)
	}
	s.pass("train")
	s.wants("train", "Provisioned True CapacityIsFound")
	s.consumer("big", "train", "4", "")
	s.consumer("a", "train", "3", "")
	s.reconcile("train")
	if n := s.asked(); n != 1 {
		t.Errorf("%d pods stand in, want that for the third pod", n)
	}
	for _, n := range s.world.Snapshot(s.clock.Now()).Nodes {
		if n.Disruption.Blocked != model.BlockedByNomination {
			t.Errorf("node %s is not kept: %q", n.Name, n.Disruption.Blocked)
		}
	}
	if n := s.pass("train"); n != 0 {
		t.Errorf("%d launches", n)
	}
	s.wants("train", "Provisioned True CapacityIsFound")
	s.consumer("b", "train", "3", "")
	s.reconcile("train")
	if n := s.asked(); n != 0 {
		t.Errorf("%d pods stand in", n)
	}
	s.wait(Booking)
	s.reconcile("train")
	s.wants("train", "Provisioned True CapacityIsFound, BookingExpired True BookingExpired")
}

// end has a pod succeed that was bound when it was created.
func (s *stage) end(name string) {
	s.t.Helper()
	p := &corev1.Pod{}
	if err := s.Client.Get(s.t.Context(), client.ObjectKey{Namespace: "default", Name: name}, p); err != nil {
		s.t.Fatal(err)
	}
	p.Status.Phase = corev1.PodSucceeded
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: p.CreationTimestamp}}
	if err := s.Client.Status().Update(s.t.Context(), p); err != nil {
		s.t.Fatal(err)
	}
	s.world.DeletePod("default", name)
}

// spec 46/125: what pods have used is not booked again when they have ended, even if they are
// deleted. A pod that ended before the request was Provisioned has used nothing of it.
func TestConsumersEnd(t *testing.T) {
	s := newStage(t)
	s.consumer("early", "train", "3", "elsewhere")
	s.end("early")
	s.wait(time.Second)
	s.request("train", autoscalingv1.BestEffortAtomicScaleUp, nil, "3:2")
	s.pass("train")
	s.node("n1", true)
	s.node("n2", true)
	s.pass("train")
	s.wants("train", "Provisioned True CapacityIsFound")
	s.reconcile("train")
	if n := s.asked(); n != 2 {
		t.Errorf("%d pods stand in, want 2: what ended early has used nothing", n)
	}
	for i, name := range []string{"a", "b"} {
		s.consumer(name, "train", "3", fmt.Sprintf("n%d", i+1))
	}
	s.end("a")
	s.end("b")
	s.reconcile("train")
	if n := s.asked(); n != 0 {
		t.Errorf("%d pods stand in for pods that have ended", n)
	}
	if err := s.Client.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}); err != nil {
		t.Fatal(err)
	}
	s.reconcile("train")
	if n := s.asked(); n != 0 {
		t.Errorf("%d pods stand in for one that has ended and is deleted", n)
	}
}

// A request that is deleted while it is read, as at the start, keeps nothing.
func TestDeletedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.request("train", autoscalingv1.BestEffortAtomicScaleUp, nil, "3:1")
		deleted := sync.OnceFunc(func() {
			if err := s.Client.Delete(t.Context(), &autoscalingv1.ProvisioningRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "train"}}); err != nil {
				t.Error(err)
			}
			go s.reconcile("train")
			synctest.Wait()
		})
		s.Client = interceptor.NewClient(s.Client.(client.WithWatch), interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
				if _, template := o.(*corev1.PodTemplate); template {
					deleted()
				}
				return c.Get(ctx, key, o, options...)
			},
		})
		if err := s.HydrateOnce(t.Context(), s.hydrate); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if n := s.asked(); n != 0 {
			t.Errorf("%d pods stand in for a request that is gone", n)
		}
	})
}

// spec 46/125: after ten minutes the booking ends, and the nodes go.
func TestBookingExpires(t *testing.T) {
	s := newStage(t)
	s.request("train", autoscalingv1.BestEffortAtomicScaleUp, nil, "3:1")
	s.pass("train")
	s.node("n1", true)
	s.pass("train")
	s.wait(Booking - 2*time.Second)
	s.pass("train")
	s.wants("train", "Provisioned True CapacityIsFound")
	snapshot := s.world.Snapshot(s.clock.Now())
	if plan := solve.Decide(snapshot, model.DefaultPolicy()); len(plan.Commands) > 0 || len(plan.Stays) != 1 || plan.Stays[0].Why != "ProvisioningRequest default/train keeps capacity on it" {
		t.Errorf("removals %v, stays %v", plan.Commands, plan.Stays)
	}
	s.wait(2 * time.Second)
	s.reconcile("train")
	s.wants("train", "Provisioned True CapacityIsFound, BookingExpired True BookingExpired")
	if plan := solve.Decide(s.world.Snapshot(s.clock.Now()), model.DefaultPolicy()); len(plan.Commands) != 1 {
		t.Errorf("the node stays: %v", plan.Stays)
	}
}

// A node that is lost while its capacity is booked is launched again; if that cannot be, the
// capacity is revoked when the booking ends.
func TestRevoked(t *testing.T) {
	s := newStage(t)
	s.request("train", autoscalingv1.BestEffortAtomicScaleUp, nil, "3:1")
	s.pass("train")
	s.node("n1", true)
	s.pass("train")
	s.world.DeleteNode("n1")
	s.world.DeleteClaim("n1-claim")
	if n := s.pass("train"); n != 1 {
		t.Errorf("%d launches, want 1", n)
	}
	s.world.DeleteClaim("n1-claim")
	s.sell(false)
	s.wait(Booking)
	s.pass("train")
	s.wants("train", "Provisioned True CapacityIsFound, CapacityRevoked True CapacityLost, BookingExpired True BookingExpired")
}

// No request is Provisioned by what was planned for another of its name, or for the pods of
// its PodTemplate before it was changed.
func TestPlannedForOthers(t *testing.T) {
	s := newStage(t)
	s.node("n1", true)
	s.request("train", autoscalingv1.CheckCapacity, nil, "3:1")
	s.pass()
	template := &corev1.PodTemplate{}
	if err := s.Client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "ppt-train-0"}, template); err != nil {
		t.Fatal(err)
	}
	template.Template.Spec.Containers = containers("5")
	if err := s.Client.Update(t.Context(), template); err != nil {
		t.Fatal(err)
	}
	s.reconcile("train")
	s.wants("train", "Provisioned False Provisioning")
	s.pass("train")
	s.wants("train", "Provisioned False CapacityIsNotFound")

	s.request("again", autoscalingv1.CheckCapacity, nil, "3:1")
	s.pass()
	q := &autoscalingv1.ProvisioningRequest{}
	if err := s.Client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "again"}, q); err != nil {
		t.Fatal(err)
	}
	if err := s.Client.Delete(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	q.ResourceVersion, q.UID, q.Status = "", "another", autoscalingv1.ProvisioningRequestStatus{}
	if err := s.Client.Create(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	s.reconcile("again") // which has not seen that the first is gone
	s.wants("again", "Provisioned False Provisioning")
	s.pass("again")
	s.wants("again", "Provisioned True CapacityIsFound")
}

// A request that lacks a PodTemplate, or exceeds what its namespace may have, waits. One of
// another class, or one that is deleted, is left alone.
func TestWaits(t *testing.T) {
	s := newStage(t)
	s.Limits = corev1.ResourceList{"cpu": resource.MustParse("5")}
	s.request("first", autoscalingv1.CheckCapacity, nil, "3:1")
	s.wait(time.Second)
	s.request("second", autoscalingv1.CheckCapacity, nil, "3:1")
	s.wants("first", "Provisioned False Provisioning")
	s.wants("second", "Provisioned False NamespaceLimits")
	if n := s.asked(); n != 1 {
		t.Errorf("%d pods stand in, want that of the first", n)
	}
	if err := s.Client.Delete(t.Context(), &autoscalingv1.ProvisioningRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "first"}}); err != nil {
		t.Fatal(err)
	}
	s.reconcile("first")
	s.reconcile("second")
	s.wants("second", "Provisioned False Provisioning")
	s.request("other", "queued-provisioning.gke.io", nil, "3:1")
	s.wants("other", "")
	q := &autoscalingv1.ProvisioningRequest{ObjectMeta: metav1.ObjectMeta{Name: "lacks"}}
	q.Spec.ProvisioningClassName, q.Spec.PodSets = autoscalingv1.CheckCapacity, []autoscalingv1.PodSet{{PodTemplateRef: autoscalingv1.Reference{Name: "missing"}, Count: 1}}
	s.create(q)
	s.reconcile("lacks")
	s.wants("lacks", "Provisioned False PodTemplateNotFound")
}

// Older requests of many pods are added up without making their pods.
func TestLimitsOfMany(t *testing.T) {
	s := newStage(t)
	s.Limits = corev1.ResourceList{"cpu": resource.MustParse("50000")}
	s.request("old", autoscalingv1.CheckCapacity, nil, "3:9999", "2:1")
	s.request("young", autoscalingv1.CheckCapacity, nil, "3:1")
	if n := testing.AllocsPerRun(1, func() { s.reconcile("young") }); n > 9999 {
		t.Errorf("%.0f allocations", n)
	}
	s.wants("young", "Provisioned False Provisioning")
	s.Limits = corev1.ResourceList{"cpu": resource.MustParse("30001")}
	s.reconcile("young")
	s.wants("young", "Provisioned False NamespaceLimits")
}

// After a restart, nothing is planned before the requests are known, and what is booked
// stays so.
func TestHydrate(t *testing.T) {
	s := newStage(t)
	s.request("train", autoscalingv1.BestEffortAtomicScaleUp, nil, "3:1")
	s.pass("train")
	s.node("n1", true)
	s.pass("train")
	next := newStage(t)
	next.Client, next.clock = s.Client, s.clock
	next.Clock = s.clock
	next.node("n1", true)
	if next.Hydrated() {
		t.Error("hydrated before anything was read")
	}
	if err := next.HydrateOnce(t.Context(), next.hydrate); err != nil || !next.Hydrated() {
		t.Fatal(err)
	}
	next.reconcile("train")
	next.wants("train", "Provisioned True CapacityIsFound")
	if n := next.pass("train"); n != 0 || next.asked() != 1 {
		t.Errorf("%d launches, %d pods stand in", n, next.asked())
	}
}
