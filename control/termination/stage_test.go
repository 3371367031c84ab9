// SPDX-License-Identifier: Apache-2.0

package termination

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/kube/events/eventstest"
	"karpenter/kube/join"
)

// kubelet is the finalizer of pods on the stage: it keeps a deleted pod
// terminating until the test says that it is gone.
const kubelet = "test/kubelet"

// machines is a provider whose answers the test sets.
type machines struct {
	getErr, deleteErr error
	deletes           int // calls of Delete
}

func (m *machines) NodeClasses() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{{Group: "karpenter.test.sh", Version: "v1", Kind: "TestNodeClass"}}
}

func (m *machines) Get(context.Context, string) (*cloud.Machine, error) {
	return &cloud.Machine{}, m.getErr
}

func (m *machines) Delete(context.Context, *v1.NodeClaim) error {
	m.deletes++
	return m.deleteErr
}

// stage is a cluster in memory with the two controllers on it. Objects are
// collected until the first call of a controller.
type stage struct {
	t        *testing.T
	start    time.Time
	clock    *clocktesting.FakeClock
	objects  []client.Object
	client   client.WithWatch
	machines *machines
	events   *eventstest.Recorder
	metrics  *prometheus.Registry
	nodes    *Reconciler
	queue    *Queue

	requests bool             // drain by EvictionRequests
	answers  map[string]int   // to evictions, by pod; default 200
	late     sets.Set[string] // pods that the cache does not have yet
	calls    []string         // deletions and evictions the API server saw
	told     int              // events shown so far
}

func newStage(t *testing.T) *stage {
	// The fake client stamps deletions with the real time, so that the stage
	// has to begin there.
	start := time.Now().Truncate(time.Second)
	return &stage{
		t: t, start: start, clock: clocktesting.NewFakeClock(start),
		machines: &machines{deleteErr: &cloud.NotFoundError{Err: fmt.Errorf("test")}},
		events:   &eventstest.Recorder{}, metrics: prometheus.NewRegistry(), answers: map[string]int{}, late: sets.New[string](),
	}
}

func (s *stage) add(o client.Object) {
	if s.client == nil {
		s.objects = append(s.objects, o)
		return
	}
	if err := s.client.Create(s.t.Context(), o); err != nil {
		s.t.Fatal(err)
	}
}

// open starts the controllers; adding objects still works, but not with
// deletion timestamps.
func (s *stage) open() {
	if s.client != nil {
		return
	}
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		s.t.Fatal(err)
	}
	if err := v1.AddToScheme(scheme); err != nil {
		s.t.Fatal(err)
	}
	s.client = fake.NewClientBuilder().WithScheme(scheme).
		WithObjects(s.objects...).WithStatusSubresource(&v1.NodeClaim{}).
		WithIndex(&corev1.Pod{}, join.PodNodeName, func(o client.Object) []string {
			return []string{o.(*corev1.Pod).Spec.NodeName}
		}).
		WithIndex(&storagev1.VolumeAttachment{}, VolumeAttachmentNodeName, func(o client.Object) []string {
			return []string{o.(*storagev1.VolumeAttachment).Spec.NodeName}
		}).
		WithIndex(&corev1.Node{}, join.NodeProviderID, func(o client.Object) []string { return []string{o.(*corev1.Node).Spec.ProviderID} }).
		WithIndex(&v1.NodeClaim{}, join.ClaimProviderID, func(o client.Object) []string {
			return []string{o.(*v1.NodeClaim).Status.ProviderID}
		}).
		WithInterceptorFuncs(interceptor.Funcs{SubResourceCreate: s.evict, Create: s.create, Delete: s.delete, Patch: s.patch}).Build()
	m := NewMetrics(s.metrics)
	s.queue = NewQueue(s.client, s.events, s.clock, m)
	s.queue.Surge = Surge{Live: s.client, Timeout: 10 * time.Minute}
	if s.requests {
		s.queue.Requests.Live = s.client
	}
	s.nodes = &Reconciler{Client: s.cache(), Live: s.client, Machines: s.machines, Evictions: s.queue, Events: s.events, Clock: s.clock, Metrics: m}
}

// cache returns the client as the node controller has it: without late pods.
func (s *stage) cache() client.Client {
	return interceptor.NewClient(s.client, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		err := c.List(ctx, list, opts...)
		if all, ok := list.(*corev1.PodList); ok {
			all.Items = slices.DeleteFunc(all.Items, func(p corev1.Pod) bool { return s.late.Has(p.Name) })
		}
		return err
	}})
}

// evict answers an eviction as the API server would.
func (s *stage) evict(ctx context.Context, c client.Client, _ string, pod, _ client.Object, _ ...client.SubResourceCreateOption) error {
	s.calls = append(s.calls, "evict "+pod.GetName())
	pods := schema.GroupResource{Resource: "pods"}
	switch code := s.answers[pod.GetName()]; code {
	case 0:
		return c.Delete(ctx, pod, client.PropagationPolicy("evicted"))
	case 404:
		return apierrors.NewNotFound(pods, pod.GetName())
	case 409:
		return apierrors.NewConflict(pods, pod.GetName(), fmt.Errorf("uid"))
	case 429:
		return apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
	case 500:
		return apierrors.NewInternalError(fmt.Errorf("This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."))
	case 503:
		return apierrors.NewServiceUnavailable("down")
	default:
		return fmt.Errorf("no connection")
	}
}

func (s *stage) delete(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
	var do client.DeleteOptions
	do.ApplyOptions(opts)
	if _, ok := o.(*corev1.Pod); ok && do.PropagationPolicy == nil {
		s.calls = append(s.calls, fmt.Sprintf("delete %s grace=%ds uid=%s", o.GetName(), *do.GracePeriodSeconds, *do.Preconditions.UID))
	}
	return c.Delete(ctx, o)
}

// create answers the creation of an EvictionRequest as set by "request".
func (s *stage) create(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
	r, ok := o.(*lifecyclev1alpha1.EvictionRequest)
	if !ok {
		return c.Create(ctx, o, opts...)
	}
	s.calls = append(s.calls, fmt.Sprintf("request eviction of %s uid=%s by %s", r.Spec.Target.Pod.Name, r.Spec.Target.Pod.UID, r.Spec.Requester))
	switch s.answers["request"] {
	case 403:
		return apierrors.NewForbidden(lifecyclev1alpha1.Resource("evictionrequests"), r.Name, fmt.Errorf("no right"))
	case 404:
		return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: lifecyclev1alpha1.GroupName, Kind: "EvictionRequest"}}
	case 422:
		return apierrors.NewInvalid(schema.GroupKind{Group: lifecyclev1alpha1.GroupName, Kind: "EvictionRequest"}, r.Name, nil)
	case 503:
		return apierrors.NewServiceUnavailable("down")
	}
	return c.Create(ctx, o, opts...)
}

// patch answers a patch of a Deployment as set by "restart".
func (s *stage) patch(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	if r, ok := o.(*lifecyclev1alpha1.EvictionRequest); ok {
		s.calls = append(s.calls, fmt.Sprintf("intent of the request for %s: %s", r.Spec.Target.Pod.Name, r.Spec.Intent))
	}
	d, ok := o.(*appsv1.Deployment)
	if !ok {
		return c.Patch(ctx, o, p, opts...)
	}
	s.calls = append(s.calls, s.relative(fmt.Sprintf("restart %s at %s", d.Name, d.Spec.Template.Annotations[RestartedAtAnnotationKey])))
	deployments := schema.GroupResource{Group: "apps", Resource: "deployments"}
	switch s.answers["restart"] {
	case 403:
		return apierrors.NewForbidden(deployments, d.Name, fmt.Errorf("no right"))
	case 409:
		return apierrors.NewConflict(deployments, d.Name, fmt.Errorf("changed"))
	}
	return c.Patch(ctx, o, p, opts...)
}

// pass runs the node controller once on every Node and shows what came of it.
func (s *stage) pass() string {
	s.open()
	nodes := &corev1.NodeList{}
	if err := s.client.List(s.t.Context(), nodes); err != nil {
		s.t.Fatal(err)
	}
	var out strings.Builder
	for _, n := range nodes.Items {
		result, err := s.nodes.Reconcile(s.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: n.Name}})
		switch {
		case err != nil:
			fmt.Fprintf(&out, "%s: error %v\n", n.Name, err)
		case result.RequeueAfter > 0:
			fmt.Fprintf(&out, "%s: again in %s\n", n.Name, result.RequeueAfter)
		default:
			fmt.Fprintf(&out, "%s: done\n", n.Name)
		}
	}
	return out.String() + s.queued() + s.news()
}

// work runs the eviction queue once on every entry.
func (s *stage) work() string {
	s.open()
	keys := slices.SortedFunc(maps.Keys(s.queue.entries), func(a, b Key) int { return strings.Compare(a.Name, b.Name) })
	var out strings.Builder
	for _, k := range keys {
		switch result, err := s.queue.Reconcile(s.t.Context(), k); {
		case err != nil:
			fmt.Fprintf(&out, "%s: error %v\n", k.Name, err)
		case result.RequeueAfter > 0:
			fmt.Fprintf(&out, "%s: again in %s\n", k.Name, result.RequeueAfter)
		}
	}
	return out.String() + s.queued() + s.news()
}

// queued lists the entries of the queue.
func (s *stage) queued() string {
	var names []string
	for k, e := range s.queue.entries {
		name, d := k.Name, e.deadline
		if d != nil {
			name += s.relative("(by " + d.Format(time.RFC3339) + ")")
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return "queued: " + strings.Join(names, " ") + "\n"
}

// news shows the calls and events since it was last asked.
func (s *stage) news() string {
	var out strings.Builder
	for _, c := range s.calls {
		fmt.Fprintln(&out, c)
	}
	s.calls = nil
	all := s.events.Events()
	for _, e := range all[s.told:] {
		fmt.Fprintf(&out, "event on %s: %s %s: %s\n", e.Object.GetName(), e.Type, e.Reason, s.relative(e.Message))
	}
	s.told = len(all)
	return out.String()
}

// relative replaces times in a text by their distance from the start.
func (s *stage) relative(text string) string {
	return regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:]+(Z|[+-]\d\d:\d\d)`).ReplaceAllStringFunc(text, func(m string) string {
		at, err := time.Parse(time.RFC3339, m)
		if err != nil {
			s.t.Fatal(err)
		}
		return "start+" + at.Sub(s.start).String()
	})
}

func (s *stage) at(d time.Duration) *metav1.Time {
	t := metav1.NewTime(s.start.Add(d))
	return &t
}
