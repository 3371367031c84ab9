// SPDX-License-Identifier: Apache-2.0

package reboot

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/cloudtest"
	"karpenter/control/controltest"
	"karpenter/control/termination"
	"karpenter/kube/events/eventstest"
)

// stage is a NodeClaim c whose Node n is to reboot.
type stage struct {
	*testing.T
	*controltest.Cluster
	reboot *Reconciler
	queue  *termination.Queue
	events *eventstest.Recorder
	calls  []string // operation IDs of calls to the provider
	answer error    // of the next calls
}

// provider can reboot.
type provider struct {
	*cloudtest.Fake
	s *stage
}

func (p provider) Reboot(_ context.Context, _ *v1.NodeClaim, operation string) error {
	p.s.calls = append(p.s.calls, operation)
	return p.s.answer
}

// guarded refuses to evict the pod kept, as a PodDisruptionBudget makes the API
// server do.
type guarded struct{ client.Client }

func (g guarded) SubResource(name string) client.SubResourceClient {
	return evictions{g.Client.SubResource(name)}
}

type evictions struct{ client.SubResourceClient }

func (e evictions) Create(ctx context.Context, o, sub client.Object, opts ...client.SubResourceCreateOption) error {
	if o.GetName() == "kept" {
		return apierrors.NewTooManyRequests("the disruption budget b needs it", 0)
	}
	return e.SubResourceClient.Create(ctx, o, sub, opts...)
}

func newStage(t *testing.T, bound string, pods ...*corev1.Pod) *stage {
	s := &stage{T: t, Cluster: controltest.New(t), events: &eventstest.Recorder{}}
	s.queue = termination.NewQueue(guarded{s.Client}, s.events, s.Clock, termination.NewMetrics(s.Registry))
	s.restart()
	claim := s.NewClaim("c")
	claim.Finalizers = []string{v1.TerminationFinalizer}
	if bound != "" {
		claim.Annotations = map[string]string{v1.RebootGracePeriodAnnotationKey: bound}
	}
	claim.Status.ProviderID = "fake:///c"
	set := claim.StatusConditions(s.Clock.Now())
	set.SetTrue(v1.InitializedCondition)
	set.SetTrueWithReason(v1.DisruptionReasonCondition, "Unhealthy", "Unhealthy")
	set.SetTrueWithReason(v1.RebootingCondition, v1.RebootRequestedReason, "rebooting for GPU/Hung")
	status := claim.Status
	s.must(s.Client.Create(t.Context(), claim))
	claim.Status = status
	s.must(s.Client.Status().Update(t.Context(), claim))
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{v1.NodeInitializedLabelKey: "true"}}}
	node.Spec.ProviderID = "fake:///c"
	node.Status.NodeInfo.BootID = "boot-1"
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	s.must(s.Client.Create(t.Context(), node))
	for _, p := range pods {
		s.must(s.Client.Create(t.Context(), p))
	}
	return s
}

// restart begins with a new process.
func (s *stage) restart() {
	metrics := (*Metrics)(nil)
	if s.reboot != nil {
		metrics = s.reboot.Metrics
	} else {
		metrics = NewMetrics(s.Registry)
	}
	s.reboot = &Reconciler{
		Client: s.Client, Provider: provider{s.Cloud, s}, Clock: s.Clock, Recorder: s.events, Metrics: metrics, Evictions: s.queue,
	}
}

func (s *stage) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// after reconciles after the time, and lets the queue work; errors are of the
// provider.
func (s *stage) after(d time.Duration) reconcile.Result {
	s.Clock.SetTime(s.Clock.Now().Add(d))
	result, _ := s.reboot.Reconcile(s.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "c"}})
	list := &corev1.PodList{}
	s.must(s.Client.List(s.Context(), list))
	for i := range list.Items {
		p := &list.Items[i]
		_, err := s.queue.Reconcile(s.Context(), termination.Key{Namespace: p.Namespace, Name: p.Name, UID: p.UID})
		s.must(err)
	}
	return result
}

func (s *stage) claim() *v1.NodeClaim {
	c := &v1.NodeClaim{}
	s.must(s.Client.Get(s.Context(), client.ObjectKey{Name: "c"}, c))
	return c
}

func (s *stage) node() *corev1.Node {
	n := &corev1.Node{}
	s.must(s.Client.Get(s.Context(), client.ObjectKey{Name: "n"}, n))
	return n
}

// boots changes the Node's boot ID and readiness.
func (s *stage) boots(id string, ready corev1.ConditionStatus) {
	n := s.node()
	n.Status.NodeInfo.BootID, n.Status.Conditions[0].Status = id, ready
	s.must(s.Client.Status().Update(s.Context(), n))
}

// phase is the reason of Rebooting, and whether it is over.
func (s *stage) phase() string {
	c := conditions.Get(s.claim(), v1.RebootingCondition)
	return string(c.Status) + " " + c.Reason
}

func (s *stage) want(what string, got, want any) {
	s.Helper()
	if got != want {
		s.Errorf("%s: %v, want %v", what, got, want)
	}
}

func (s *stage) count(result string) float64 {
	return testutil.ToFloat64(s.reboot.Metrics.reboots.WithLabelValues(result))
}

func (s *stage) told(reason string) int {
	n := 0
	for _, e := range s.events.Events() {
		if e.Reason == reason {
			n++
		}
	}
	return n
}

func pod(name string, annotations map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), Annotations: annotations, Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{NodeName: "n"},
	}
}

func (s *stage) pods() int {
	list := &corev1.PodList{}
	s.must(s.Client.List(s.Context(), list))
	return len(list.Items)
}

// TestDrain: spec 48/42, spec 48/43, spec 48/44.
func TestDrain(t *testing.T) {
	s := newStage(t, "")
	s.after(0)
	s.want("spec 48/42: taint", len(s.node().Spec.Taints), 1)
	s.after(4 * time.Second)
	s.want("spec 48/42: calls after 4 s", len(s.calls), 0)
	s.after(time.Second)
	s.want("spec 48/42: calls after 5 s", len(s.calls), 1)

	s = newStage(t, "0s", pod("a", nil))
	s.after(0)
	s.want("spec 48/42: calls with bound 0", len(s.calls), 1)
	s.want("spec 48/42: pods with bound 0", s.pods(), 1)

	s = newStage(t, "1m0s", pod("kept", nil), pod("own", map[string]string{v1.DoNotDisruptAnnotationKey: "true"}))
	s.must(s.Client.Create(t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "kept"}}},
	}))
	s.after(0)
	s.after(59 * time.Second)
	s.want("spec 48/43: calls before the bound", len(s.calls), 0)
	kept := pod("kept", nil)
	s.want("spec 48/43: queued", s.queue.Has(kept), true)
	s.after(time.Second)
	s.want("spec 48/43: calls at the bound", len(s.calls), 1)
	s.want("spec 48/43: pods that stay", s.pods(), 2)
	s.want("spec 48/43: queued after the bound", s.queue.Has(kept) || s.queue.Has(pod("own", nil)), false)

	s = newStage(t, "", pod("own", map[string]string{v1.DoNotDisruptAnnotationKey: "true"}))
	s.after(0)
	s.after(24 * time.Hour)
	s.want("spec 48/44: calls after 24 h", len(s.calls), 0)
	s.must(s.Client.Delete(t.Context(), pod("own", nil)))
	s.after(15 * time.Second)
	s.want("spec 48/44: calls without pods", len(s.calls), 1)
}

// TestRebootHappenedAlready: spec 48/45.
func TestRebootHappenedAlready(t *testing.T) {
	s := newStage(t, "0s")
	s.answer = errors.New("lost")
	s.after(0)
	s.boots("boot-2", corev1.ConditionFalse)
	s.restart()
	s.after(time.Second)
	s.want("phase", s.phase(), "True RebootIssued")
	s.want("calls", len(s.calls), 1)
}

// TestRebootRejected: spec 48/46.
func TestRebootRejected(t *testing.T) {
	for _, err := range []error{&cloud.RebootNotImplementedError{}, &cloud.RebootFailedError{}, &cloud.NotFoundError{}} {
		s := newStage(t, "0s")
		s.answer = err
		s.after(0)
		s.want(err.Error()+": calls", len(s.calls), 1)
		s.want(err.Error()+": deleted", s.claim().DeletionTimestamp != nil, true)
		s.want(err.Error()+": RebootFailed", s.told("RebootFailed"), 1)
		s.want(err.Error()+": counted", s.count(providerError), 1.0)
		s.want(err.Error()+": taints", len(s.node().Spec.Taints), 0)
		s.after(time.Second)
		s.want(err.Error()+": calls for a NodeClaim that is deleted", len(s.calls), 1)
	}
}

// TestTransientErrors: spec 48/47. A restart does not extend the five minutes.
func TestTransientErrors(t *testing.T) {
	s := newStage(t, "0s")
	s.answer = errors.New("slow down")
	s.after(0)
	s.after(4 * time.Minute)
	s.restart()
	s.after(59 * time.Second)
	s.want("deleted before five minutes", s.claim().DeletionTimestamp != nil, false)
	s.want("same operation", s.calls[0] == s.calls[2], true)
	s.after(2 * time.Second)
	s.want("deleted after five minutes", s.claim().DeletionTimestamp != nil, true)
	s.want("counted", s.count(providerError), 1.0)
}

// TestInvalidRequest: spec 48/48.
func TestInvalidRequest(t *testing.T) {
	for _, bound := range []string{"5min", "-5m"} {
		s := newStage(t, bound)
		s.after(time.Minute)
		s.want(bound+": phase", s.phase(), "False RebootFailed")
		s.want(bound+": deleted", s.claim().DeletionTimestamp != nil, false)
		s.want(bound+": counted", s.count(invalidRequest), 1.0)
		s.want(bound+": calls", len(s.calls), 0)
	}
}

// TestRecovery: spec 48/49.
func TestRecovery(t *testing.T) {
	s := newStage(t, "0s")
	s.after(0)
	initialized := conditions.Get(s.claim(), v1.InitializedCondition)
	s.want("Initialized", string(initialized.Status)+" "+initialized.Reason+" "+initialized.Message, "Unknown Rebooting node is rebooting")
	_, labelled := s.node().Labels[v1.NodeInitializedLabelKey]
	s.want("label initialized", labelled, false)
	s.after(15 * time.Second)
	s.want("phase before the boot", s.phase(), "True RebootIssued")
	s.want("taints before the boot", len(s.node().Spec.Taints), 1)
	s.boots("boot-2", corev1.ConditionFalse)
	s.after(15 * time.Second)
	s.want("phase while NotReady", s.phase(), "True RebootIssued")
	s.want("taints while NotReady", len(s.node().Spec.Taints), 0)
	s.want("RebootObserved", s.told("RebootObserved"), 1)
	s.boots("boot-2", corev1.ConditionTrue)
	s.after(30 * time.Second)
	s.want("phase", s.phase(), "False RebootSucceeded")
	s.want("Initialized is left to initialization", conditions.Get(s.claim(), v1.InitializedCondition).Status, metav1.ConditionUnknown)
	_, stored := s.claim().Annotations[v1.RebootPreBootIDAnnotationKey]
	s.want("boot ID stored", stored, false)
	s.want("counted", s.count(succeeded), 1.0)
	s.want("recoveries", testutil.CollectAndCount(s.reboot.Metrics.recovery), 1)
}

// TestRecoveryTimeout: spec 48/50.
func TestRecoveryTimeout(t *testing.T) {
	for bound, want := range map[string]string{"3m0s": "2030-01-01T00:23:03Z", "": ""} {
		s := newStage(t, bound)
		s.after(0)
		s.after(3 * time.Second)
		s.after(2 * time.Second) // issued after 5 s
		if bound == "" && s.phase() != "True RebootIssued" {
			t.Fatal(s.phase())
		}
		s.after(20*time.Minute - time.Second)
		s.want(bound+": deleted after 19:59", s.claim().DeletionTimestamp != nil, false)
		s.after(time.Second)
		s.want(bound+": deleted", s.claim().DeletionTimestamp != nil, true)
		deadline := s.claim().Annotations[v1.NodeClaimTerminationTimestampAnnotationKey]
		if want != "" {
			want = s.Clock.Now().Add(3 * time.Minute).UTC().Format(time.RFC3339)
		}
		s.want(bound+": deadline", deadline, want)
		s.want(bound+": counted", s.count(recoveryTimeout), 1.0)
	}
}

// TestNodeGone: spec 48/51.
func TestNodeGone(t *testing.T) {
	s := newStage(t, "")
	s.must(s.Client.Delete(t.Context(), s.node()))
	s.want("polled", s.after(time.Minute).RequeueAfter, poll)
	s.after(4 * time.Minute)
	s.want("requested: counted", s.count(providerError), 1.0)

	s = newStage(t, "0s")
	s.after(0)
	s.must(s.Client.Delete(t.Context(), s.node()))
	s.after(19 * time.Minute)
	s.want("issued: counted after 19 min", s.count(recoveryTimeout), 0.0)
	s.after(time.Minute)
	s.want("issued: counted", s.count(recoveryTimeout), 1.0)
	s.want("issued: deleted", s.claim().DeletionTimestamp != nil, true)
}

// TestDeletingClaim: spec 48/54.
func TestDeletingClaim(t *testing.T) {
	s := newStage(t, "0s")
	s.must(s.Client.Delete(t.Context(), s.claim()))
	s.after(time.Second)
	s.want("calls", len(s.calls), 0)
}
