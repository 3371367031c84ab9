// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karpenter/api/scheme"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/cloudtest"
	"karpenter/kube/convert"
	"karpenter/kube/events/eventstest"
	"karpenter/model"
	"karpenter/solve"
	"karpenter/world"
)

// stage is a Provisioner with a real world and solver, an API server that
// holds pools and claims, and a catalogue that is whatever types says.
type stage struct {
	*Provisioner
	t        *testing.T
	world    *world.World
	clock    *clocktesting.FakePassiveClock
	events   *eventstest.Recorder
	registry *prometheus.Registry
	types    []*model.InstanceType
	pooled   []string // names of the pools
	isReady  bool
	fail     func(*v1.NodeClaim) error // what creating a claim ends with
}

func newStage(t *testing.T) *stage {
	t.Helper()
	objects := runtime.NewScheme()
	if err := scheme.AddToScheme(objects); err != nil {
		t.Fatal(err)
	}
	axis := model.NewAxis()
	s := &stage{
		Provisioner: New(Window{Idle: time.Second, Most: 10 * time.Second}),
		t:           t,
		clock:       clocktesting.NewFakePassiveClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)),
		events:      &eventstest.Recorder{},
		registry:    prometheus.NewRegistry(),
		types:       cloud.Types(axis, cloudtest.DefaultTypes()),
		isReady:     true,
		fail:        func(*v1.NodeClaim) error { return nil },
	}
	s.Client = fake.NewClientBuilder().WithScheme(objects).WithStatusSubresource(&v1.NodePool{}).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if claim, ok := o.(*v1.NodeClaim); ok {
				if err := s.fail(claim); err != nil {
					return err
				}
			}
			return c.Create(ctx, o, options...)
		},
	}).Build()
	s.Live = s.Client
	s.Convert = convert.Converter{Axis: axis, Labels: v1.DefaultLabels(), Manages: func(*v1.NodeClassReference) bool { return true }}
	s.world = world.New(axis, s.Convert.WellKnown())
	s.World, s.Clock, s.Events = s.world, s.clock, s.events
	s.Catalogue = s
	s.Decide = func(x *model.Snapshot) *model.Plan { return solve.Decide(x, model.DefaultPolicy()) }
	s.Ready = func() bool { return s.isReady }
	s.Metrics = NewMetrics(s.registry)
	s.world.OnPending(s.Trigger)
	return s
}

// Refresh implements Catalogue.
func (s *stage) Refresh(context.Context) error {
	for _, pool := range s.pooled {
		s.world.SetTypes(pool, s.types)
	}
	return nil
}

// pool creates a ready NodePool and shows it to the world.
func (s *stage) pool(name string, change func(*v1.NodePool)) {
	s.t.Helper()
	pool := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("pool-" + name)}}
	pool.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: "test.sh", Kind: "Class", Name: "default"}
	pool.StatusConditions(s.clock.Now()).SetTrue(v1.ValidationSucceededCondition)
	pool.StatusConditions(s.clock.Now()).SetTrue(v1.NodeClassReadyCondition)
	if change != nil {
		change(pool)
	}
	if err := s.Client.Create(s.t.Context(), pool); err != nil {
		s.t.Fatal(err)
	}
	s.pooled = append(s.pooled, name)
	known, ok := s.Convert.Pool(pool)
	if !ok || known.Unavailable != "" && pool.Spec.Replicas == nil {
		s.t.Fatalf("node pool %s is %q", pool.Name, known.Unavailable)
	}
	s.world.SetPool(known)
}

// limited limits a pool, as in limited("cpu", "10").
func limited(pairs ...string) func(*v1.NodePool) {
	return func(p *v1.NodePool) {
		p.Spec.Limits = v1.Limits{}
		for i := 0; i < len(pairs); i += 2 {
			p.Spec.Limits[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
		}
	}
}

// pod shows the world a pod that the scheduler found no place for.
func (s *stage) pod(name, cpu string, change func(*corev1.Pod)) {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(s.clock.Now())},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
		}}}},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		}}},
	}
	if change != nil {
		change(p)
	}
	s.world.SetPod(s.Convert.Pod(p))
}

// node shows the world a node of a claim, with 4 cores.
func (s *stage) node(name, pool string, change func(*corev1.Node)) {
	have := corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("16Gi"), "pods": resource.MustParse("110")}
	claim := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name + "-claim", Labels: map[string]string{v1.NodePoolLabelKey: pool}}}
	claim.Status.ProviderID, claim.Status.Capacity, claim.Status.Allocatable = "test://"+name, have, have
	known, _ := s.Convert.Claim(claim)
	s.world.SetClaim(known)
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("node-" + name), Labels: map[string]string{
			v1.NodePoolLabelKey: pool, model.LabelRegistered: "true", model.LabelInitialized: "true",
			model.LabelInstanceType: "default-instance-type", model.LabelHostname: name,
		}},
		Spec:   corev1.NodeSpec{ProviderID: "test://" + name},
		Status: corev1.NodeStatus{Capacity: have, Allocatable: have},
	}
	if change != nil {
		change(n)
	}
	s.world.SetNode(s.Convert.Node(n))
}

// reconcile reconciles and returns when it is to be called again.
func (s *stage) reconcile() time.Duration {
	s.t.Helper()
	result, err := s.Reconcile(s.t.Context(), reconcile.Request{})
	if err != nil {
		s.t.Fatalf("reconcile: %v", err)
	}
	return result.RequeueAfter
}

// passes lets time go by until the batch is complete and makes a pass.
func (s *stage) passes() error {
	s.clock.SetTime(s.clock.Now().Add(10 * time.Second))
	_, err := s.Reconcile(s.t.Context(), reconcile.Request{})
	return err
}

func (s *stage) mustPass() {
	s.t.Helper()
	if err := s.passes(); err != nil {
		s.t.Fatalf("pass: %v", err)
	}
}

// showClaims shows the world the claims there are, launched with 4 cores.
func (s *stage) showClaims() {
	have := corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("16Gi"), "pods": resource.MustParse("110")}
	claims := s.claims()
	for i := range claims {
		claims[i].Status.ProviderID = "test://" + claims[i].Name
		claims[i].Status.Capacity, claims[i].Status.Allocatable = have, have
		known, _ := s.Convert.Claim(&claims[i])
		s.world.SetClaim(known)
	}
}

// claims returns the claims there are.
func (s *stage) claims() []v1.NodeClaim {
	s.t.Helper()
	list := &v1.NodeClaimList{}
	if err := s.Client.List(s.t.Context(), list); err != nil {
		s.t.Fatal(err)
	}
	return list.Items
}

func (s *stage) wantClaims(n int) []v1.NodeClaim {
	s.t.Helper()
	claims := s.claims()
	if len(claims) != n {
		s.t.Fatalf("%d node claims, want %d", len(claims), n)
	}
	return claims
}

// said returns "Reason kind/name: message" of all events since the last call.
func (s *stage) said() []string {
	var out []string
	for _, e := range s.events.Events() {
		kind := strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", e.Object), "*v1."))
		out = append(out, fmt.Sprintf("%s %s/%s: %s", e.Reason, kind, e.Object.GetName(), e.Message))
	}
	s.events.Reset()
	slices.Sort(out)
	return out
}
