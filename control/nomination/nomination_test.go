// SPDX-License-Identifier: Apache-2.0

package nomination

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiversion "k8s.io/apimachinery/pkg/version"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karpenter/api/scheme"
	v1 "karpenter/api/v1"
	"karpenter/kube/join"
	"karpenter/kube/pods"
	"karpenter/world"
)

// lists is a World that has the lists to be written.
type lists struct {
	byNode map[string][]world.Nomination
	stale  []world.Nomination

	mu     sync.Mutex
	undone []world.Nomination
}

func (l *lists) Nominations(node, _ string) []world.Nomination { return l.byNode[node] }
func (l *lists) StaleNominations() []world.Nomination          { return l.stale }
func (l *lists) NotNominated(n world.Nomination) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.undone = append(l.undone, n)
}

// stage is a Reconciler before an API server with the pods a and b.
type stage struct {
	*Reconciler
	t      *testing.T
	client client.Client
	world  *lists
	fail   error // of writing a
	logged []string
	ctx    context.Context
}

func newStage(t *testing.T, objects ...client.Object) *stage {
	t.Helper()
	types := runtime.NewScheme()
	if err := errors.Join(kubescheme.AddToScheme(types), scheme.AddToScheme(types)); err != nil {
		t.Fatal(err)
	}
	s := &stage{t: t, world: &lists{byNode: map[string][]world.Nomination{}}}
	s.ctx = log.IntoContext(t.Context(), funcr.New(func(_, args string) { s.logged = append(s.logged, args) }, funcr.Options{}))
	for _, name := range []string{"a", "b"} {
		objects = append(objects, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "uid"}})
	}
	s.client = fake.NewClientBuilder().WithScheme(types).WithReturnManagedFields().WithObjects(objects...).
		WithStatusSubresource(&corev1.Pod{}).
		WithIndex(&corev1.Node{}, join.NodeProviderID, func(o client.Object) []string { return []string{o.(*corev1.Node).Spec.ProviderID} }).
		WithInterceptorFuncs(interceptor.Funcs{SubResourceApply: func(ctx context.Context, c client.Client, sub string, o runtime.ApplyConfiguration, options ...client.SubResourceApplyOption) error {
			if s.fail != nil && *o.(*applycorev1.PodApplyConfiguration).Name == "a" {
				return s.fail
			}
			return c.SubResource(sub).Apply(ctx, o, options...)
		}}).Build()
	s.Reconciler = New(s.client, s.client, s.world)
	return s
}

func to(node string, names ...string) []world.Nomination {
	var out []world.Nomination
	for _, name := range names {
		out = append(out, world.Nomination{Namespace: "default", Name: name, UID: "uid", Node: node})
	}
	return out
}

func (s *stage) pod(name string) *corev1.Pod {
	s.t.Helper()
	p := &corev1.Pod{}
	if err := s.client.Get(s.ctx, client.ObjectKey{Namespace: "default", Name: name}, p); err != nil {
		s.t.Fatal(err)
	}
	return p
}

// want checks what a pod's status names, and what of that is ours.
func (s *stage) want(name, node, ours string) {
	s.t.Helper()
	p := s.pod(name)
	if p.Status.NominatedNodeName != node || pods.Nominated(p) != ours {
		s.t.Errorf("pod %s names %q, of that ours %q; want %q and %q", name, p.Status.NominatedNodeName, pods.Nominated(p), node, ours)
	}
}

func (s *stage) reconcile(name string) {
	s.t.Helper()
	if _, err := s.Reconcile(s.ctx, request(name)); err != nil {
		s.t.Fatal(err)
	}
}

// byScheduler has kube-scheduler nominate the pod.
func (s *stage) byScheduler(name, node string) {
	s.t.Helper()
	p := s.pod(name)
	before := p.DeepCopy()
	p.Status.NominatedNodeName = node
	if err := s.client.Status().Patch(s.ctx, p, client.StrategicMergeFrom(before), client.FieldOwner("kube-scheduler")); err != nil {
		s.t.Fatal(err)
	}
}

func node(name string, taints ...corev1.Taint) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: "test://" + name, Taints: taints}}
}

func TestHookWritesPodsBeforeTheNodeIsReleased(t *testing.T) {
	s := newStage(t, node("n", v1.UnregisteredNoExecuteTaint()))
	s.world.byNode["n"] = to("n", "a", "b", "gone")
	claim := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Status: v1.NodeClaimStatus{ProviderID: "test://n"}}
	result, err := s.Registered(s.ctx, claim)
	if err != nil || !result.IsZero() {
		t.Errorf("hook answers %v, %v", result, err)
	}
	s.want("a", "n", "n")
	s.want("b", "n", "n")
	if len(s.world.undone)+len(s.logged) > 0 {
		t.Errorf("not written: %v; logged: %v", s.world.undone, s.logged)
	}
}

func TestHookNeverHoldsUpRegistration(t *testing.T) {
	s := newStage(t, node("n"))
	s.world.byNode["n"] = to("n", "a", "b")
	s.fail = errors.New("no answer")
	for _, id := range []string{"test://n", "test://nobody", ""} {
		result, err := s.Registered(s.ctx, &v1.NodeClaim{Status: v1.NodeClaimStatus{ProviderID: id}})
		if err != nil || !result.IsZero() {
			t.Errorf("provider ID %q: hook answers %v, %v", id, result, err)
		}
	}
	s.want("b", "n", "n")
	if len(s.world.undone) != 1 || s.world.undone[0].Name != "a" {
		t.Errorf("to be written again: %v, want a", s.world.undone)
	}
	if len(s.logged) != 1 || !strings.Contains(s.logged[0], "no answer") {
		t.Errorf("logged %v", s.logged)
	}
}

func TestPlacedPodsFollowTheirPlan(t *testing.T) {
	s := newStage(t, node("n"), node("m"), node("new", v1.UnregisteredNoExecuteTaint()))
	s.world.byNode["n"], s.world.byNode["m"], s.world.byNode["new"] = to("n", "a"), to("m", "a"), to("new", "b")
	s.reconcile("n")
	s.want("a", "n", "n")
	s.reconcile("m")
	s.want("a", "m", "m")
	s.reconcile("new") // is its hook's business
	s.reconcile("claim-without-a-node")
	s.want("b", "", "")
	s.world.stale = to("", "a")
	s.reconcile("")
	s.want("a", "", "")
}

func TestTheSchedulersNominationStays(t *testing.T) {
	s := newStage(t, node("n"))
	s.byScheduler("a", "other")
	s.world.byNode["n"] = to("n", "a", "b")
	s.reconcile("n")
	s.want("a", "other", "")
	s.byScheduler("b", "other")
	s.want("b", "other", "")
	s.world.stale = to("", "a", "b")
	s.reconcile("")
	s.want("a", "other", "")
	s.want("b", "other", "")
}

func TestMissingPermissionIsLoggedOnce(t *testing.T) {
	s := newStage(t, node("n"))
	s.fail = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", errors.New("no"))
	s.world.byNode["n"] = to("n", "a")
	s.reconcile("n")
	s.reconcile("n")
	if len(s.logged) != 1 || !strings.Contains(s.logged[0], "pods/status") {
		t.Errorf("logged %v", s.logged)
	}
}

func TestNominationAfterAPass(t *testing.T) {
	s := newStage(t)
	s.Follow([]string{"early"}) // before the controller runs
	s.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	s.Follow([]string{"n", "m"})
	var names []string
	for s.queue.Len() > 0 {
		r, _ := s.queue.Get()
		names = append(names, r.Name)
	}
	if got := strings.Join(names, ","); got != ",n,m" {
		t.Errorf("queued %q, want those without a plan and the nodes", got)
	}
}

func TestNominationWhenNodeAcceptsPods(t *testing.T) {
	closed, open, tainted := node("n"), node("n"), node("n", corev1.Taint{Key: "node.kubernetes.io/not-ready", Effect: "NoSchedule"})
	for _, n := range []*corev1.Node{closed, open, tainted} {
		n.Labels = map[string]string{v1.NodePoolLabelKey: "p", v1.NodeRegisteredLabelKey: "true"}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	}
	closed.Status.Conditions[0].Status = corev1.ConditionFalse
	foreign, unregistered := open.DeepCopy(), open.DeepCopy()
	delete(foreign.Labels, v1.NodePoolLabelKey)
	delete(unregistered.Labels, v1.NodeRegisteredLabelKey)
	for _, tc := range []struct {
		name     string
		old, now *corev1.Node
		want     bool
	}{
		{"gets ready", closed, open, true},
		{"loses a taint", tainted, open, true},
		{"is registered", unregistered, open, true},
		{"stays as it is", open, open, false},
		{"is not ready any more", open, closed, false},
		{"is somebody else's", closed, foreign, false},
		{"is not registered", closed, unregistered, false},
	} {
		if got := opens(tc.old, tc.now); got != tc.want {
			t.Errorf("a node that %s: opens %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestDroppedNomination(t *testing.T) {
	s := newStage(t, node("n"))
	plain := s.pod("a")
	s.world.byNode["n"] = to("n", "a")
	s.reconcile("n")
	ours := s.pod("a")
	bound, theirs := plain.DeepCopy(), ours.DeepCopy()
	bound.Spec.NodeName = "n"
	theirs.Status.NominatedNodeName = "m"
	for _, tc := range []struct {
		name     string
		old, now *corev1.Pod
		want     string
	}{
		{"dropped", ours, plain, "n"},
		{"bound", ours, bound, ""},
		{"taken over", ours, theirs, ""},
		{"never ours", plain, plain, ""},
	} {
		if got := dropped(tc.old, tc.now); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

// server answers with its version.
type server string

func (s server) ServerVersion() (*apiversion.Info, error) {
	if s == "" {
		return nil, errors.New("no answer")
	}
	return &apiversion.Info{GitVersion: string(s)}, nil
}

func TestSupported(t *testing.T) {
	for _, tc := range []struct {
		version string
		want    bool
		err     string
	}{
		{"v1.34.9", false, ""},
		{"v1.35.0", true, ""},
		{"v1.35.2-eks-1a2b3c", true, ""},
		{"v1.36.4+k3s1", true, ""},
		{"v2.0.0", true, ""},
		{"", false, "no answer"},
		{"latest", false, `"latest"`},
	} {
		ok, release, err := Supported(server(tc.version))
		if ok != tc.want || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%q: %v, %v", tc.version, ok, err)
		}
		if err == nil && release != tc.version {
			t.Errorf("%q is called %q", tc.version, release)
		}
	}
}
