// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"fmt"

	"karpenter/bench/judge"
	"karpenter/bench/meter"
	"karpenter/bench/ours"
	"karpenter/bench/workload"
)

// maxSteps is how many decisions a cluster gets to come to rest.
const maxSteps = 1000

// restFactor is how many times the limit of one decision all of them can take.
const restFactor = 2

// disrupter is an engine that decides which nodes to remove.
type disrupter interface {
	Disrupt() error
	Step() judge.Step
	Apply(workload.Change) error
}

// rest measures decisions about disruption, each of which is judged and carried
// out before the next, until there is nothing left to disrupt.
func (k *child) rest(w *workload.Workload) error {
	for i := range w.Machines {
		k.m.Pods += w.Machines[i].Pods()
	}
	k.m.Scheduled = k.m.Pods
	e, err := k.take(w)
	if err != nil {
		return err
	}
	k.m.Status = OK
	d := e.(disrupter) // both engines are
	for step := 0; ; step++ {
		if step == maxSteps || k.m.RestCPU > restFactor*k.limits.CPU.Seconds() {
			k.m.Status, k.m.Note = Restless, fmt.Sprintf("%d decisions", step)
			break
		}
		if err := k.decide(d); err != nil {
			return err
		}
		s := d.Step()
		if len(s.Removed) == 0 {
			break
		}
		v, change := judge.Carry(w, &s, fmt.Sprintf("step-%d", step))
		if v.Count > 0 {
			k.m.Status, k.m.Note, k.m.Faults = Invalid, fmt.Sprintf("%d faults in decision %d", v.Count, step+1), v.Faults
			break
		}
		if err := d.Apply(change); err != nil {
			return err
		}
		k.m.NewNodes, k.m.Price = len(w.Machines), judge.Cost(w)
	}
	k.m.NewNodes, k.m.Price = len(w.Machines), judge.Cost(w)
	return k.bound(e)
}

// decide measures one decision.
func (k *child) decide(d disrupter) error {
	late := Restless
	if k.m.Decisions == 0 {
		late = Late
	}
	cpu, elapsed, err := k.timed(late, d.Disrupt)
	if k.m.Decisions == 0 {
		k.m.FirstCPU, k.m.Seconds, k.m.PeakBytes = cpu, elapsed, meter.Peak()
	} else {
		k.m.WarmCPU = max(k.m.WarmCPU, cpu)
	}
	k.m.RestCPU += cpu
	k.m.Decisions++
	return err
}

// bound adds the bound of the cluster at rest. If it takes too long, there is
// none.
func (k *child) bound(e engine) error {
	o, ok := e.(*ours.Engine)
	if !ok || k.m.Status == Invalid {
		return nil
	}
	bound := 0.0
	_, _, err := k.timed(k.m.Status, func() error {
		bound = o.ClusterBound()
		return nil
	})
	k.m.Bound = bound
	return err
}
