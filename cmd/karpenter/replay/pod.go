// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"karpenter/kube/pods"
	"karpenter/model"
	"karpenter/world"
)

// pod is one pod of a demand in a run.
type pod struct {
	demand  *demand
	object  *corev1.Pod
	shape   *model.Shape
	nth     int    // of the demand
	node    *node  // it runs on; nil = none of a NodePool
	to      *node  // it is planned on; nil = none
	turn    uint64 // of pods of the same priority, the scheduler tries the lowest first
	tried   bool   // the scheduler has looked for a node
	ready   bool
	leaving bool // it was deleted
	gone    bool
	guards  []*guard
}

// guard is a PodDisruptionBudget in a run.
type guard struct {
	object   *policyv1.PodDisruptionBudget
	value    world.DisruptionBudget
	selector labels.Selector
	expected int // pods that it selects
	healthy  int // of those, that are ready
	dirty    bool
}

// allowed is how many of the pods may be evicted now.
func (g *guard) allowed() int {
	least := 0
	scaled := func(v *intstr.IntOrString) int {
		n, err := intstr.GetScaledValueFromIntOrPercent(v, g.expected, true)
		if err != nil {
			return g.expected
		}
		return n
	}
	switch spec := &g.object.Spec; {
	case spec.MaxUnavailable != nil:
		least = g.expected - scaled(spec.MaxUnavailable)
	case spec.MinAvailable != nil:
		least = scaled(spec.MinAvailable)
	default:
		return 0
	}
	return max(min(g.healthy-least, g.healthy), 0)
}

// guard records a PodDisruptionBudget.
func (r *run) guard(o *policyv1.PodDisruptionBudget, deleted bool) {
	key := o.Namespace + "/" + o.Name
	old := r.guards[key]
	if old != nil && !deleted && old.object.Generation == o.Generation && old.object.UID == o.UID {
		return // its status is ours to say
	}
	selected := func(g *guard, p *pod) bool {
		return p.object.Namespace == g.object.Namespace && g.selector.Matches(labels.Set(p.object.Labels))
	}
	if old != nil {
		for _, p := range r.pods {
			p.guards = slices.DeleteFunc(p.guards, func(g *guard) bool { return g == old })
		}
		delete(r.guards, key)
		r.guarded[o.Namespace] = slices.DeleteFunc(r.guarded[o.Namespace], func(g *guard) bool { return g == old })
	}
	if deleted {
		r.world.DeleteDisruptionBudget(o.Namespace, o.Name)
		return
	}
	g := &guard{object: o, value: r.convert.DisruptionBudget(o), selector: labels.Nothing(), dirty: true}
	if s, err := metav1.LabelSelectorAsSelector(o.Spec.Selector); err == nil {
		g.selector = s
	}
	r.guards[key] = g
	r.guarded[o.Namespace] = append(r.guarded[o.Namespace], g)
	for _, p := range r.pods {
		if selected(g, p) && !p.leaving {
			p.guards = append(p.guards, g)
			g.expected++
			if p.ready {
				g.healthy++
			}
		}
	}
}

// count brings the PodDisruptionBudgets up to the pods there are.
func (r *run) count() {
	for _, g := range r.guards {
		if !g.dirty {
			continue
		}
		g.dirty = false
		g.value.Allowed = g.allowed()
		r.world.SetDisruptionBudget(g.value)
	}
}

// arrive has the first pod of the demand.
func (r *run) arrive(d *demand) {
	p := r.create(d, 0)
	switch n := r.names[d.on]; {
	case d.pinned != "":
		r.in(d.after, func() { r.settle(p, d.pinned) })
	case n != nil:
		p.to = n
		r.bind(p, n)
		if !d.moved.IsZero() {
			r.world.SetMoved(p.object.Namespace, p.object.Name, d.moved)
		}
	default:
		r.waiting = append(r.waiting, p)
	}
}

// turnOf draws the turn of a pod from its UID. The turns of a real scheduler depend on when it
// tried each pod last, which no recording tells.
func turnOf(uid types.UID) uint64 {
	h := fnv.New64a()
	h.Write([]byte(uid))
	return h.Sum64()
}

// create has the nth pod of the demand. It looks for a node.
func (r *run) create(d *demand, nth int) *pod {
	o := d.pod.DeepCopy()
	o.UID = types.UID(fmt.Sprintf("%s/%d", d.pod.UID, nth))
	o.CreationTimestamp, o.DeletionTimestamp, o.ManagedFields = metav1.NewTime(r.now), nil, nil
	o.Spec.NodeName = ""
	o.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, LastTransitionTime: metav1.NewTime(r.now),
	}}}
	p := &pod{demand: d, object: o, shape: r.convert.Pod(o).Shape, nth: nth, turn: turnOf(o.UID)}
	if d.pinned != "" {
		o.Status.Conditions = nil // it is for others to place
	}
	for _, g := range r.guarded[o.Namespace] {
		if g.selector.Matches(labels.Set(o.Labels)) {
			p.guards = append(p.guards, g)
			g.expected++
			g.dirty = true
		}
	}
	r.pods[string(o.UID)], r.current[d] = p, p
	r.sink.Set(o)
	return p
}

// aim has the pod go to the node that a plan chose for it: at once if it can.
func (r *run) aim(ref model.Pod, name string) {
	r.world.Placed(name, []model.Pod{ref})
	if ref.Buffer == "" {
		r.world.Nominate(name, r.now.Add(nominated))
	}
	p, n := r.pods[ref.UID], r.node(name)
	if ref.Buffer != "" || p == nil || p.gone {
		return
	}
	if n == nil { // a node that no NodePool manages
		if p.node == nil {
			r.settle(p, name)
		}
		return
	}
	r.expect(ref, n)
	if p.node == nil && n.ready && !n.leaving {
		r.bind(p, n)
	}
}

// comes reports whether the pod is to come to the node.
func (p *pod) comes(n *node) bool { return !p.gone && p.to == n && p.node != n }

func (r *run) expect(ref model.Pod, n *node) {
	p := r.pods[ref.UID]
	if ref.Buffer != "" || p == nil || p.gone || p.to == n {
		return
	}
	p.to = n
	n.expects = append(slices.DeleteFunc(n.expects, func(o *pod) bool { return o.gone || o.to != n }), p)
}

// bind has the node run the pod.
func (r *run) bind(p *pod, n *node) {
	p.node, p.to = n, n
	n.pods = append(n.pods, p)
	r.settle(p, n.name)
	r.quiet(n)
}

// settle has the pod run on the Node of the name.
func (r *run) settle(p *pod, name string) {
	if p.gone || p.object.Spec.NodeName != "" {
		return
	}
	if d := p.demand; d.pinned == "" && (d.on == "" || p.nth > 0) {
		r.waits = append(r.waits, r.now.Sub(p.object.CreationTimestamp.Time))
	}
	o := p.object.DeepCopy()
	o.Spec.NodeName = name
	o.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(r.now)}}
	r.show(p, o)
	if d := p.demand; d.runs > 0 {
		r.in(d.runs, func() {
			if !p.gone {
				r.end(d)
			}
		})
	}
	r.in(p.demand.startup, func() { r.started(p) })
}

// show has the world know the pod as it is.
func (r *run) show(p *pod, o *corev1.Pod) {
	p.object = o
	r.sink.Set(o)
	r.stirred = true
}

// started has the pod be ready.
func (r *run) started(p *pod) {
	if p.gone || p.ready || p.leaving {
		return
	}
	p.ready = true
	for _, g := range p.guards {
		g.healthy++
		g.dirty = true
	}
	o := p.object.DeepCopy()
	o.Status.Phase = corev1.PodRunning
	o.Status.Conditions = append(o.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(r.now)})
	r.show(p, o)
}

// leave has the pod be deleted: it takes no more part in PodDisruptionBudgets, and plans know that
// its capacity is free soon.
func (r *run) leave(d *demand) {
	p := r.current[d]
	switch {
	case p == nil:
		return
	case p.object.Spec.NodeName == "":
		r.end(d)
		return
	}
	p.leaving = true
	r.unguard(p)
	o := p.object.DeepCopy()
	grace := corev1.DefaultTerminationGracePeriodSeconds
	if o.Spec.TerminationGracePeriodSeconds != nil {
		grace = int(*o.Spec.TerminationGracePeriodSeconds)
	}
	ends := metav1.NewTime(r.now.Add(time.Duration(grace) * time.Second))
	o.DeletionTimestamp = &ends
	r.show(p, o)
}

// unguard has the PodDisruptionBudgets not count the pod.
func (r *run) unguard(p *pod) {
	for _, g := range p.guards {
		g.expected--
		if p.ready {
			g.healthy--
		}
		g.dirty = true
	}
	p.guards = nil
}

// end has the demand end.
func (r *run) end(d *demand) {
	if p := r.current[d]; p != nil {
		r.delete(p)
		delete(r.current, d)
		r.open()
	}
}

// delete has the pod be gone.
func (r *run) delete(p *pod) {
	p.gone = true
	delete(r.pods, string(p.object.UID))
	r.unguard(p)
	r.sink.Delete(p.object)
	if n := p.node; n != nil {
		n.pods = slices.DeleteFunc(n.pods, func(o *pod) bool { return o == p })
		r.quiet(n)
	}
	r.stirred = true
}

// mayLeave reports whether nothing forbids to evict the pod. One that was deleted ends by itself.
func (p *pod) mayLeave(now time.Time) bool {
	if p.leaving || pods.ProtectionOf(p.object, now).InForce() || len(p.guards) > 1 {
		return false
	}
	return len(p.guards) == 0 || p.guards[0].allowed() > 0
}

// move evicts the pod. Its owner makes another one at once. While the node waits for the pod to end, nothing
// else uses the capacity.
func (r *run) move(p *pod) {
	n, to := p.node, p.to
	n.vacated = later(n.vacated, r.now.Add(r.h.delays.Stop.at(r.outcome.Evictions)))
	r.outcome.Evictions++
	r.delete(p)
	next := r.create(p.demand, p.nth+1)
	r.waiting = append(r.waiting, next)
	if to == nil || to == n || to.gone(r) || to.leaving {
		return
	}
	o := next.object
	ref := model.Pod{Namespace: o.Namespace, Name: o.Name, UID: string(o.UID), Created: o.CreationTimestamp.Time}
	r.world.Placed(to.snapshotName(), []model.Pod{ref})
	r.world.Nominate(to.snapshotName(), r.now.Add(nominated))
	r.expect(ref, to)
}

// snapshotName is how Snapshots name the node.
func (n *node) snapshotName() string {
	if n.ready {
		return n.name
	}
	return n.claim.Name
}
