package fit

import "karpenter/model"

// Explain returns the chain of constraints that narrows the pool's offers for
// d, ending at the first that leaves none. A last step that leaves some means
// the shape itself is not what keeps the pods from the pool. The resource
// names are those of the Snapshot.
func (c *Catalogue) Explain(pool int, d *Demand, names []string) []model.Step {
	var longest []model.Step
	for _, a := range d.alts {
		if steps := c.explain(pool, d.Shape, a.demands, names); len(steps) > len(longest) || steps[len(steps)-1].Left > 0 {
			longest = steps
		}
	}
	return longest
}

func (c *Catalogue) explain(pool int, s *model.Shape, demands model.Requirements, names []string) []model.Step {
	p := &c.Pools[pool]
	left := NewBits(len(c.Offers))
	for i := p.Offers.From; i < p.Offers.To; i++ {
		left.Set(i)
	}
	var steps []model.Step
	// narrow applies a constraint. One that excludes nothing is not worth
	// telling; the hint, made of what was left before, is for one that excludes
	// everything.
	narrow := func(to Bits, constraint string, hint func(before Bits) string) bool {
		before := left
		left = left.And(to)
		step := model.Step{Constraint: constraint, Left: left.Count()}
		if step.Left == 0 {
			step.Hint = hint(before)
		}
		if len(steps) == 0 || step.Left < before.Count() {
			steps = append(steps, step)
		}
		return step.Left > 0
	}
	say := func(text string) func(Bits) string { return func(Bits) string { return text } }
	if !narrow(left, "offerings", say("the NodeClass offers no instance types")) ||
		!narrow(p.Allowed, model.PoolRequirements, say("they exclude every instance type: "+p.Pool.Requirements.String())) ||
		!narrow(p.Usable, "unavailable offerings", say("the cloud is out of capacity; it is asked again in a few minutes")) {
		return steps
	}
	if t, bad := model.Untolerated(p.Taints, s.Tolerations); bad {
		narrow(NewBits(len(c.Offers)), "taint "+t.String()+" is not tolerated", say("add a toleration for it to the pod"))
		return steps
	}
	for _, r := range demands {
		if !narrow(c.Match(r), wording(s, r), func(before Bits) string { return c.labelHint(pool, before, s, r) }) {
			return steps
		}
	}
	narrow(c.roomy(s, left), "requests "+s.Requests.Format(names), func(before Bits) string { return c.sizeHint(pool, before, s, names) })
	return steps
}
