// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/kube/events"
)

// Watched is a kind of object whose conditions are published.
type Watched struct {
	Object client.Object // an empty one of the kind
	Of     func(client.Object) []metav1.Condition
	// Group and Kind are the API's, Name the kind's in names of metrics.
	Group, Kind, Name string
	// Keys are of labels of the object that label the series, too.
	Keys []string
	// Tell reports whether to publish events about the object; nil = always.
	Tell func(client.Object) bool
	// Twin also publishes the series under their older names, which are the
	// same for all kinds.
	Twin bool
}

// Conditions publishes metrics of the conditions of objects, of how long
// conditions last, and of how long deletions take. It also publishes events
// when conditions change and when finalizers are removed. Objects come from
// informers. While leads reports false, it publishes and counts nothing. A
// change that happens while no process leads is not counted. Safe for
// concurrent use. Make one with NewConditions.
type Conditions struct {
	leads  func() bool
	clock  clock.PassiveClock
	events events.Recorder
	twins  *conditionMetrics
	kinds  []*watchedKind
}

// watchedKind is one kind with the objects there are of it.
type watchedKind struct {
	Watched
	*conditionMetrics

	mu      sync.Mutex
	objects map[types.NamespacedName]client.Object // not modified
}

// conditionMetrics are those of one kind, or the twins of all.
type conditionMetrics struct {
	names                            []string // of the labels every series has
	transition, terminated           *prometheus.HistogramVec
	transitions                      *prometheus.CounterVec
	count, currentStatus, terminates *prometheus.Desc
}

// NewConditions registers the metrics of the kinds. Events are published with
// told.
func NewConditions(reg prometheus.Registerer, clk clock.PassiveClock, leads func() bool, told events.Recorder, kinds []Watched) *Conditions {
	c := &Conditions{leads: leads, clock: clk, events: told}
	for _, w := range kinds {
		names := make([]string, len(w.Keys))
		for i, key := range w.Keys {
			names[i] = labelName(key)
		}
		k := &watchedKind{
			Watched: w, conditionMetrics: newConditionMetrics(reg, w.Name+"_", "a "+w.Kind, names),
			objects: map[types.NamespacedName]client.Object{},
		}
		c.kinds = append(c.kinds, k)
	}
	if slices.ContainsFunc(kinds, func(w Watched) bool { return w.Twin }) {
		c.twins = newConditionMetrics(reg, "", "an object", []string{"group", "kind"})
		reg.MustRegister(&conditionGauges{c, c.kinds, true})
	}
	for _, k := range c.kinds {
		reg.MustRegister(&conditionGauges{c, []*watchedKind{k}, false})
	}
	return c
}

func newConditionMetrics(reg prometheus.Registerer, prefix, object string, names []string) *conditionMetrics {
	name := func(s string) string { return "operator_" + prefix + s }
	label := func(more ...string) []string { return append(slices.Clone(names), more...) }
	histogram := func(n, help string, labels []string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name(n), Help: help, Buckets: prometheus.ExponentialBuckets(0.5, 2, 15)}, labels)
	}
	one := label("namespace", "name", "type", "status", "reason")
	m := &conditionMetrics{
		names: names,
		transition: histogram("status_condition_transition_seconds",
			fmt.Sprintf("How long a condition of %s had the status that it has left.", object), label("type", "status")),
		transitions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: name("status_condition_transitions_total"), Help: fmt.Sprintf("Number of times a condition of %s came to have the status.", object),
		}, label("type", "status", "reason")),
		count:         prometheus.NewDesc(name("status_condition_count"), fmt.Sprintf("1 for each condition of %s, with its status.", object), one, nil),
		currentStatus: prometheus.NewDesc(name("status_condition_current_status_seconds"), fmt.Sprintf("For how long a condition of %s has had its status.", object), one, nil),
		terminates: prometheus.NewDesc(name("termination_current_time_seconds"),
			fmt.Sprintf("Time since the deletion of %s that is not gone yet was asked for.", object), label("namespace", "name"), nil),
		terminated: histogram("termination_duration_seconds", fmt.Sprintf("Time from when the deletion of %s was asked for until it was gone.", object), label()),
	}
	reg.MustRegister(m.transition, m.transitions, m.terminated)
	return m
}

// Watch registers handlers with the informers. It does not wait until they are
// synced.
func (c *Conditions) Watch(ctx context.Context, informers cache.Informers) error {
	for _, k := range c.kinds {
		informer, err := informers.GetInformer(ctx, k.Object, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("informer for %s: %w", k.Kind, err)
		}
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
			AddFunc: func(obj any, listed bool) {
				if o, ok := obj.(client.Object); ok {
					c.set(k, o, listed)
				}
			},
			UpdateFunc: func(_, obj any) {
				if o, ok := obj.(client.Object); ok {
					c.set(k, o, false)
				}
			},
			DeleteFunc: func(obj any) {
				if tombstone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
					obj = tombstone.Obj
				}
				if o, ok := obj.(client.Object); ok {
					c.delete(k, o)
				}
			},
		})
		if err != nil {
			return fmt.Errorf("watch %s: %w", k.Kind, err)
		}
	}
	return nil
}

// set records a new or changed object. Objects of the initial list have no
// earlier state.
func (c *Conditions) set(k *watchedKind, o client.Object, listed bool) {
	var told []events.Event
	defer func() { c.events.Publish(told...) }() // with the lock released
	k.mu.Lock()
	defer k.mu.Unlock()
	was := k.objects[client.ObjectKeyFromObject(o)]
	k.objects[client.ObjectKeyFromObject(o)] = o
	if listed || !c.leads() {
		return
	}
	before := map[string]metav1.Condition{}
	if was != nil && was.GetUID() == o.GetUID() {
		told = k.finalized(was, o)
		for _, x := range k.Of(was) {
			before[x.Type] = x
		}
	}
	for _, x := range k.Of(o) {
		y, known := before[x.Type]
		if known && y.Status == x.Status {
			continue
		}
		if known && k.tells(o) {
			told = append(told, changed(o, y, x))
		}
		lasted := math.Max(0, x.LastTransitionTime.Sub(y.LastTransitionTime.Time).Seconds())
		for _, m := range c.of(k, o) {
			m.transitions.WithLabelValues(append(m.values, x.Type, string(x.Status), x.Reason)...).Inc()
			if known {
				m.transition.WithLabelValues(append(m.values, x.Type, string(y.Status))...).Observe(lasted)
			}
		}
	}
}

// delete records that the object was deleted.
func (c *Conditions) delete(k *watchedKind, o client.Object) {
	var told []events.Event
	defer func() { c.events.Publish(told...) }()
	k.mu.Lock()
	defer k.mu.Unlock()
	was := k.objects[client.ObjectKeyFromObject(o)]
	delete(k.objects, client.ObjectKeyFromObject(o))
	if o.GetDeletionTimestamp() == nil || !c.leads() {
		return
	}
	if was != nil && was.GetUID() == o.GetUID() {
		told = k.finalized(was, o) // removing the last one deletes the object
	}
	for _, m := range c.of(k, o) {
		m.terminated.WithLabelValues(m.values...).Observe(c.age(o.GetDeletionTimestamp().Time))
	}
}

// labelled is a set of metrics with the label values of one object.
type labelled struct {
	*conditionMetrics
	values []string // at its capacity
}

// of returns the metrics that the object is published in.
func (c *Conditions) of(k *watchedKind, o client.Object) []labelled {
	out := []labelled{k.own(o)}
	if k.Twin {
		out = append(out, c.twin(k))
	}
	return out
}

func (k *watchedKind) own(o client.Object) labelled {
	values := make([]string, len(k.Keys))
	for i, key := range k.Keys {
		values[i] = o.GetLabels()[key]
	}
	return labelled{k.conditionMetrics, values}
}

func (c *Conditions) twin(k *watchedKind) labelled {
	return labelled{c.twins, []string{k.Group, k.Kind}}
}

func (c *Conditions) age(since time.Time) float64 {
	return math.Max(0, c.clock.Since(since).Seconds())
}

// conditionGauges publishes the gauges of one kind, or the twins of all: they are
// a large part of all series, and no more of them are held at once.
type conditionGauges struct {
	*Conditions
	of    []*watchedKind
	twins bool
}

// Describe implements prometheus.Collector.
func (g *conditionGauges) Describe(out chan<- *prometheus.Desc) {
	m := g.Conditions.twins
	if !g.twins {
		m = g.of[0].conditionMetrics
	}
	out <- m.count
	out <- m.currentStatus
	out <- m.terminates
}

// Collect implements prometheus.Collector.
func (g *conditionGauges) Collect(out chan<- prometheus.Metric) {
	if !g.leads() {
		return
	}
	for _, k := range g.of {
		if g.twins && !k.Twin {
			continue
		}
		for _, o := range k.all() {
			m := k.own(o)
			if g.twins {
				m = g.twin(k)
			}
			g.publish(out, m, k.Of(o), o)
		}
	}
}

func (k *watchedKind) all() []client.Object {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := make([]client.Object, 0, len(k.objects))
	for _, o := range k.objects {
		out = append(out, o)
	}
	return out
}

// publish publishes the gauges of one object.
func (c *Conditions) publish(out chan<- prometheus.Metric, m labelled, conditions []metav1.Condition, o client.Object) {
	values := append(m.values, o.GetNamespace(), o.GetName())
	names := append(slices.Clone(m.names), "namespace", "name")
	if o.GetDeletionTimestamp() != nil {
		out <- gauge{m.terminates, pairs(names, values), c.age(o.GetDeletionTimestamp().Time)}
	}
	names = append(names, "type", "status", "reason")
	for _, x := range conditions {
		labels := pairs(names, append(slices.Clone(values), x.Type, string(x.Status), x.Reason))
		out <- gauge{m.count, labels, 1}
		out <- gauge{m.currentStatus, labels, c.age(x.LastTransitionTime.Time)}
	}
}

// ConditionsOf returns the conditions of an object of the API that keeps them
// as most do.
func ConditionsOf(o client.Object) []metav1.Condition {
	if r, ok := o.(interface{ GetConditions() []metav1.Condition }); ok {
		return r.GetConditions()
	}
	return nil
}

// NodeConditions returns those of a Node.
func NodeConditions(o client.Object) []metav1.Condition {
	node, ok := o.(*corev1.Node)
	if !ok {
		return nil
	}
	out := make([]metav1.Condition, len(node.Status.Conditions))
	for i, c := range node.Status.Conditions {
		out[i] = metav1.Condition{
			Type: string(c.Type), Status: metav1.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message, LastTransitionTime: c.LastTransitionTime,
		}
	}
	return out
}
