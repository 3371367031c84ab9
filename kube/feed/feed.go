// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	coschedulingv1alpha1 "karpenter/api/coscheduling/v1alpha1"
	v1 "karpenter/api/v1"
	"karpenter/kube/convert"
	"karpenter/kube/devices"
	"karpenter/kube/meter"
	"karpenter/kube/optional"
	"karpenter/kube/spread"
	"karpenter/kube/volumes"
	"karpenter/model"
	"karpenter/world"
)

// Feed reports which kinds of objects the world has received.
type Feed struct {
	pods   *podFeed
	kinds  []fed
	synced atomic.Bool

	// Devices is that of the Sources, nil if the informers do not know devices.
	Devices *devices.Store
}

// fed is a kind of object whose informer feeds the world.
type fed struct {
	handler
	toolscache.ResourceEventHandlerRegistration
	unread bool // the world goes without the kind
}

// HasSynced reports whether the world has seen everything that existed when
// the feeding began, but for optional kinds that cannot be read. Once true it stays true.
func (f *Feed) HasSynced() bool {
	if f.synced.Load() {
		return true
	}
	for i := range f.kinds {
		if k := &f.kinds[i]; !k.HasSynced() && (!k.optional || f.pods.unread(k.kind) == nil) {
			return false
		}
	}
	f.synced.Store(true)
	return true
}

// look is how often Start checks whether optional kinds can be read.
const look = 5 * time.Second

// Start checks regularly which optional kinds can be read, until ctx ends. It
// implements manager.Runnable.
func (f *Feed) Start(ctx context.Context) error {
	wait.UntilWithContext(ctx, f.Look, look)
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (f *Feed) NeedLeaderElection() bool { return false }

// Look checks whether optional kinds can be read now.
func (f *Feed) Look(ctx context.Context) {
	for i := range f.kinds {
		k := &f.kinds[i]
		if !k.optional {
			continue
		}
		why := f.pods.unread(k.kind)
		if k.unread == (why != nil) {
			continue
		}
		k.unread = why != nil
		f.pods.without(k.kind, k.unread)
		logger := log.FromContext(ctx).WithValues("kind", reflect.TypeOf(k.kind).Elem().Name())
		switch {
		case !k.unread:
			logger.Info("reading an optional kind of object")
		case optional.Unserved(why) && reflect.TypeOf(k.kind) == reflect.TypeFor[*resourcev1.ResourceSlice]():
			logger.Info("the API server does not serve resource.k8s.io/v1; no nodes are planned for pods with ResourceClaims")
		case optional.Unserved(why):
			logger.V(1).Info("the API server does not serve an optional kind of object; going on without it")
		default:
			logger.Error(why, "cannot read an optional kind of object; going on without it")
		}
	}
}

// handler passes one kind of object to the world.
type handler struct {
	kind   client.Object
	set    func(obj any)
	delete func(obj any)

	optional bool // plans without the kind are better than no plans
}

// Sources are the stores that the conversion of pods reads, and the other
// receivers of pods.
type Sources struct {
	Volumes *volumes.Store
	Devices *devices.Store // nil = pods with ResourceClaims are rejected
	Spread  *spread.Store  // nil = there are no default constraints, and no one asks for what selects pods
	Waits   *meter.Pods    // nil = no one measures how long pods wait

	// Unread returns why objects of an optional kind cannot be read at present. If Unread is
	// nil, every kind that the informers know can be read.
	Unread func(client.Object) error
}

// Start feeds w and the sources from the informers until ctx ends. It does not
// wait for the informers to sync. It leaves out optional kinds that the
// informers do not know.
func Start(ctx context.Context, informers cache.Informers, w *world.World, c convert.Converter, s Sources) (*Feed, error) {
	_, err := informers.GetInformer(ctx, &coschedulingv1alpha1.CoschedulingPodGroup{}, cache.BlockUntilSynced(false))
	c.Coscheduling = err == nil
	if s.Devices != nil {
		_, err := informers.GetInformer(ctx, &resourcev1.ResourceSlice{}, cache.BlockUntilSynced(false))
		if meta.IsNoMatchError(err) {
			s.Devices = nil
		}
	}
	handlers, pods := all(w, c, s)
	f := &Feed{pods: pods, Devices: s.Devices}
	for _, h := range handlers {
		informer, err := informers.GetInformer(ctx, h.kind, cache.BlockUntilSynced(false))
		if h.optional && meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("informer for %T: %w", h.kind, err)
		}
		registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    h.set,
			UpdateFunc: func(_, obj any) { h.set(obj) },
			DeleteFunc: func(obj any) {
				if tombstone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
					obj = tombstone.Obj
				}
				h.delete(obj)
			},
		})
		if err != nil {
			return nil, fmt.Errorf("watch %T: %w", h.kind, err)
		}
		f.kinds = append(f.kinds, fed{handler: h, ResourceEventHandlerRegistration: registration})
	}
	return f, nil
}

// Optional returns the kinds of objects that Start can do without.
func Optional() []client.Object {
	var out []client.Object
	axis := model.NewAxis()
	handlers, _ := all(world.New(axis, nil), convert.Converter{Axis: axis}, Sources{
		Spread: spread.New(nil), Devices: devices.New(v1.DefaultLabels()),
	})
	for _, h := range handlers {
		if h.optional {
			out = append(out, h.kind)
		}
	}
	return out
}

// Load fills w and the sources with the objects that read returns, one kind
// after the other, so that each kind comes after those that it depends on. It
// watches nothing. The API of the coscheduling plugin counts as served if it has
// objects.
func Load(w *world.World, c convert.Converter, s Sources, read func(kind client.Object) ([]client.Object, error)) error {
	groups, _ := read(&coschedulingv1alpha1.CoschedulingPodGroup{}) // an error is met again below
	c.Coscheduling = len(groups) > 0
	var failures []error
	handlers, _ := all(w, c, s)
	for _, h := range handlers {
		objects, err := read(h.kind)
		failures = append(failures, err)
		for _, o := range objects {
			h.set(o)
		}
	}
	return errors.Join(failures...)
}

// Sink passes objects to a World one by one, as Start does with the objects of
// informers.
type Sink map[reflect.Type]handler

// NewSink returns a Sink for the kinds of objects that Start watches.
func NewSink(w *world.World, c convert.Converter, s Sources) Sink {
	out := Sink{}
	handlers, _ := all(w, c, s)
	for _, h := range handlers {
		out[reflect.TypeOf(h.kind)] = h
	}
	return out
}

// Set records a new or changed object. Other kinds are ignored.
func (s Sink) Set(o client.Object) {
	if h, ok := s[reflect.TypeOf(o)]; ok {
		h.set(o)
	}
}

// Delete records that the object was deleted.
func (s Sink) Delete(o client.Object) {
	if h, ok := s[reflect.TypeOf(o)]; ok {
		h.delete(o)
	}
}

// all returns the handlers of everything that w and the sources are made of.
func all(w *world.World, c convert.Converter, s Sources) ([]handler, *podFeed) {
	c.Volumes = s.Volumes.Of
	if s.Spread != nil {
		c.Spread = s.Spread.Of
	}
	if s.Devices != nil {
		c.Devices = s.Devices.Of
		w.AnswerSelectors(s.Devices.Answered)
	}
	m := &podFeed{world: w, convert: c, Sources: s, dependent: map[string]*corev1.Pod{}, blind: map[reflect.Type]bool{}}
	return slices.Concat(handlers(w, c), optionally(podGroups(w, c)), optionally(drivers(w)), optionally(m.selecting()), optionally(m.devices()), m.handlers()), m
}

// optionally marks the kinds as optional.
func optionally(handlers []handler) []handler {
	for i := range handlers {
		handlers[i].optional = true
	}
	return handlers
}

// podGroups lists the handlers of PodGroups. Few clusters have them.
func podGroups(w *world.World, c convert.Converter) []handler {
	return []handler{
		handle(&schedulingv1beta1.PodGroup{}, func(g *schedulingv1beta1.PodGroup) { w.SetPodGroup(c.PodGroup(g)) },
			func(g *schedulingv1beta1.PodGroup) { w.DeletePodGroup(c.PodGroup(g).Name) }),
		handle(&coschedulingv1alpha1.CoschedulingPodGroup{},
			func(g *coschedulingv1alpha1.CoschedulingPodGroup) { w.SetPodGroup(c.CoschedulingPodGroup(g)) },
			func(g *coschedulingv1alpha1.CoschedulingPodGroup) { w.DeletePodGroup(c.CoschedulingPodGroup(g).Name) }),
	}
}

// drivers lists the handler of CSIDrivers. Earlier roles did not allow to read them.
func drivers(w *world.World) []handler {
	return []handler{
		handle(&storagev1.CSIDriver{}, func(d *storagev1.CSIDriver) {
			w.RequireDriver(d.Name, ptr.Deref(d.Spec.PreventPodSchedulingIfMissing, false))
		}, func(d *storagev1.CSIDriver) { w.RequireDriver(d.Name, false) }),
	}
}

// handlers lists the handlers of required kinds. Namespaces and NodePools come
// first, because pods and nodes refer to them.
func handlers(w *world.World, c convert.Converter) []handler {
	return []handler{
		handle(&corev1.Namespace{}, func(n *corev1.Namespace) { w.SetNamespace(n.Name, n.Labels) },
			func(n *corev1.Namespace) { w.DeleteNamespace(n.Name) }),
		handle(&v1.NodePool{}, func(p *v1.NodePool) {
			if pool, ok := c.Pool(p); ok {
				w.SetPool(pool)
			}
		}, func(p *v1.NodePool) { w.DeletePool(p.Name) }),
		handle(&v1.NodeClaim{}, func(n *v1.NodeClaim) {
			if claim, ok := c.Claim(n); ok {
				w.SetClaim(claim)
			}
		}, func(n *v1.NodeClaim) { w.DeleteClaim(n.Name) }),
		handle(&corev1.Node{}, func(n *corev1.Node) { w.SetNode(c.Node(n)) }, func(n *corev1.Node) { w.DeleteNode(n.Name) }),
		handle(&appsv1.DaemonSet{}, func(d *appsv1.DaemonSet) {
			if daemon, ok := c.Daemon(d); ok {
				w.SetDaemon(daemon)
				return
			}
			w.DeleteDaemon(d.Namespace + "/" + d.Name)
		}, func(d *appsv1.DaemonSet) { w.DeleteDaemon(d.Namespace + "/" + d.Name) }),
		handle(&policyv1.PodDisruptionBudget{}, func(b *policyv1.PodDisruptionBudget) {
			w.SetDisruptionBudget(c.DisruptionBudget(b))
		}, func(b *policyv1.PodDisruptionBudget) { w.DeleteDisruptionBudget(b.Namespace, b.Name) }),
	}
}

func handle[T client.Object](kind T, set, remove func(T)) handler {
	typed := func(f func(T)) func(any) {
		return func(obj any) {
			if o, ok := obj.(T); ok {
				f(o)
			}
		}
	}
	return handler{kind: kind, set: typed(set), delete: typed(remove)}
}
