// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"karpenter/kube/pods"
	"karpenter/model"
)

// Pods measures how long pods wait: for a decision, for a node, and until they
// are ready. Of each pod that has not started it remembers
//
//   - when it first needed a node,
//   - when a plan first included it,
//   - since when plans have a node for it,
//   - and since when this node is of a pool whose instances become nodes.
//
// A pod is remembered from when it is seen in phase Pending until it is ready,
// has ended or is deleted. No times are measured for pods that had a node at
// the first plan, or for pods of CapacityBuffers.
//
// Only the leader publishes anything, so that nothing is counted twice. Waiting
// times count from when the process began to lead. Pods is safe for concurrent
// use. Make one with NewPods.
type Pods struct {
	clock   clock.PassiveClock
	healthy func(pool string) bool
	metrics podMetrics

	mu      sync.Mutex
	leading time.Time // since when; zero = not yet
	waits   map[types.NamespacedName]*wait
}

// wait is what is remembered of one pod. Times are zero as long as they are
// not known.
type wait struct {
	uid     types.UID
	created time.Time
	bound   bool
	dynamic string // "true" if it uses ResourceClaims, else "false"

	seen, decided, placed, sound time.Time
}

// NewPods registers the metrics. The function healthy reports whether the
// instances of the NodePool become nodes; it must not block.
func NewPods(reg prometheus.Registerer, clk clock.PassiveClock, healthy func(pool string) bool) *Pods {
	p := &Pods{clock: clk, healthy: healthy, metrics: newPodMetrics(), waits: map[types.NamespacedName]*wait{}}
	reg.MustRegister(p)
	return p
}

// Start records that this process leads. The manager starts it as a
// manager.Runnable when it has the lease.
func (p *Pods) Start(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lead(p.clock.Now())
	return nil
}

// Leads reports whether this process leads.
func (p *Pods) Leads() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.leading.IsZero()
}

// lead begins to publish, unless that was done before.
func (p *Pods) lead(now time.Time) {
	if p.leading.IsZero() {
		p.leading = now
	}
}

// Set records a new or changed pod, and whether it asks for a node.
func (p *Pods) Set(pod *corev1.Pod, asks bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
	w := p.waits[key]
	if w != nil && w.uid != pod.UID {
		w = nil
		delete(p.waits, key)
	}
	if w == nil {
		if pod.Status.Phase != corev1.PodPending {
			return
		}
		w = &wait{
			uid: pod.UID, created: pod.CreationTimestamp.Time, bound: since(pod, corev1.PodScheduled) != nil,
			dynamic: strconv.FormatBool(len(pod.Spec.ResourceClaims) > 0),
		}
		p.waits[key] = w
	}
	now := p.clock.Now()
	if asks && w.seen.IsZero() {
		w.seen = now
	}
	if at := since(pod, corev1.PodScheduled); at != nil && !w.bound {
		w.bound = true
		p.observeBound(w, *at, now)
	}
	switch at := since(pod, corev1.PodReady); {
	case pods.Terminal(pod):
		delete(p.waits, key)
	case at != nil:
		delete(p.waits, key)
		p.observeStarted(w, *at, now)
	}
}

// Delete records that the pod was deleted.
func (p *Pods) Delete(pod *corev1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waits, types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
}

// since returns when the condition of the pod became True, nil when it is not.
func since(pod *corev1.Pod, condition corev1.PodConditionType) *time.Time {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == condition && c.Status == corev1.ConditionTrue {
			return &c.LastTransitionTime.Time
		}
	}
	return nil
}

// Decided records what the plan decides about the pods of the Snapshot.
func (p *Pods) Decided(s *model.Snapshot, plan *model.Plan) {
	found := places(s, plan)
	healthy := map[string]bool{"": false}
	for _, x := range found {
		if _, asked := healthy[x.pool]; !asked {
			healthy[x.pool] = p.healthy(x.pool)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	p.lead(now)
	for _, v := range plan.Verdicts {
		for _, pod := range v.Pods {
			if w := p.decide(pod, now); w != nil {
				w.placed, w.sound = time.Time{}, time.Time{}
			}
		}
	}
	for _, x := range found {
		p.place(x.pod, healthy[x.pool], now)
	}
}

// found is a pod for which the plan has a node.
type found struct {
	pod  model.Pod
	pool string // "" = on a node of none
}

func places(s *model.Snapshot, plan *model.Plan) []found {
	poolOf := make(map[string]string, len(s.Nodes))
	for i := range s.Nodes {
		poolOf[s.Nodes[i].Name] = s.Nodes[i].Pool
	}
	var out []found
	for _, x := range plan.Placements {
		out = append(out, found{x.Pod, poolOf[x.Node]})
	}
	for _, l := range plan.Launches {
		for _, pod := range l.Pods {
			out = append(out, found{pod, l.Pool})
		}
	}
	return out
}

// decide records that a plan includes the pod, and returns its times, or nil if
// none are measured.
func (p *Pods) decide(pod model.Pod, now time.Time) *wait {
	w := p.waits[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}]
	if pod.Buffer != "" || pod.From != "" || w == nil || string(w.uid) != pod.UID || w.bound {
		return nil
	}
	if w.decided.IsZero() {
		w.decided = now
		if !w.seen.IsZero() {
			p.metrics.decision.Observe(p.from(w.seen, now))
		}
	}
	return w
}

// place records that a plan has a node for the pod.
func (p *Pods) place(pod model.Pod, healthy bool, now time.Time) {
	w := p.decide(pod, now)
	if w == nil {
		return
	}
	if w.placed.IsZero() {
		w.placed = now
	}
	switch {
	case !healthy:
		w.sound = time.Time{}
	case w.sound.IsZero():
		w.sound = now
	}
}

// from returns the seconds between two times of the clock during which this
// process was leading.
func (p *Pods) from(begin, end time.Time) float64 {
	if begin.Before(p.leading) {
		begin = p.leading
	}
	return end.Sub(begin).Seconds()
}

// observeBound publishes that the pod was bound at a time, which the API server
// gives in whole seconds. The process learns of it now.
func (p *Pods) observeBound(w *wait, at, now time.Time) {
	if p.leading.IsZero() {
		return
	}
	p.metrics.bound.WithLabelValues(w.dynamic).Observe(at.Sub(w.created).Seconds())
	if !w.placed.IsZero() {
		p.metrics.provisioningBound.WithLabelValues(w.dynamic).Observe(p.from(w.placed, now))
	}
	if !w.sound.IsZero() {
		p.metrics.healthyBound.Observe(p.from(w.sound, now))
	}
}

// observeStarted is observeBound for a pod that is ready.
func (p *Pods) observeStarted(w *wait, at, now time.Time) {
	if p.leading.IsZero() {
		return
	}
	p.metrics.startup.Observe(at.Sub(w.created).Seconds())
	if !w.placed.IsZero() {
		p.metrics.provisioningStartup.Observe(p.from(w.placed, now))
	}
}
