// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "karpenter/api/v1"
	"karpenter/kube/convert"
	"karpenter/kube/feed"
	"karpenter/model"
	"karpenter/solve"
	"karpenter/world"
)

// How the controller paces itself, with its default settings.
const (
	batchIdle = time.Second
	batchMost = 10 * time.Second
	delay     = 15 * time.Second // until a command for consolidation is carried out
	leastLook = 10 * time.Second // between two looks at nodes to remove
	mostLook  = 2 * time.Minute  // the same when nothing happens: budgets have schedules, and moved pods are not moved again for some time
	nominated = 20 * time.Second // for which a node is kept that pods are planned on
	noticed   = 10 * time.Second // between two records of pods that come to or leave a node
	retry     = 5 * time.Second  // of evictions that a PodDisruptionBudget refuses

	// mostLooks is how many looks at nodes to remove a run may take. In long recordings,
	// the time between them is longer.
	mostLooks = 10_000
)

// run is one replay.
type run struct {
	agenda
	h       *history
	world   *world.World
	convert convert.Converter
	sink    feed.Sink
	planner planner

	config config
	fleet  fleet
	load   load

	budgets     budgets
	scheduler   scheduler
	provisioner provisioner
	disrupter   disrupter
	tally       tally
}

// planner is the planner of the controller.
type planner struct {
	solve.Planner
	policy    model.Policy
	exhausted int // plans that used up their budget of steps
}

// counted records whether the plan used up its budget.
func (p *planner) counted(plan *model.Plan) *model.Plan {
	if plan.Exhausted {
		p.exhausted++
	}
	return plan
}

// tally is what the report counts.
type tally struct {
	waits   []time.Duration
	stays   []stay
	outcome Outcome
}

// replayed runs the history with the NodePools in place of those of their names.
func (h *history) replayed(changed []*v1.NodePool) (*run, error) {
	w, c, sources := h.catalogues[0].published.World()
	r := &run{
		agenda: agenda{now: h.from}, h: h, world: w, planner: planner{policy: h.catalogues[0].published.Offerings.Policy},
		config:  config{changed: map[string]*v1.NodePool{}, pools: map[string]*v1.NodePool{}, like: map[string]string{}, buffers: map[string]bool{}},
		fleet:   fleet{claims: map[string]*node{}, names: map[string]*node{}},
		load:    load{pods: map[string]*pod{}, current: map[*demand]*pod{}, instead: map[*demand]*demand{}},
		budgets: budgets{all: map[string]*guard{}, in: map[string][]*guard{}},
		tally:   tally{outcome: Outcome{Removed: map[string]int{}}},
	}
	r.sink = feed.NewSink(w, c, sources)
	c.Volumes = sources.Volumes.Of
	r.convert = c
	for _, p := range changed {
		p = p.DeepCopy()
		p.Status.Conditions = []metav1.Condition{{Type: v1.ReadyCondition, Status: metav1.ConditionTrue}}
		r.config.changed[p.Name] = p
		if err := r.resemble(p); err != nil {
			return nil, err
		}
	}
	r.prepare(changed)
	for r.advance(h.to) {
		r.instant()
	}
	r.finish()
	return r, nil
}

// prepare plans what happens whatever is decided.
func (r *run) prepare(changed []*v1.NodePool) {
	for _, p := range changed {
		if r.h.pools[p.Name] == nil {
			r.at(r.h.from, func() { r.setPool(r.config.changed[p.Name]) })
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
	r.at(r.h.from, func() { r.disrupter.stirred = true })
}

func (r *run) publish(i int) { r.at(r.h.catalogues[i].at, func() { r.offer(i) }) }

// instant lets everything happen that happens next at the same time, and decides.
func (r *run) instant() {
	p, d := &r.provisioner, &r.disrupter
	for {
		r.happen()
		r.budgets.settle(r.world)
		p.arrived = r.schedule() || p.arrived
		again, fresh := p.freed && p.unplaced > 0, p.arrived
		if !fresh && (!again || r.now.Before(p.placed.Add(r.pace()/10))) {
			break
		}
		// What has no place yet is planned for; nodes are launched when the batch ends.
		if launches := r.place(false); launches > 0 && (fresh || p.first.IsZero()) {
			r.collect()
		}
	}
	if p.freed && p.unplaced > 0 {
		r.at(p.placed.Add(r.pace()/10), func() {})
	}
	if d.stirred {
		d.stirred = false
		r.lookAt(d.looked.Add(r.pace()))
	}
}

// open records that capacity may have become free.
func (r *run) open() { r.provisioner.freed, r.scheduler.opened = true, true }

// finish counts the pods and nodes at the end.
func (r *run) finish() {
	for _, n := range r.fleet.nodes {
		if !n.stay.from.IsZero() {
			n.stay.to = r.h.to
			r.tally.stays = append(r.tally.stays, n.stay)
		}
	}
	for _, p := range r.load.pods {
		if p.node == nil && p.demand.pinned == "" {
			r.tally.outcome.Pending++
		}
	}
	r.tally.outcome.settle(r.h, append(r.tally.stays, r.h.fixed...), r.config.like, r.tally.waits)
}

// notes say what the figures of the run depend on.
func (r *run) notes() []string {
	if r.planner.exhausted == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d plans used up the budget of steps and may not be the best", r.planner.exhausted)}
}
