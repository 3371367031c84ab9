// SPDX-License-Identifier: Apache-2.0

package capacitybuffer

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karpenter/api/autoscaling/v1beta1"
	"karpenter/api/scheme"
	v1 "karpenter/api/v1"
	"karpenter/kube/convert"
	"karpenter/kube/standins"
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
	news  []string                      // what has triggered a pass
	fail  func(client.ObjectList) error // what listing ends with
	patch func() error                  // what writing a status ends with
}

func newStage(t *testing.T) *stage {
	t.Helper()
	objects := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{kubescheme.AddToScheme, scheme.AddToScheme} {
		if err := add(objects); err != nil {
			t.Fatal(err)
		}
	}
	s := &stage{
		t:     t,
		clock: clocktesting.NewFakePassiveClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)),
		fail:  func(client.ObjectList) error { return nil },
		patch: func() error { return nil },
	}
	api := fake.NewClientBuilder().WithScheme(objects).WithStatusSubresource(&v1beta1.CapacityBuffer{}).
		WithInterceptorFuncs(interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				if err := s.fail(list); err != nil {
					return err
				}
				return c.List(ctx, list, options...)
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, options ...client.SubResourcePatchOption) error {
				if err := s.patch(); err != nil {
					return err
				}
				return c.SubResource(sub).Patch(ctx, o, p, options...)
			},
		}).Build()
	axis := model.NewAxis()
	labels := v1.DefaultLabels()
	s.world = world.New(axis, convert.Converter{Axis: axis, Labels: labels}.WellKnown())
	s.world.OnPending(func(uid string) { s.news = append(s.news, uid) })
	s.Reconciler = &Reconciler{
		Client: api, World: s.world, Convert: convert.Converter{Axis: axis, Labels: labels}, Clock: s.clock,
	}
	return s
}

func (s *stage) create(o client.Object) {
	s.t.Helper()
	if o.GetNamespace() == "" {
		o.SetNamespace("default")
	}
	o.SetUID(types.UID("uid-of-" + o.GetName()))
	o.SetGeneration(1)
	if err := s.Client.Create(s.t.Context(), o); err != nil {
		s.t.Fatal(err)
	}
}

// buffer creates a buffer of the PodTemplate "small", and changes it first.
func (s *stage) buffer(name string, change func(*v1beta1.CapacityBuffer)) *v1beta1.CapacityBuffer {
	s.t.Helper()
	b := &v1beta1.CapacityBuffer{ObjectMeta: metav1.ObjectMeta{Name: name}}
	b.Spec = v1beta1.CapacityBufferSpec{
		ProvisioningStrategy: ptr.To(v1beta1.ActiveProvisioningStrategy),
		PodTemplateRef:       &v1beta1.LocalObjectRef{Name: "small"}, Replicas: ptr.To(int32(3)),
	}
	if change != nil {
		change(b)
	}
	s.create(b)
	return b
}

// scalable has a buffer name a workload instead, for a share of its pods.
func scalable(group, kind, name string, percentage int32) func(*v1beta1.CapacityBuffer) {
	return func(b *v1beta1.CapacityBuffer) {
		b.Spec.PodTemplateRef, b.Spec.Replicas = nil, nil
		b.Spec.ScalableRef = &v1beta1.ScalableRef{APIGroup: group, Kind: kind, Name: name}
		b.Spec.Percentage = &percentage
	}
}

// pods is a template of pods with one core.
func pods() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("1")},
		}}}},
	}
}

func (s *stage) template(name string) *corev1.PodTemplate {
	s.t.Helper()
	t := &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Name: name}, Template: pods()}
	s.create(t)
	return t
}

func (s *stage) deployment(name string, replicas *int32) {
	s.t.Helper()
	s.create(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentSpec{Replicas: replicas, Template: pods()}})
}

// reconcile reconciles the buffer, namespace/name, and returns what follows.
func (s *stage) reconcile(buffer string) (time.Duration, error) {
	result, err := s.Reconcile(s.t.Context(), reconcile.Request{NamespacedName: keyOf(buffer)})
	return result.RequeueAfter, err
}

func (s *stage) must(buffer string) {
	s.t.Helper()
	if after, err := s.reconcile(buffer); err != nil || after != standins.RefreshAfter {
		s.t.Fatalf("reconcile %s: come back after %v, %v", buffer, after, err)
	}
}

func (s *stage) get(buffer string) *v1beta1.CapacityBuffer {
	s.t.Helper()
	b := &v1beta1.CapacityBuffer{}
	if err := s.Client.Get(s.t.Context(), keyOf(buffer), b); err != nil {
		s.t.Fatal(err)
	}
	return b
}

// condition returns "Status Reason: message" of a condition of the buffer.
func (s *stage) condition(buffer, kind string) string {
	s.t.Helper()
	c := meta.FindStatusCondition(s.get(buffer).Status.Conditions, kind)
	if c == nil {
		return "none"
	}
	return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
}

// wants fails unless the condition begins with the text.
func (s *stage) wants(buffer, kind, want string) {
	s.t.Helper()
	if got := s.condition(buffer, kind); !strings.HasPrefix(got, want) {
		s.t.Errorf("%s of %s is %q, want %q", kind, buffer, got, want)
	}
}

// standIns returns the names of the pods the world has for buffers.
func (s *stage) standIns() []string {
	var out []string
	for _, pending := range s.world.Snapshot(s.clock.Now()).Pending {
		for _, p := range pending.Pods {
			out = append(out, p.Key())
		}
	}
	slices.Sort(out)
	return out
}

func (s *stage) wantStandIns(n int) {
	s.t.Helper()
	if got := s.standIns(); len(got) != n {
		s.t.Errorf("the world has %d pods of buffers: %v, want %d", len(got), got, n)
	}
}

// pass decides, has the world know where pods are planned, and tells the
// reconciler, as provisioning does. It returns the plan and the buffers that
// were asked for to be looked at.
func (s *stage) pass() (*model.Plan, []string) {
	snapshot := s.world.Snapshot(s.clock.Now())
	plan := solve.Decide(snapshot, model.DefaultPolicy())
	for _, p := range plan.Placements {
		s.world.Placed(p.Node, []model.Pod{p.Pod})
	}
	for i, l := range plan.Launches {
		s.world.Planned(world.Claim{
			Name: fmt.Sprint("claim-", i), Labels: map[string]string{model.LabelNodePool: l.Pool}, Requests: l.Requests, Requirements: l.Requirements,
		}, l.Pods)
	}
	queue := &queue{}
	s.Use(queue)
	s.Planned(snapshot, plan)
	slices.Sort(queue.asked)
	return plan, queue.asked
}

// queue keeps what is added. The rest of a queue is not called.
type queue struct {
	queueOfRequests
	asked []string
}

func (q *queue) Add(r reconcile.Request) { q.asked = append(q.asked, r.String()) }

// node has the world know of a node with so many cores that runs pods, or is
// starting.
func (s *stage) node(name string, cores int64, initialized bool) {
	have := model.Resources{}.With(model.CPU, cores*1000).With(model.Memory, 64<<30).With(model.Pods, 100)
	labels := map[string]string{model.LabelNodePool: "default", model.LabelInstanceType: "t", model.LabelRegistered: "true", model.LabelHostname: name}
	if initialized {
		labels[model.LabelInitialized] = "true"
	}
	s.world.SetClaim(world.Claim{Name: name + "-claim", ProviderID: name, Labels: labels, Capacity: have, Allocatable: have, Consolidatable: true})
	s.world.SetNode(world.Node{Name: name, UID: name, ProviderID: name, Labels: labels, Capacity: have, Allocatable: have, Ready: true})
}

// pool has the world know of a pool that launches instances with four cores.
func (s *stage) pool() {
	s.world.SetPool(world.Pool{Name: "default", Allowed: func(time.Time, int, model.Reason) int { return 10 }})
	four := model.Resources{}.With(model.CPU, 4000).With(model.Memory, 64<<30).With(model.Pods, 100).With(model.Nodes, 1)
	s.world.SetTypes("default", []*model.InstanceType{{
		Name: "t", Capacity: four, Allocatable: four,
		Requirements: model.Requirements{model.NewRequirement(model.LabelInstanceType, model.In, "t")},
		Offerings: []model.Offering{{Zone: "a", CapacityType: model.OnDemand, Price: model.Dollar, Available: true, Requirements: model.Requirements{
			model.NewRequirement(model.LabelCapacityType, model.In, model.OnDemand), model.NewRequirement(model.LabelZone, model.In, "a"),
		}}},
	}})
}
