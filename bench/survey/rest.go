package survey

import (
	"fmt"

	"karpenter/bench/meter"
	"karpenter/bench/ours"
	"karpenter/bench/workload"
)

// rest measures decisions about disruption until there is nothing left to
// disrupt.
func (k *child) rest(w *workload.Workload) error {
	e, err := k.take(w)
	if err != nil {
		return err
	}
	o, ok := e.(*ours.Engine)
	if !ok {
		return fmt.Errorf("%s cannot disrupt", k.m.Engine)
	}
	for _, m := range w.Machines {
		k.m.Pods += len(m.Bound) - len(w.Daemons)
	}
	k.m.Scheduled = k.m.Pods
	end, err := o.Rest(func(decide func() error) error {
		late := Restless
		if k.m.Decisions == 0 {
			late = Late
		}
		cpu, elapsed, err := k.timed(late, decide)
		if k.m.Decisions == 0 {
			k.m.FirstCPU, k.m.Seconds, k.m.PeakBytes = cpu, elapsed, meter.Peak()
		} else {
			k.m.WarmCPU = max(k.m.WarmCPU, cpu)
		}
		k.m.RestCPU += cpu
		k.m.Decisions++
		return err
	})
	k.m.Nodes, k.m.Price, k.m.Bound, k.m.Status = end.Nodes, end.Price, end.Bound, OK
	return err
}
