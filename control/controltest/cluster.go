// SPDX-License-Identifier: Apache-2.0

package controltest

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	awsv1 "karpenter/api/aws/v1"
	kwokv1alpha1 "karpenter/api/kwok/v1alpha1"
	"karpenter/api/scheme"
	v1 "karpenter/api/v1"
	"karpenter/api/v1alpha1"
	"karpenter/cloud/cloudtest"
	"karpenter/kube/events"
	"karpenter/kube/join"
	"karpenter/kube/meter"
)

// Cluster is an API server, a cloud and a clock for one case.
type Cluster struct {
	Client      client.Client
	Cloud       *cloudtest.Fake
	Clock       *clocktesting.FakePassiveClock
	Registry    *prometheus.Registry
	Recorder    events.Recorder
	Disruptions *meter.Disruptions

	// Reconcilers are what "reconcile" calls, by name; the one named "" needs
	// no name. To be filled by the test.
	Reconcilers map[string]reconcile.Reconciler
	// Commands are what the test adds to the language. Each is called with
	// the words after its name.
	Commands map[string]func(words []string) error

	setup       func(*Cluster) // makes the reconcilers, again after each crash
	death       death
	start       time.Time
	tracker     clienttesting.ObjectTracker
	mu          sync.Mutex // guards what reconcilers touch
	reconciling bool
	faults      map[string]error
	frozen      map[string]client.Object // claims as a lagging cache shows them, by name
	told        []string                 // events
}

// New returns an empty cluster.
func New(t *testing.T) *Cluster {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{kubescheme.AddToScheme, scheme.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	c := &Cluster{
		Clock:   clocktesting.NewFakePassiveClock(start),
		start:   start,
		tracker: clienttesting.NewObjectTracker(s, serializer.NewCodecFactory(s).UniversalDecoder()),
		faults:  map[string]error{},
		frozen:  map[string]client.Object{},
	}
	c.Cloud = cloudtest.NewFake(c.Clock)
	dear := cloudtest.Type("g1", "4", "8Gi", cloudtest.Offering("z1", v1.CapacityTypeOnDemand, 2))
	dear.Capacity["nvidia.com/gpu"] = resource.MustParse("1")
	c.Cloud.SetTypes(dear, cloudtest.Type("t1", "2", "4Gi", cloudtest.Offering("z1", v1.CapacityTypeSpot, 1)))
	c.Client = fake.NewClientBuilder().
		WithScheme(s).
		WithObjectTracker(c.tracker).
		WithStatusSubresource(&v1.NodeClaim{}, &v1.NodePool{}, &v1alpha1.NodeOverlay{}, &kwokv1alpha1.KWOKNodeClass{}, &awsv1.EC2NodeClass{}).
		WithIndex(&corev1.Node{}, join.NodeProviderID, func(o client.Object) []string {
			return []string{o.(*corev1.Node).Spec.ProviderID}
		}).
		WithIndex(&v1.NodeClaim{}, join.ClaimProviderID, func(o client.Object) []string {
			return []string{o.(*v1.NodeClaim).Status.ProviderID}
		}).
		WithIndex(&corev1.Pod{}, join.PodNodeName, func(o client.Object) []string {
			return []string{o.(*corev1.Pod).Spec.NodeName}
		}).
		WithIndex(&storagev1.VolumeAttachment{}, "spec.nodeName", func(o client.Object) []string {
			return []string{o.(*storagev1.VolumeAttachment).Spec.NodeName}
		}).
		WithInterceptorFuncs(c.interceptors()).
		Build()
	c.begin()
	return c
}

// begin makes what lives as long as a process.
func (c *Cluster) begin() {
	c.Registry = prometheus.NewRegistry()
	c.Recorder = events.NewPublisher(sink{c}, c.Clock)
	c.Disruptions = meter.NewDisruptions(c.Registry, c.Client)
	c.Reconcilers = map[string]reconcile.Reconciler{}
	c.Commands = map[string]func([]string) error{}
	if c.setup != nil {
		c.setup(c)
	}
}

// Setup has the function give the cluster its reconcilers, now and again after
// each crash.
func (c *Cluster) Setup(f func(*Cluster)) {
	c.setup = f
	f(c)
}

// sink keeps events for the transcript.
type sink struct{ c *Cluster }

func (s sink) Event(o runtime.Object, eventType, reason, message string) {
	s.c.Tell("event %s %s %s: %s", nameOf(o.(client.Object)), eventType, reason, message)
}

// interceptors make calls fail as the script says, and let deletion behave as
// the API server does: it takes the cluster's time and raises the generation.
func (c *Cluster) interceptors() interceptor.Funcs {
	return interceptor.Funcs{
		Get: func(ctx context.Context, w client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return c.called("get", func() error { return c.read(ctx, w, key, o, opts...) })
		},
		List: func(ctx context.Context, w client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			return c.called("list", func() error { return w.List(ctx, l, opts...) })
		},
		Create: func(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return c.called("create", func() error { return w.Create(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, w client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return c.called("patch", func() error { return w.Patch(ctx, o, p, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, w client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			return c.called("patch-"+sub, func() error { return w.SubResource(sub).Patch(ctx, o, p, opts...) })
		},
		SubResourceCreate: func(ctx context.Context, w client.Client, sub string, o, made client.Object, opts ...client.SubResourceCreateOption) error {
			return c.called("create-"+sub, func() error {
				if err := w.SubResource(sub).Create(ctx, o, made, opts...); err != nil {
					return err
				}
				return c.stampDeletion(ctx, w, o)
			})
		},
		Delete: func(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return c.called("delete", func() error {
				if err := w.Delete(ctx, o, opts...); err != nil {
					return err
				}
				return c.stampDeletion(ctx, w, o)
			})
		},
	}
}

// called makes a call of the API, unless the script has it fail or the
// process die.
func (c *Cluster) called(what string, call func() error) error {
	if err := c.fault(what); err != nil {
		return err
	}
	err := call()
	if what != "get" && what != "list" {
		c.wrote(what)
	}
	return err
}

func (c *Cluster) read(ctx context.Context, w client.Client, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if old, ok := c.frozen[key.Name].(*v1.NodeClaim); ok {
		if claim, ok := o.(*v1.NodeClaim); ok {
			old.DeepCopyInto(claim)
			return nil
		}
	}
	return w.Get(ctx, key, o, opts...)
}

// fault returns the error that the script has set for a call of a reconciler,
// once.
func (c *Cluster) fault(call string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.reconciling {
		return nil
	}
	err := c.faults[call]
	delete(c.faults, call)
	return err
}

func (c *Cluster) stampDeletion(ctx context.Context, w client.Client, o client.Object) error {
	stored := o.DeepCopyObject().(client.Object)
	err := w.Get(ctx, client.ObjectKeyFromObject(o), stored)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	now := metav1.NewTime(c.Clock.Now())
	stored.SetDeletionTimestamp(&now)
	stored.SetGeneration(stored.GetGeneration() + 1)
	gvk, err := w.GroupVersionKindFor(stored)
	if err != nil {
		return err
	}
	resource, _ := meta.UnsafeGuessKindToResource(gvk)
	return c.tracker.Update(resource, stored, stored.GetNamespace())
}

// made returns the metadata of a new object.
func (c *Cluster) made(name string, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:              name,
		UID:               types.UID("uid-of-" + name),
		Generation:        1,
		CreationTimestamp: metav1.NewTime(c.Clock.Now()),
		Labels:            maps.Clone(labels),
	}
}

// NewClaim returns a claim of pool "default", made now, without storing it.
func (c *Cluster) NewClaim(name string) *v1.NodeClaim {
	claim := &v1.NodeClaim{ObjectMeta: c.made(name, map[string]string{v1.NodePoolLabelKey: "default"})}
	claim.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: v1.GroupVersion().String(), Kind: "NodePool", Name: "default", UID: "uid-of-default",
	}}
	claim.Spec.NodeClassRef = classRef()
	claim.Spec.Requirements = []v1.NodeSelectorRequirementWithMinValues{}
	return claim
}

func (c *Cluster) newNode(name, claim string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: c.made(name, nil)}
	if claim != "" {
		node.Spec.ProviderID = providerID(claim)
	}
	node.Spec.Taints = []corev1.Taint{v1.UnregisteredNoExecuteTaint()}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return node
}

func (c *Cluster) newPool(name string) *v1.NodePool {
	pool := &v1.NodePool{ObjectMeta: c.made(name, nil)}
	pool.Spec.Template.Spec.NodeClassRef = classRef()
	pool.Spec.Template.Spec.Requirements = []v1.NodeSelectorRequirementWithMinValues{}
	return pool
}

func (c *Cluster) newClass(name string) *kwokv1alpha1.KWOKNodeClass {
	class := &kwokv1alpha1.KWOKNodeClass{ObjectMeta: c.made(name, nil)}
	class.StatusConditions(c.Clock.Now()).SetTrue(v1.ReadyCondition)
	return class
}

// newEC2Class returns an EC2NodeClass as the documentation has it, of which
// nothing is known yet.
func (c *Cluster) newEC2Class(name string) *awsv1.EC2NodeClass {
	class := &awsv1.EC2NodeClass{ObjectMeta: c.made(name, nil)}
	class.Spec = awsv1.EC2NodeClassSpec{
		Role:                       "KarpenterNodeRole-cluster",
		AMISelectorTerms:           []awsv1.AMISelectorTerm{{Alias: "al2023@latest"}},
		SubnetSelectorTerms:        []awsv1.SubnetSelectorTerm{{Tags: map[string]string{"karpenter.sh/discovery": "cluster"}}},
		SecurityGroupSelectorTerms: []awsv1.SecurityGroupSelectorTerm{{Tags: map[string]string{"karpenter.sh/discovery": "cluster"}}},
	}
	return class
}

func (c *Cluster) newOverlay(name string) *v1alpha1.NodeOverlay {
	overlay := &v1alpha1.NodeOverlay{ObjectMeta: c.made(name, nil)}
	overlay.Spec.Requirements = []v1alpha1.NodeSelectorRequirement{}
	return overlay
}

func (c *Cluster) newPod(name, node string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: c.made(name, nil)}
	pod.Namespace = "default"
	pod.Spec.NodeName = node
	return pod
}

// newBudget returns a PodDisruptionBudget for the pods of that app.
func (c *Cluster) newBudget(name, app string) *policyv1.PodDisruptionBudget {
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: c.made(name, nil)}
	budget.Namespace = "default"
	budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	return budget
}

func classRef() *v1.NodeClassReference {
	return &v1.NodeClassReference{Group: kwokv1alpha1.Group, Kind: kwokv1alpha1.Kind, Name: "default"}
}

// providerID is the ID the cloud gives the instance of the claim.
func providerID(claim string) string { return "fake:///uid-of-" + claim }

// Tell adds a line to what the reconcile under way has done.
func (c *Cluster) Tell(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told = append(c.told, fmt.Sprintf(format, args...))
}
