package pack

import (
	"fmt"

	"karpenter/model"
)

// verdict says why the pods left of d stay pending.
func (k *Packer) verdict(d *demand) model.Verdict {
	v := model.Verdict{Pods: d.left, Shape: d.Shape, Nodes: len(k.nodes)}
	for i := range k.catalogue.Pools {
		steps := k.catalogue.Explain(i, d.Demand, k.snapshot.Resources)
		if left := steps[len(steps)-1].Left; left > 0 {
			steps = append(steps, model.Step{Constraint: k.limitText(i), Hint: "raise spec.limits of the NodePool or free some of its nodes"})
		}
		v.Pools = append(v.Pools, model.PoolVerdict{Pool: k.catalogue.Pools[i].Name, Steps: steps})
	}
	for _, p := range k.snapshot.Pools {
		for _, what := range p.Refused {
			v.Pools = append(v.Pools, model.PoolVerdict{Pool: p.Name, Reason: "it uses " + what + ", which is not supported yet"})
		}
	}
	if len(v.Pools) == 0 {
		v.Reason = "no NodePool is ready to launch nodes"
	}
	return v
}

// limitText names the limits of the pool with what is used of them, counting
// the nodes of this plan.
func (k *Packer) limitText(pool int) string {
	p := &k.catalogue.Pools[pool]
	text := "limits"
	for i, l := range p.Limits {
		used := l.Max - k.limits.pools[pool].left[i]
		text += fmt.Sprintf(" %s=%s (%s used)", k.snapshot.Resources[l.Resource],
			model.FormatQuantity(l.Resource, l.Max), model.FormatQuantity(l.Resource, used))
	}
	return text
}
