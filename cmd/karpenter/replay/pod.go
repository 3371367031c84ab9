// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"karpenter/kube/pods"
	"karpenter/model"
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
	leaving bool      // it was deleted
	since   time.Time // when it was created, became ready or was deleted, whichever was last
	gone    bool
	guards  []*guard
}

// arrive creates the first pod of the demand.
func (r *run) arrive(d *demand) {
	p := r.create(d, 0)
	switch n := r.fleet.names[d.on]; {
	case d.pinned != "":
		r.in(d.after, func() { r.settle(p, d.pinned) })
	case n != nil:
		p.to = n
		r.bind(p, n)
		if !d.moved.IsZero() {
			r.world.SetMoved(p.object.Namespace, p.object.Name, d.moved)
		}
	default:
		r.scheduler.waiting = append(r.scheduler.waiting, p)
	}
}

// turnOf draws the turn of a pod from its UID. The order of a real scheduler
// depends on when it tried each pod last, which recordings do not contain.
func turnOf(uid types.UID) uint64 {
	h := fnv.New64a()
	h.Write([]byte(uid))
	return h.Sum64()
}

// create creates the nth pod of the demand, which waits for a node.
func (r *run) create(d *demand, nth int) *pod {
	o := d.pod.DeepCopy()
	o.UID = types.UID(fmt.Sprintf("%s/%d", d.pod.UID, nth))
	o.CreationTimestamp, o.DeletionTimestamp, o.ManagedFields = metav1.NewTime(r.now), nil, nil
	o.Spec.NodeName = ""
	o.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, LastTransitionTime: metav1.NewTime(r.now),
	}}}
	p := &pod{demand: d, object: o, shape: r.convert.Pod(o).Shape, nth: nth, turn: turnOf(o.UID), since: r.now}
	if d.pinned != "" {
		o.Status.Conditions = nil // it is for others to place
	}
	for _, g := range r.budgets.in[o.Namespace] {
		g.count(p)
	}
	r.load.pods[string(o.UID)], r.load.current[d] = p, p
	r.sink.Set(o)
	return p
}

// aim sets the node that a plan chose for the pod, and binds the pod if the
// node is ready.
func (r *run) aim(ref model.Pod, name string) {
	r.world.Placed(name, []model.Pod{ref})
	if ref.Buffer == "" {
		r.world.Nominate(name, r.now.Add(nominated))
	}
	p, n := r.load.pods[ref.UID], r.fleet.node(name)
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
	p := r.load.pods[ref.UID]
	if ref.Buffer != "" || p == nil || p.gone || p.to == n {
		return
	}
	p.to = n
	n.expects = append(slices.DeleteFunc(n.expects, func(o *pod) bool { return o.gone || o.to != n }), p)
}

// bind binds the pod to the node.
func (r *run) bind(p *pod, n *node) {
	p.node, p.to = n, n
	n.pods = append(n.pods, p)
	r.settle(p, n.name)
	r.quiet(n)
}

// settle runs the pod on the Node with the name.
func (r *run) settle(p *pod, name string) {
	if p.gone || p.object.Spec.NodeName != "" {
		return
	}
	if d := p.demand; d.pinned == "" && (d.on == "" || p.nth > 0) {
		r.tally.waits = append(r.tally.waits, r.now.Sub(p.object.CreationTimestamp.Time))
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

// show passes the present state of the pod to the world.
func (r *run) show(p *pod, o *corev1.Pod) {
	p.object = o
	r.sink.Set(o)
	r.disrupter.stirred = true
}

// started makes the pod ready.
func (r *run) started(p *pod) {
	if p.gone || p.ready || p.leaving {
		return
	}
	p.ready, p.since = true, r.now
	for _, g := range p.guards {
		g.healthy++
		g.dirty = true
	}
	o := p.object.DeepCopy()
	o.Status.Phase = corev1.PodRunning
	o.Status.Conditions = append(o.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(r.now)})
	r.show(p, o)
}

// leave deletes the pod: PodDisruptionBudgets no longer count it, and plans know that its
// capacity is free soon.
func (r *run) leave(d *demand) {
	if d.surplus {
		r.elect(d)
	}
	p := r.load.current[r.load.ending(d)]
	switch {
	case p == nil:
		return
	case p.object.Spec.NodeName == "":
		r.end(d)
		return
	}
	p.leaving, p.since = true, r.now
	p.unguard()
	o := p.object.DeepCopy()
	grace := corev1.DefaultTerminationGracePeriodSeconds
	if o.Spec.TerminationGracePeriodSeconds != nil {
		grace = int(*o.Spec.TerminationGracePeriodSeconds)
	}
	ends := metav1.NewTime(r.now.Add(time.Duration(grace) * time.Second))
	o.DeletionTimestamp = &ends
	r.show(p, o)
}

// end removes the pod that ends when the demand does.
func (r *run) end(d *demand) {
	d = r.load.ending(d)
	if p := r.load.current[d]; p != nil {
		r.delete(p)
		delete(r.load.current, d)
		r.open()
	}
}

// delete removes the pod.
func (r *run) delete(p *pod) {
	p.gone = true
	delete(r.load.pods, string(p.object.UID))
	p.unguard()
	r.sink.Delete(p.object)
	if n := p.node; n != nil {
		n.pods = slices.DeleteFunc(n.pods, func(o *pod) bool { return o == p })
		r.quiet(n)
	}
	r.disrupter.stirred = true
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
	n.vacated = later(n.vacated, r.now.Add(r.h.delays.Stop.at(r.tally.outcome.Evictions)))
	r.tally.outcome.Evictions++
	r.delete(p)
	next := r.create(p.demand, p.nth+1)
	r.scheduler.waiting = append(r.scheduler.waiting, next)
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
