// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/api/scheme"
	v1 "karpenter/api/v1"
	"karpenter/kube/pods"
	"karpenter/sim/store"
)

// stage is an empty cluster.
type stage struct {
	*testing.T
	store *store.Store
	client.Client
}

func newStage(t *testing.T) stage {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{kubescheme.AddToScheme, scheme.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	server, err := store.NewServer(s)
	if err != nil {
		t.Fatal(err)
	}
	st := store.New(server, rand.New(rand.NewPCG(1, 2)))
	return stage{t, st, st.Client("test")}
}

func (s stage) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s stage) create(objects ...client.Object) {
	s.Helper()
	for _, o := range objects {
		s.must(s.Create(s.Context(), o))
	}
}

// reread reads the object again and reports whether it exists.
func (s stage) reread(o client.Object) bool {
	s.Helper()
	err := s.Get(s.Context(), client.ObjectKeyFromObject(o), o)
	s.must(client.IgnoreNotFound(err))
	return err == nil
}

func claim(name string) *v1.NodeClaim {
	c := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Spec.NodeClassRef = &v1.NodeClassReference{Group: "g", Kind: "k", Name: "n"}
	c.Spec.Requirements = []v1.NodeSelectorRequirementWithMinValues{}
	return c
}

func pod(name, node string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"app": "web"}}}
	p.Spec.NodeName = node
	return p
}

func locked(o client.Object) client.Patch {
	return client.MergeFromWithOptions(o.DeepCopyObject().(client.Object), client.MergeFromWithOptimisticLock{})
}

func TestNewObjects(t *testing.T) {
	s := newStage(t)
	c := claim("")
	c.GenerateName = "general-"
	c.Status.ProviderID = "not accepted"
	s.create(c)
	if len(c.Name) != len("general-")+5 || c.UID == "" || c.Generation != 1 || c.ResourceVersion == "" || c.CreationTimestamp.IsZero() {
		t.Errorf("created %+v", c.ObjectMeta)
	}
	if c.Status.ProviderID != "" {
		t.Error("an object of ours kept the status it was created with")
	}
	pool := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "general"}}
	s.create(pool)
	if b := pool.Spec.Disruption.Budgets; len(b) != 1 || b[0].Nodes != "10%" {
		t.Errorf("budgets are %v, want the default of the CRD", b)
	}
	again := claim(c.Name)
	if err := s.Create(t.Context(), again); !apierrors.IsAlreadyExists(err) {
		t.Errorf("second object of the name: %v", err)
	}
	p := pod("p", "")
	p.Status.Phase = corev1.PodRunning
	s.create(p)
	if p.Status.Phase != corev1.PodPending || *p.Spec.TerminationGracePeriodSeconds != 30 {
		t.Errorf("a new pod is %s with grace %d", p.Status.Phase, *p.Spec.TerminationGracePeriodSeconds)
	}
}

func TestStatusIsAPartOfItsOwn(t *testing.T) {
	s := newStage(t)
	c := claim("c")
	s.create(c)
	before := c.DeepCopy()
	c.Labels, c.Status.ProviderID = map[string]string{"a": "b"}, "id"
	s.must(s.Patch(t.Context(), c, locked(before)))
	if c.Status.ProviderID != "" || c.Labels["a"] != "b" || c.Generation != 1 {
		t.Errorf("a patch wrote providerID %q, labels %v, generation %d", c.Status.ProviderID, c.Labels, c.Generation)
	}
	before = c.DeepCopy()
	c.Labels, c.Status.ProviderID = nil, "id"
	s.must(s.Status().Patch(t.Context(), c, locked(before)))
	if c.Status.ProviderID != "id" || c.Labels["a"] != "b" {
		t.Errorf("a patch of the status wrote providerID %q, labels %v", c.Status.ProviderID, c.Labels)
	}
	before = c.DeepCopy()
	c.Spec.ExpireAfter = v1.MustParseNillableDuration("1h")
	s.must(s.Patch(t.Context(), c, client.MergeFrom(before)))
	if c.Generation != 2 {
		t.Errorf("a change of the spec left generation %d", c.Generation)
	}
}

func TestConflicts(t *testing.T) {
	s := newStage(t)
	c := claim("c")
	s.create(c)
	stale := c.DeepCopy()
	c.Labels = map[string]string{"a": "b"}
	s.must(s.Update(t.Context(), c))
	version := c.ResourceVersion
	s.must(s.Update(t.Context(), c))
	if c.ResourceVersion != version {
		t.Error("a write that changes nothing made a new version")
	}
	mine := stale.DeepCopy()
	mine.Labels = map[string]string{"a": "c"}
	if err := s.Patch(t.Context(), mine.DeepCopy(), locked(stale)); !apierrors.IsConflict(err) {
		t.Errorf("locked patch of an old version: %v", err)
	}
	if err := s.Update(t.Context(), mine.DeepCopy()); !apierrors.IsConflict(err) {
		t.Errorf("update of an old version: %v", err)
	}
	s.must(s.Patch(t.Context(), mine, client.MergeFrom(stale)))
	other := types.UID("other")
	if err := s.Delete(t.Context(), c, client.Preconditions{UID: &other}); !apierrors.IsConflict(err) {
		t.Errorf("delete of another UID: %v", err)
	}
	if err := s.Delete(t.Context(), c, client.Preconditions{ResourceVersion: &version}); !apierrors.IsConflict(err) {
		t.Errorf("delete of an old version: %v", err)
	}
	if err := s.Get(t.Context(), client.ObjectKey{Name: "nobody"}, c); !apierrors.IsNotFound(err) {
		t.Errorf("get of nothing: %v", err)
	}
}

func TestFinalizersHoldObjects(t *testing.T) {
	s := newStage(t)
	c := claim("c")
	c.Finalizers = []string{"karpenter.sh/termination"}
	s.create(c)
	s.must(s.Delete(t.Context(), c))
	if !s.reread(c) || c.DeletionTimestamp == nil || c.Generation != 2 {
		t.Fatalf("deleted with a finalizer: %+v", c.ObjectMeta)
	}
	before := c.DeepCopy()
	c.Finalizers = append(c.Finalizers, "example.com/another")
	if err := s.Patch(t.Context(), c, client.MergeFrom(before)); !apierrors.IsInvalid(err) {
		t.Errorf("a finalizer more on a deleted object: %v", err)
	}
	c = before.DeepCopy()
	c.Finalizers = nil
	s.must(s.Patch(t.Context(), c, locked(before)))
	if s.reread(c) {
		t.Error("the object outlived its last finalizer")
	}
}

func TestPodsEndWithGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		waiting, running := pod("waiting", ""), pod("running", "n")
		s.create(waiting, running)
		s.must(s.Delete(t.Context(), waiting))
		s.must(s.Delete(t.Context(), running))
		if s.reread(waiting) {
			t.Error("a pod that was never bound was not gone at once")
		}
		if !s.reread(running) || !running.DeletionTimestamp.Equal(&metav1.Time{Time: time.Now().Add(30 * time.Second)}) {
			t.Fatalf("a bound pod is to end at %v, want in 30 s", running.DeletionTimestamp)
		}
		time.Sleep(5 * time.Second)
		s.must(s.Delete(t.Context(), running, client.GracePeriodSeconds(60)))
		s.must(s.Delete(t.Context(), running, client.GracePeriodSeconds(10)))
		if s.reread(running); time.Until(running.DeletionTimestamp.Time) != 5*time.Second {
			t.Errorf("the pod ends in %s, want the shortest grace of all", time.Until(running.DeletionTimestamp.Time))
		}
		s.must(s.Delete(t.Context(), running, client.GracePeriodSeconds(0)))
		if s.reread(running) {
			t.Error("the pod outlived a grace of nothing")
		}
	})
}

func TestEvictions(t *testing.T) {
	s := newStage(t)
	one := intstr.FromInt32(1)
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "b", Namespace: "default"}}
	budget.Spec.MaxUnavailable, budget.Spec.Selector = &one, &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	a, b := pod("a", "n"), pod("b", "n")
	s.create(budget, a, b)
	evict := func(p *corev1.Pod) error {
		return s.SubResource("eviction").Create(t.Context(), p.DeepCopy(), &policyv1.Eviction{
			ObjectMeta:    metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name},
			DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &p.UID}},
		})
	}
	for _, p := range []*corev1.Pod{a, b} {
		p.Status.Phase, p.Status.Conditions = corev1.PodRunning, []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		s.must(s.Status().Update(t.Context(), p))
	}
	if err := evict(a); !apierrors.IsTooManyRequests(err) {
		t.Errorf("before the budget is counted: %v", err)
	}
	budget.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, DisruptionsAllowed: 1, CurrentHealthy: 2, DesiredHealthy: 1, ExpectedPods: 2}
	s.must(s.Status().Update(t.Context(), budget))
	s.must(evict(a))
	if !s.reread(a) || a.DeletionTimestamp == nil {
		t.Error("the evicted pod is not being deleted")
	}
	if s.reread(budget); budget.Status.DisruptionsAllowed != 0 || len(budget.Status.DisruptedPods) != 1 {
		t.Errorf("the budget was not spent: %+v", budget.Status)
	}
	if err := evict(b); !apierrors.IsTooManyRequests(err) {
		t.Errorf("beyond the budget: %v", err)
	}
	second := budget.DeepCopy()
	second.ObjectMeta = metav1.ObjectMeta{Name: "second", Namespace: "default"}
	s.create(second)
	if err := evict(b); !apierrors.IsInternalError(err) {
		t.Errorf("with two budgets: %v", err)
	}
	b.UID = "another"
	if err := evict(b); !apierrors.IsConflict(err) {
		t.Errorf("of another pod of the name: %v", err)
	}
}

func TestBinding(t *testing.T) {
	s := newStage(t)
	p := pod("p", "")
	s.create(p)
	nominate := func(node string) error {
		return s.Status().Apply(t.Context(), applycorev1.Pod(p.Name, p.Namespace).WithUID(p.UID).
			WithStatus(applycorev1.PodStatus().WithNominatedNodeName(node)), client.FieldOwner(pods.NominationManager))
	}
	s.must(nominate("n"))
	if s.reread(p); pods.Nominated(p) != "n" {
		t.Errorf("nominated %q by %v", p.Status.NominatedNodeName, p.ManagedFields)
	}
	p.Status.NominatedNodeName = "scheduler's"
	s.must(s.Status().Update(t.Context(), p))
	if pods.Nominated(p) != "" {
		t.Error("the field stayed ours when another wrote it")
	}
	if err := nominate("n"); !apierrors.IsConflict(err) {
		t.Errorf("nomination over that of another: %v", err)
	}
	bind := func() error {
		return s.SubResource("binding").Create(t.Context(), p, &corev1.Binding{Target: corev1.ObjectReference{Name: "m"}})
	}
	s.must(bind())
	if s.reread(p); p.Spec.NodeName != "m" || p.Status.NominatedNodeName != "" {
		t.Errorf("bound to %q, nominated %q", p.Spec.NodeName, p.Status.NominatedNodeName)
	}
	if err := bind(); !apierrors.IsConflict(err) {
		t.Errorf("bound twice: %v", err)
	}
}

func TestLogAndChanges(t *testing.T) {
	s := newStage(t)
	c := claim("c")
	s.create(c)
	c.Labels = map[string]string{"a": "b"}
	s.must(s.Update(t.Context(), c))
	s.must(s.Delete(t.Context(), c))
	gvk, err := s.store.KindOf(c)
	s.must(err)
	log := s.store.Log(gvk, 0)
	if len(log) != 3 || log[0].Type != watch.Added || log[1].Type != watch.Modified || log[2].Type != watch.Deleted {
		t.Errorf("log %v", log)
	}
	if v := log[2].Object.GetResourceVersion(); v == c.ResourceVersion {
		t.Error("a deletion is no new version")
	}
	changes := s.store.Changes()
	if len(changes) != 3 || changes[0].Old != nil || changes[2].New != nil || changes[1].By != "test" || changes[1].Verb != "update" {
		t.Errorf("changes %v", changes)
	}
	if len(s.store.Changes()) != 0 {
		t.Error("changes were told twice")
	}
}

func TestLists(t *testing.T) {
	s := newStage(t)
	s.create(pod("b", "n"), pod("a", ""), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}})
	for _, tc := range []struct {
		name    string
		options []client.ListOption
		want    int
	}{
		{"all", nil, 2},
		{"namespace", []client.ListOption{client.InNamespace("other")}, 0},
		{"labels", []client.ListOption{client.MatchingLabels{"app": "db"}}, 0},
		{"field", []client.ListOption{client.MatchingFields{"spec.nodeName": "n"}}, 1},
	} {
		list := &corev1.PodList{}
		s.must(s.List(t.Context(), list, tc.options...))
		if len(list.Items) != tc.want {
			t.Errorf("%s: %d pods, want %d", tc.name, len(list.Items), tc.want)
		}
	}
	if err := s.List(t.Context(), &corev1.PodList{}, client.MatchingFields{"spec.image": "n"}); !apierrors.IsBadRequest(err) {
		t.Errorf("a field that the server cannot select by: %v", err)
	}
	if err := s.List(t.Context(), &corev1.ResourceQuotaList{}); err == nil {
		t.Error("a kind that is not served was listed")
	}
}
