// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/cmd/karpenter/plan"
	"karpenter/kube/convert"
	"karpenter/kube/feed"
	"karpenter/model"
	"karpenter/solve"
	"karpenter/solve/fit"
	"karpenter/world"
)

// How the controller paces itself, with its default settings.
const (
	batchIdle = time.Second
	batchMost = 10 * time.Second
	delay     = 15 * time.Second // until a command for consolidation is carried out
	leastLook = 10 * time.Second // between two looks at nodes to remove
	mostLook  = 2 * time.Minute  // the same when nothing happens: budgets have schedules, and pods that were moved rest
	nominated = 20 * time.Second // for which a node stays that pods are to come to
	noticed   = 10 * time.Second // between two notes that pods come to and leave a node
	retry     = 5 * time.Second  // of evictions that a PodDisruptionBudget refuses

	// mostLooks is how many looks at nodes to remove a run may take. In long recordings,
	// the time between them is longer.
	mostLooks = 10_000
)

// event is something that happens in a run.
type event struct {
	at  time.Time
	seq int // events of the same time happen in the order in which they were added
	do  func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return cmp.Or(e[i].at.Compare(e[j].at), cmp.Compare(e[i].seq, e[j].seq)) < 0
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	(*e)[last] = event{}
	*e = (*e)[:last]
	return x
}

// intent is a command that waits to be confirmed.
type intent struct {
	model.Intent
	due time.Time
}

// command is one that is carried out: its nodes go when its replacements are ready.
type command struct {
	nodes   []*node
	reason  string
	missing int // replacements that are not ready
}

// run is one replay.
type run struct {
	h       *history
	world   *world.World
	convert convert.Converter
	sink    feed.Sink
	planner solve.Planner
	rows    fit.Memory
	policy  model.Policy
	changed map[string]*v1.NodePool // by name: in place of what was recorded

	now   time.Time
	queue events
	seq   int

	pools     map[string]*v1.NodePool
	catalogue int               // position of the one in force
	like      map[string]string // by NodePool: the one whose instance types it has
	buffers   map[string]bool
	nodes     []*node // that exist, in the order of launches
	claims    map[string]*node
	names     map[string]*node // by name of the Node
	pods      map[string]*pod  // by UID
	current   map[*demand]*pod
	guards    map[string]*guard
	guarded   map[string][]*guard // by namespace

	waiting   []*pod // that look for a node, and some that no longer do
	opened    bool   // capacity may have become free since the scheduler tried all of them
	arrived   bool   // pods look for a place that nothing was planned for
	freed     bool   // capacity may have become free since pods were planned
	stirred   bool   // the cluster has changed since nodes to remove were looked for
	drifting  bool   // NodePools have changed since nodes were compared with them
	unplaced  int
	placed    time.Time // when pods were placed last
	first     time.Time // batch: its first pod; zero = there is none
	batch     time.Time // when it ends
	looked    time.Time
	look      time.Time // when nodes to remove are looked for next
	intents   []intent
	launches  int
	waits     []time.Duration
	stays     []stay
	outcome   Outcome
	exhausted int
	notes     []string
}

// replayed runs the history with the NodePools in place of those of their names.
func (h *history) replayed(changed []*v1.NodePool) (*run, error) {
	w, c, sources := h.catalogues[0].published.World()
	r := &run{
		h: h, world: w, policy: h.catalogues[0].published.Offerings.Policy, changed: map[string]*v1.NodePool{},
		pools: map[string]*v1.NodePool{}, like: map[string]string{}, buffers: map[string]bool{}, claims: map[string]*node{}, names: map[string]*node{},
		pods: map[string]*pod{}, current: map[*demand]*pod{}, guards: map[string]*guard{}, guarded: map[string][]*guard{},
		now: h.from, outcome: Outcome{Removed: map[string]int{}},
	}
	r.sink = feed.NewSink(w, c, sources)
	c.Volumes = sources.Volumes.Of
	r.convert = c
	for _, p := range changed {
		p = p.DeepCopy()
		p.Status.Conditions = []metav1.Condition{{Type: v1.ReadyCondition, Status: metav1.ConditionTrue}}
		r.changed[p.Name] = p
		if err := r.resemble(p); err != nil {
			return nil, err
		}
	}
	r.prepare(changed)
	for len(r.queue) > 0 && !r.queue[0].at.After(h.to) {
		r.instant()
	}
	r.now = h.to
	r.finish()
	return r, nil
}

// resemble finds the recorded NodePool whose instance types the changed one has: that of the
// same name or else another one, if it has the same node class.
func (r *run) resemble(p *v1.NodePool) error {
	same := func(name string) bool {
		old := r.h.pools[name]
		return old != nil && *old.Spec.Template.Spec.NodeClassRef == *p.Spec.Template.Spec.NodeClassRef
	}
	names := []string{p.Name}
	for _, published := range r.h.catalogues[0].published.Offerings.Snapshot.Pools {
		names = append(names, published.Name)
	}
	i := slices.IndexFunc(names, same)
	if i < 0 {
		ref := p.Spec.Template.Spec.NodeClassRef
		return fmt.Errorf("NodePool %s: the instance types of %s %s are not known, because no NodePool in the recording has it. Use a node class of the recording", p.Name, ref.Kind, ref.Name)
	}
	r.like[p.Name] = names[i]
	return nil
}

// prepare plans what happens whatever is decided.
func (r *run) prepare(changed []*v1.NodePool) {
	for _, p := range changed {
		if r.h.pools[p.Name] == nil {
			r.at(r.h.from, func() { r.setPool(r.changed[p.Name]) })
		}
	}
	next := 0
	for i := range r.h.settings { // catalogues come between the settings, NodePools need both
		s := &r.h.settings[i]
		for ; next < len(r.h.catalogues) && !r.h.catalogues[next].at.After(s.at); next++ {
			r.publish(next)
		}
		r.at(s.at, func() { r.set(s) })
	}
	for ; next < len(r.h.catalogues); next++ {
		r.publish(next)
	}
	for _, s := range r.h.standing {
		r.at(r.h.from, func() { r.adopt(s) })
	}
	for _, d := range r.h.demands {
		r.at(d.at, func() { r.arrive(d) })
		if !d.leaves.IsZero() && d.runs == 0 {
			r.at(d.leaves, func() { r.leave(d) })
		}
		if !d.ends.IsZero() && d.runs == 0 {
			r.at(d.ends, func() { r.end(d) })
		}
	}
	for i := range r.h.losses {
		r.at(r.h.losses[i].at, func() { r.lose(&r.h.losses[i]) })
	}
	r.at(r.h.from, func() { r.stirred = true })
}

func (r *run) publish(i int) { r.at(r.h.catalogues[i].at, func() { r.offer(i) }) }

// at has something happen at the time, or now if that is over.
func (r *run) at(t time.Time, do func()) {
	r.seq++
	heap.Push(&r.queue, event{later(t, r.now), r.seq, do})
}

// in has something happen after the duration.
func (r *run) in(d time.Duration, do func()) { r.at(r.now.Add(d), do) }

// instant lets everything happen that happens next at the same time, and decides.
func (r *run) instant() {
	r.now = r.queue[0].at
	for {
		for len(r.queue) > 0 && !r.queue[0].at.After(r.now) {
			heap.Pop(&r.queue).(event).do()
		}
		r.count()
		r.arrived = r.schedule() || r.arrived
		again, fresh := r.freed && r.unplaced > 0, r.arrived
		if !fresh && (!again || r.now.Before(r.placed.Add(r.pace()/10))) {
			break
		}
		// What has no place yet is planned for; nodes are launched when the batch ends.
		if launches := r.place(false); launches > 0 && (fresh || r.first.IsZero()) {
			r.collect()
		}
	}
	if r.freed && r.unplaced > 0 {
		r.at(r.placed.Add(r.pace()/10), func() {})
	}
	if r.stirred {
		r.stirred = false
		r.lookAt(r.looked.Add(r.pace()))
	}
}

// open notes that capacity may have become free.
func (r *run) open() { r.freed, r.opened = true, true }

// pace is the time between two looks at nodes to remove.
func (r *run) pace() time.Duration {
	return max(leastLook, (r.h.to.Sub(r.h.from) / mostLooks).Round(time.Second))
}

// collect has the batch of pods that look for a node end a little later.
func (r *run) collect() {
	if r.first.IsZero() {
		r.first = r.now
	}
	end := r.now.Add(batchIdle)
	if most := r.first.Add(batchMost); most.Before(end) {
		end = most
	}
	r.batch = end
	r.at(end, func() {
		if r.batch.Equal(r.now) {
			r.first, r.batch = time.Time{}, time.Time{}
			r.place(true)
		}
	})
}

// place plans places for the pods that have none, and reports for how many nodes. They are
// launched only if that is asked for.
func (r *run) place(launch bool) (launches int) {
	r.arrived, r.freed, r.placed = false, false, r.now
	p := r.planner.Place(r.world.Snapshot(r.now), r.policy)
	r.note(p)
	for _, x := range p.Placements {
		r.aim(x.Pod, x.Node)
	}
	r.unplaced = 0
	for _, v := range p.Verdicts {
		r.unplaced += len(v.Pods)
		r.world.Unplaced(v.Pods)
		for _, ref := range v.Pods {
			if p := r.pods[ref.UID]; p != nil {
				p.to = p.node
			}
		}
	}
	if launch {
		for i := range p.Launches {
			r.launch(&p.Launches[i], "")
		}
	}
	return len(p.Launches)
}

func (r *run) note(p *model.Plan) {
	if p.Exhausted {
		r.exhausted++
	}
}

// lookAt has nodes to remove be looked for at the time, unless they are sooner.
func (r *run) lookAt(at time.Time) {
	if at = later(at, r.now); r.look.After(r.now) && !at.Before(r.look) {
		return
	}
	r.look = at
	r.at(at, func() {
		if r.look.Equal(r.now) && !r.looked.Equal(r.now) {
			r.disrupt()
		}
	})
}

// disrupt looks for nodes to remove, and begins with those that are confirmed.
func (r *run) disrupt() {
	r.looked = r.now
	r.compare()
	s := r.world.Snapshot(r.now)
	for i := range r.intents {
		s.Intents = append(s.Intents, r.intents[i].Intent)
	}
	p := r.planner.Decide(s, r.policy)
	r.note(p)
	old := r.intents
	r.intents = nil
	for i := range p.Commands {
		r.confirm(&p.Commands[i], old)
	}
	r.lookAt(r.nextLook(s))
}

// confirm carries the command out if it has been planned for long enough.
func (r *run) confirm(c *model.Command, old []intent) {
	next := intent{Intent: model.Intent{Reason: c.Reason}, due: r.now.Add(delay)}
	for _, t := range c.Nodes {
		next.Claims = append(next.Claims, t.Claim)
	}
	slices.Sort(next.Claims)
	if c.Reason == model.Drifted {
		next.due = r.now
	}
	if i := slices.IndexFunc(old, func(o intent) bool { return o.Reason == next.Reason && slices.Equal(o.Claims, next.Claims) }); i >= 0 {
		next.due = old[i].due
	}
	if r.now.Before(next.due) || !r.start(c) {
		r.intents = append(r.intents, next)
	}
}

// nextLook is when the answer may be another one although nothing happens.
func (r *run) nextLook(s *model.Snapshot) time.Time {
	next := r.now.Add(mostLook)
	sooner := func(t time.Time) {
		if t.After(r.now) && t.Before(next) {
			next = t
		}
	}
	for i := range r.intents {
		sooner(r.intents[i].due)
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if p := r.pools[n.Pool]; p != nil && n.Disruption.Settling && p.Spec.Disruption.ConsolidateAfter.Duration != nil {
			sooner(n.Disruption.Quiet.Add(*p.Spec.Disruption.ConsolidateAfter.Duration))
		}
	}
	return next
}

// start carries a command out, and reports whether nothing spoke against it.
func (r *run) start(c *model.Command) bool {
	x := &command{reason: string(c.Reason)}
	going := map[*node]bool{}
	for _, t := range c.Nodes {
		n := r.claims[t.Claim]
		if n == nil || n.leaving || r.awaited(n) {
			return false
		}
		x.nodes, going[n] = append(x.nodes, n), true
	}
	for _, m := range c.Moves {
		if to := r.node(m.Node); to != nil && (to.leaving || going[to]) {
			return false
		}
	}
	if c.Reboot || len(x.nodes) == 0 {
		return false
	}
	var names []string
	for _, n := range x.nodes {
		n.leaving = true
		names = append(names, n.claim.Name)
	}
	if c.TerminateFirst == "" {
		for i := range c.Launches {
			if n := r.launch(&c.Launches[i], c.Reason); n != nil {
				n.replaces = x
				x.missing++
			}
		}
	}
	for _, m := range c.Moves {
		r.aim(m.Pod, m.Node)
	}
	r.world.MarkForDeletion(names...)
	if x.missing == 0 {
		r.carryOut(x)
	}
	return true
}

// cancel has the nodes of the command stay.
func (r *run) cancel(x *command) {
	var names []string
	for _, n := range x.nodes {
		n.leaving = false
		names = append(names, n.claim.Name)
	}
	r.world.Unmark(names...)
	x.nodes = nil
}

func (r *run) carryOut(x *command) {
	for _, n := range x.nodes {
		r.drain(n, x.reason)
	}
}

// awaited reports whether pods are to move to the node.
func (r *run) awaited(n *node) bool {
	return slices.ContainsFunc(n.expects, func(p *pod) bool { return p.comes(n) })
}

// set applies a setting.
func (r *run) set(s *setting) {
	r.stirred = true
	r.open()
	switch o := s.object.(type) {
	case *v1.NodePool:
		switch {
		case r.changed[o.Name] != nil && s.deleted:
		case r.changed[o.Name] != nil: // it is there, and ready, from when on the recorded one was
			p := r.changed[o.Name].DeepCopy()
			p.Status = o.Status
			r.setPool(p)
		case s.deleted:
			delete(r.pools, o.Name)
			r.sink.Delete(o)
			for _, n := range slices.Clone(r.nodes) {
				if n.pool == o.Name {
					r.drain(n, "deleted")
				}
			}
		default:
			r.setPool(o)
		}
	case *policyv1.PodDisruptionBudget:
		r.guard(o, s.deleted)
	default:
		if s.deleted {
			r.sink.Delete(o)
			return
		}
		r.sink.Set(o)
	}
}

// setPool records the present state of a NodePool.
func (r *run) setPool(p *v1.NodePool) {
	old := r.pools[p.Name]
	r.pools[p.Name] = p
	r.sink.Set(p)
	if old == nil {
		r.types(p.Name)
	}
	if old == nil || old.Generation != p.Generation || conditions.IsTrue(old, v1.ReadyCondition) != conditions.IsTrue(p, v1.ReadyCondition) {
		r.drifting, r.arrived = true, true
	}
}

// types gives the NodePool the instance types and prices that are in force.
func (r *run) types(pool string) {
	of := cmp.Or(r.like[pool], pool)
	s := r.h.catalogues[r.catalogue].published.Offerings.Snapshot
	for i := range s.Pools {
		if s.Pools[i].Name == of {
			r.world.SetTypes(pool, onAxis(s.Pools[i].Types, s.Resources, r.world.Axis()), s.Pools[i].Extras...)
		}
	}
}

// offer applies the published offerings.
func (r *run) offer(i int) {
	r.catalogue, r.stirred, r.arrived = i, true, true
	for name := range r.pools {
		r.types(name)
	}
	standIns := r.h.catalogues[i].published.StandIns()
	for buffer := range r.buffers {
		if len(standIns[buffer]) == 0 {
			r.world.DeleteBuffer(buffer)
			delete(r.buffers, buffer)
		}
	}
	for buffer, pods := range standIns {
		r.world.SetBuffer(buffer, pods)
		r.buffers[buffer] = true
	}
}

// onAxis returns the types with vectors on the axis, which those of the first catalogue are on.
func onAxis(types []*model.InstanceType, names []string, axis *model.Axis) []*model.InstanceType {
	moves := false
	for i, name := range names {
		moves = axis.Index(name) != i || moves
	}
	if !moves {
		return types
	}
	moved := func(from model.Resources) (to model.Resources) {
		for i, v := range from {
			if v != 0 {
				to = to.With(axis.Index(names[i]), v)
			}
		}
		return to
	}
	out := make([]*model.InstanceType, len(types))
	for i, t := range types {
		other := *t
		other.Capacity, other.Allocatable = moved(t.Capacity), moved(t.Allocatable)
		out[i] = &other
	}
	return out
}

// compare has nodes drift that are not what their NodePools ask for.
func (r *run) compare() {
	if !r.drifting {
		return
	}
	r.drifting = false
	s := r.world.Snapshot(r.now)
	for i := range s.Nodes {
		n := r.claims[s.Nodes[i].Claim]
		if n == nil || !n.ready {
			continue
		}
		p := r.pools[n.pool]
		at := slices.IndexFunc(s.Pools, func(p model.Pool) bool { return p.Name == n.pool })
		if p == nil || at < 0 {
			continue
		}
		drifted := plan.Mismatch(&s.Nodes[i], &s.Pools[at], r.convert.Requirements(p.Spec.Template.Spec.Requirements)) != ""
		if drifted == !n.claim.Drifted.IsZero() {
			continue
		}
		n.claim.Drifted = time.Time{}
		if drifted {
			n.claim.Drifted = r.now
		}
		r.world.SetClaim(n.claim)
	}
}

// finish counts what is there in the end.
func (r *run) finish() {
	for _, n := range r.nodes {
		if !n.stay.from.IsZero() {
			n.stay.to = r.h.to
			r.stays = append(r.stays, n.stay)
		}
	}
	for _, p := range r.pods {
		if p.node == nil && p.demand.pinned == "" {
			r.outcome.Pending++
		}
	}
	r.outcome.settle(r.h, append(r.stays, r.h.fixed...), r.like, r.waits)
	if r.exhausted > 0 {
		r.notes = append(r.notes, fmt.Sprintf("%d plans used up the budget of steps and may not be the best", r.exhausted))
	}
}

// nameOf returns a name for the nth node of the NodePool.
func nameOf(pool string, n int) string {
	return strings.TrimRight(pool[:min(len(pool), 50)], "-") + fmt.Sprintf("-r%d", n)
}

// labelsOf returns the labels of a node of the type and offering.
func labelsOf(c *world.Claim, t *model.InstanceType, o *model.Offering) map[string]string {
	out := map[string]string{}
	for _, list := range []model.Requirements{t.Requirements, o.Requirements} {
		for _, q := range list {
			if v, ok := list.Value(q.Key); ok {
				out[q.Key] = v
			}
		}
	}
	for key, value := range c.Labels {
		out[key] = value
	}
	out[corev1.LabelInstanceTypeStable], out[corev1.LabelTopologyZone], out[v1.CapacityTypeLabelKey] = t.Name, o.Zone, o.CapacityType
	return out
}
