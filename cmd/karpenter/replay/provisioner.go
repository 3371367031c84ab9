// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"time"
)

// provisioner decides about new nodes for pods.
type provisioner struct {
	arrived  bool // pods look for a place that nothing was planned for
	freed    bool // capacity may have become free since pods were planned
	unplaced int
	placed   time.Time // when pods were placed last
	first    time.Time // batch: its first pod; zero = there is none
	batch    time.Time // when it ends
}

// collect extends the batch of pods that wait for a node.
func (r *run) collect() {
	p := &r.provisioner
	if p.first.IsZero() {
		p.first = r.now
	}
	end := r.now.Add(batchIdle)
	if most := p.first.Add(batchMost); most.Before(end) {
		end = most
	}
	p.batch = end
	r.at(end, func() {
		if p.batch.Equal(r.now) {
			p.first, p.batch = time.Time{}, time.Time{}
			r.place(true)
		}
	})
}

// place plans nodes for the pods that have none. It returns the number of new nodes,
// and launches them if launch is true.
func (r *run) place(launch bool) (launches int) {
	r.provisioner.arrived, r.provisioner.freed, r.provisioner.placed = false, false, r.now
	plan := r.planner.counted(r.planner.Place(r.world.Snapshot(r.now), r.planner.policy))
	for _, x := range plan.Placements {
		r.aim(x.Pod, x.Node)
	}
	r.provisioner.unplaced = 0
	for _, v := range plan.Verdicts {
		r.provisioner.unplaced += len(v.Pods)
		r.world.Unplaced(v.Pods)
		for _, ref := range v.Pods {
			if p := r.load.pods[ref.UID]; p != nil {
				p.to = p.node
			}
		}
	}
	if launch {
		for i := range plan.Launches {
			r.launch(&plan.Launches[i], "")
		}
	}
	return len(plan.Launches)
}
