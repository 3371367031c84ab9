// SPDX-License-Identifier: Apache-2.0

package static

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/control/controltest"
	"karpenter/kube/convert"
	"karpenter/model"
	"karpenter/world"
)

// stage is both controllers with a real world, which hears of claims when watch
// is called.
type stage struct {
	*controltest.Cluster
	t       *testing.T
	world   *world.World
	up      *Provisioning
	down    *Deprovisioning
	isReady bool

	mu      sync.Mutex
	created map[string]int // by reason

	failCreate, failDelete, failPods error
	lost                             bool // creations succeed, and answer with an error
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{Cluster: controltest.New(t), t: t, isReady: true, created: map[string]int{}}
	axis := model.NewAxis()
	c := convert.Converter{
		Axis: axis, Labels: v1.DefaultLabels(), StaticCapacity: true,
		Manages: func(ref *v1.NodeClassReference) bool { return cloud.Manages(s.Cloud, ref) },
	}
	s.world = world.New(axis, c.WellKnown())
	api := interceptor.NewClient(s.Client.(client.WithWatch), s.faults())
	s.up = &Provisioning{
		Client: api, Live: s.Client, World: s.world, Convert: c, Clock: s.Clock, Ready: func() bool { return s.isReady },
		Created: func(_ *v1.NodeClaim, reason string) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.created[reason]++
		},
	}
	s.down = &Deprovisioning{Client: api, Live: s.Client, World: s.world, Convert: c, Clock: s.Clock}
	return s
}

func (s *stage) faults() interceptor.Funcs {
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if s.failCreate != nil && !s.lost {
				return s.failCreate
			}
			o.SetUID(types.UID(fmt.Sprintf("uid-%p", o)))
			if err := c.Create(ctx, o, opts...); err != nil {
				return err
			}
			return s.failCreate
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if s.failDelete != nil {
				return s.failDelete
			}
			return c.Delete(ctx, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			if _, ok := l.(*corev1.PodList); ok && s.failPods != nil {
				return s.failPods
			}
			return c.List(ctx, l, opts...)
		},
	}
}

// pool creates a ready static pool and shows it to the world.
func (s *stage) pool(replicas int64, change func(*v1.NodePool)) *v1.NodePool {
	s.t.Helper()
	p := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "uid-of-p"}}
	p.Spec.Replicas = &replicas
	p.Spec.Template.Spec.NodeClassRef = s.NewClaim("x").Spec.NodeClassRef
	p.Spec.Template.Spec.Requirements = []v1.NodeSelectorRequirementWithMinValues{}
	p.StatusConditions(s.Clock.Now()).SetTrue(v1.ValidationSucceededCondition)
	p.StatusConditions(s.Clock.Now()).SetTrue(v1.NodeClassReadyCondition)
	if change != nil {
		change(p)
	}
	s.must(s.Client.Create(s.t.Context(), p))
	s.watch()
	return p
}

func limited(n string) func(*v1.NodePool) {
	return func(p *v1.NodePool) { p.Spec.Limits = v1.Limits{v1.ResourceNodes: resource.MustParse(n)} }
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// replicas changes what the pool asks for.
func (s *stage) replicas(n int64) {
	s.t.Helper()
	p := &v1.NodePool{}
	s.must(s.Client.Get(s.t.Context(), client.ObjectKey{Name: "p"}, p))
	p.Spec.Replicas = &n
	s.must(s.Client.Update(s.t.Context(), p))
	s.watch()
}

// claims returns the claims of the pool there are.
func (s *stage) claims() []v1.NodeClaim {
	s.t.Helper()
	list, err := claimsOf(s.t.Context(), s.Client, "p")
	s.must(err)
	return list
}

// names returns the names of the claims that are not being deleted.
func (s *stage) names() []string {
	out := []string{}
	for _, c := range s.claims() {
		if c.DeletionTimestamp.IsZero() {
			out = append(out, c.Name)
		}
	}
	return out
}

func (s *stage) wantClaims(n int) []v1.NodeClaim {
	s.t.Helper()
	claims := s.claims()
	if len(claims) != n {
		s.t.Fatalf("%d claims, want %d", len(claims), n)
	}
	return claims
}

// watch lets the world hear of all there is.
func (s *stage) watch() {
	s.t.Helper()
	pools := &v1.NodePoolList{}
	s.must(s.Client.List(s.t.Context(), pools))
	for i := range pools.Items {
		if p, ok := s.up.Convert.Pool(&pools.Items[i]); ok {
			s.world.SetPool(p)
		}
	}
	for _, claim := range s.claims() {
		if c, ok := s.up.Convert.Claim(&claim); ok {
			s.world.SetClaim(c)
		}
	}
}

// gone takes a claim away permanently.
func (s *stage) gone(name string) {
	s.t.Helper()
	claim := &v1.NodeClaim{}
	s.must(s.Client.Get(s.t.Context(), client.ObjectKey{Name: name}, claim))
	claim.Finalizers = nil
	s.must(s.Client.Update(s.t.Context(), claim))
	s.must(client.IgnoreNotFound(s.Client.Delete(s.t.Context(), claim)))
	s.world.DeleteClaim(name)
}

// claim creates a claim of the pool; launched ones have a Node of their name.
func (s *stage) claim(name string, launched bool, change func(*v1.NodeClaim, *corev1.Node)) {
	s.t.Helper()
	c := s.NewClaim(name)
	c.Labels = map[string]string{v1.NodePoolLabelKey: "p"}
	c.Finalizers = []string{v1.TerminationFinalizer}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("node-" + name)}}
	if launched {
		c.Status.ProviderID = "test://" + name
		c.StatusConditions(s.Clock.Now()).SetTrue(v1.InitializedCondition)
		n.Spec.ProviderID = c.Status.ProviderID
	}
	if change != nil {
		change(c, n)
	}
	status := c.Status
	s.must(s.Client.Create(s.t.Context(), c))
	c.Status = status
	s.must(s.Client.Status().Update(s.t.Context(), c))
	if launched {
		s.must(s.Client.Create(s.t.Context(), n))
	}
	s.watch()
}

// pod binds a pod to the Node.
func (s *stage) pod(node, name string, change func(*corev1.Pod)) {
	s.t.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("pod-" + name)}}
	p.Spec.NodeName = node
	if change != nil {
		change(p)
	}
	s.must(s.Client.Create(s.t.Context(), p))
}

func daemon(p *corev1.Pod) {
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d", UID: "d"}}
}

func guarded(p *corev1.Pod) { p.Annotations = map[string]string{v1.DoNotDisruptAnnotationKey: "true"} }

func costly(p *corev1.Pod) {
	p.Annotations = map[string]string{corev1.PodDeletionCost: "1000000000"}
}

func request() reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKey{Name: "p"}}
}

// fill reconciles static.provisioning and fails the test unless it comes back
// after that long.
func (s *stage) fill(after time.Duration) {
	s.t.Helper()
	got, err := s.up.Reconcile(s.t.Context(), request())
	if err != nil || got.RequeueAfter != after {
		s.t.Errorf("static.provisioning comes back after %v, %v; want %v", got.RequeueAfter, err, after)
	}
}

// shrink reconciles static.deprovisioning the same way.
func (s *stage) shrink(after time.Duration) {
	s.t.Helper()
	got, err := s.down.Reconcile(s.t.Context(), request())
	if err != nil || got.RequeueAfter != after {
		s.t.Errorf("static.deprovisioning comes back after %v, %v; want %v", got.RequeueAfter, err, after)
	}
}

// left fails the test unless these claims are not being deleted.
func (s *stage) left(names ...string) {
	s.t.Helper()
	got, want := slices.Sorted(slices.Values(s.names())), slices.Sorted(slices.Values(names))
	if !slices.Equal(got, want) {
		s.t.Errorf("left %v, want %v", got, want)
	}
}
