// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/control/termination"
	"karpenter/kube/events"
	"karpenter/kube/events/eventstest"
	"karpenter/kube/join"
)

// drainClass labels the nodes of this test.
const drainClass = "drain.test.sh/class"

// noMachines is a provider whose instances end at once.
type noMachines struct{}

func (noMachines) NodeClasses() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{{Group: "drain.test.sh", Version: "v1", Kind: "Class"}}
}

func (noMachines) Get(context.Context, string) (*cloud.Machine, error) { return &cloud.Machine{}, nil }

func (noMachines) Delete(context.Context, *v1.NodeClaim) error {
	return &cloud.NotFoundError{Err: errors.New("test")}
}

// startTermination runs the controllers of package termination until the test
// ends.
func startTermination(t *testing.T, recorder *eventstest.Recorder) {
	cluster := shared.Cluster(t)
	mgr, err := ctrl.NewManager(cluster.Config, ctrl.Options{
		Scheme: cluster.Client.Scheme(), Metrics: server.Options{BindAddress: "0"}, Logger: logr.Discard(),
	})
	check(t, err)
	index := func(o client.Object, field string, value func(client.Object) string) {
		check(t, mgr.GetFieldIndexer().IndexField(t.Context(), o, field, func(o client.Object) []string { return []string{value(o)} }))
	}
	index(&corev1.Pod{}, join.PodNodeName, func(o client.Object) string { return o.(*corev1.Pod).Spec.NodeName })
	index(&corev1.Node{}, join.NodeProviderID, func(o client.Object) string { return o.(*corev1.Node).Spec.ProviderID })
	index(&v1.NodeClaim{}, join.ClaimProviderID, func(o client.Object) string { return o.(*v1.NodeClaim).Status.ProviderID })
	index(&storagev1.VolumeAttachment{}, termination.VolumeAttachmentNodeName, func(o client.Object) string {
		return o.(*storagev1.VolumeAttachment).Spec.NodeName
	})
	metrics := termination.NewMetrics(prometheus.NewRegistry())
	queue := termination.NewQueue(mgr.GetClient(), recorder, clock.RealClock{}, metrics)
	check(t, queue.Register(mgr, 10))
	nodes := &termination.Reconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Machines: noMachines{}, Evictions: queue, Events: recorder, Clock: clock.RealClock{}, Metrics: metrics,
	}
	check(t, nodes.Register(mgr, 10))
	ended := make(chan error)
	go func() { ended <- mgr.Start(t.Context()) }()
	t.Cleanup(func() { check(t, <-ended) })
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// patience is how long eventually waits, on a busy machine.
const patience = 5 * time.Minute

// eventually waits until done, for at most patience.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if done() {
			return
		}
	}
	t.Fatalf("not within %v: %s", patience, what)
}

// drained is a Node on which nothing runs but what the test puts there. There
// is no kubelet.
type drained struct {
	t     *testing.T
	c     client.Client
	node  *corev1.Node
	claim *v1.NodeClaim
}

func newDrained(t *testing.T) *drained {
	d := &drained{t: t, c: shared.Cluster(t).Client}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "drain-"}}
	check(t, d.c.Create(t.Context(), namespace))
	name := namespace.Name
	d.node = &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{drainClass: "x"},
			Finalizers: []string{v1.TerminationFinalizer, "drain.test.sh/other"},
		},
		Spec: corev1.NodeSpec{ProviderID: "drain://" + name},
	}
	check(t, d.c.Create(t.Context(), d.node))
	d.report(d.node, func() {
		d.node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now()}}
	})
	d.claim = &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{v1.TerminationFinalizer}}}
	d.claim.Spec.NodeClassRef = &v1.NodeClassReference{Group: "drain.test.sh", Kind: "Class", Name: "x"}
	d.claim.Spec.Requirements = []v1.NodeSelectorRequirementWithMinValues{}
	check(t, d.c.Create(t.Context(), d.claim))
	d.report(d.claim, func() { d.claim.Status.ProviderID = d.node.Spec.ProviderID })
	return d
}

// report changes the status of an object that others write to as well.
func (d *drained) report(o client.Object, change func()) {
	d.t.Helper()
	stored := o.DeepCopyObject().(client.Object)
	change()
	check(d.t, d.c.Status().Patch(d.t.Context(), o, client.MergeFrom(stored)))
}

// get reads the object again and reports whether it is there.
func (d *drained) get(o client.Object) bool {
	d.t.Helper()
	err := d.c.Get(d.t.Context(), client.ObjectKeyFromObject(o), o)
	if err != nil && !apierrors.IsNotFound(err) {
		d.t.Fatal(err)
	}
	return err == nil
}

// run puts a running pod on the node.
func (d *drained) run(name string) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: d.node.Name, Name: name, Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{NodeName: d.node.Name, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	check(d.t, d.c.Create(d.t.Context(), p))
	d.report(p, func() {
		p.Status.Phase = corev1.PodRunning
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	})
	return p
}

// forbid makes a budget that never lets the pod be evicted.
func (d *drained) forbid(app string) *policyv1.PodDisruptionBudget {
	none := intstr.FromInt32(0)
	b := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: d.node.Name, Name: "none"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &none, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
	}
	check(d.t, d.c.Create(d.t.Context(), b))
	return b
}

// marked reports whether the node keeps pods and load balancers away.
func (d *drained) marked() bool {
	taint := v1.DisruptedNoScheduleTaint()
	return d.get(d.node) && d.node.Labels[corev1.LabelNodeExcludeBalancers] == "karpenter" &&
		slices.ContainsFunc(d.node.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) })
}

// release removes the finalizers of the test's objects.
func (d *drained) release() {
	for _, o := range []client.Object{d.node, d.claim} {
		stored := o.DeepCopyObject().(client.Object)
		o.SetFinalizers(nil)
		check(d.t, d.c.Patch(d.t.Context(), o, client.MergeFrom(stored)))
	}
}

// TestDrain deletes a Node with two pods on it, of which one may not be
// evicted, on a real API server: what a fake one cannot show is that evictions
// are asked for and rejected, and that writes are accepted.
func TestDrain(t *testing.T) {
	recorder := &eventstest.Recorder{}
	startTermination(t, recorder)
	d := newDrained(t)
	free, guarded, budget := d.run("free"), d.run("guarded"), d.forbid("guarded")

	check(t, d.c.Delete(t.Context(), d.node))
	eventually(t, "the free pod is evicted", func() bool { return d.get(free) && free.DeletionTimestamp != nil })
	eventually(t, "the budget that never allows an eviction is named", func() bool {
		return slices.ContainsFunc(recorder.Of("FailedDraining"), func(e events.Event) bool {
			return e.Object.GetName() == d.node.Name && strings.Contains(e.Message, "none, which never allows an eviction (maxUnavailable: 0)")
		})
	})
	if !d.get(guarded) || guarded.DeletionTimestamp != nil {
		t.Error("the guarded pod was deleted in spite of its budget")
	}
	if !d.get(d.claim) || d.claim.DeletionTimestamp == nil {
		t.Error("the claim is not being deleted")
	}
	if !d.marked() {
		t.Errorf("the node is not marked: taints %v, labels %v", d.node.Spec.Taints, d.node.Labels)
	}

	check(t, d.c.Delete(t.Context(), budget))
	eventually(t, "the guarded pod is evicted", func() bool { return d.get(guarded) && guarded.DeletionTimestamp != nil })
	for _, p := range []*corev1.Pod{free, guarded} {
		check(t, d.c.Delete(t.Context(), p, client.GracePeriodSeconds(0)))
	}
	eventually(t, "our finalizer is removed, and only ours", func() bool {
		return d.get(d.node) && slices.Equal(d.node.Finalizers, []string{"drain.test.sh/other"})
	})
	d.release()
}
