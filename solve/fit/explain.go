package fit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"karpenter/model"
)

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
	// telling; the hint is for one that excludes everything.
	narrow := func(to Bits, constraint, hint string) bool {
		before := left.Count()
		left = left.And(to)
		step := model.Step{Constraint: constraint, Left: left.Count()}
		if step.Left == 0 {
			step.Hint = hint
		}
		if len(steps) == 0 || step.Left < before {
			steps = append(steps, step)
		}
		return step.Left > 0
	}
	if !narrow(left, "offerings", "the NodeClass offers no instance types") {
		return steps
	}
	if !narrow(p.Allowed, model.PoolRequirements, "they exclude every instance type: "+p.Pool.Requirements.String()) {
		return steps
	}
	if !narrow(p.Usable, "unavailable offerings", "the cloud is out of capacity; it is asked again in a few minutes") {
		return steps
	}
	if t, bad := model.Untolerated(p.Taints, s.Tolerations); bad {
		narrow(NewBits(len(c.Offers)), "taint "+t.String()+" is not tolerated", "add a toleration for it to the pod")
		return steps
	}
	for _, r := range demands {
		if !narrow(c.Match(r), r.String(), c.hint(pool, left, r)) {
			return steps
		}
	}
	narrow(c.roomy(s, left), "requests "+s.Requests.Format(names), "with the daemonsets of the node that is more than any of them has")
	return steps
}

// shownValues is how many known values of a label a hint lists.
const shownValues = 5

// hint says what the offers left have for the label r asks about.
func (c *Catalogue) hint(pool int, left Bits, r model.Requirement) string {
	own, defined := c.Pools[pool].Requirements.Get(r.Key)
	values := c.values(left, own)
	switch {
	case len(values) == 0 && !defined:
		return "the NodePool does not define label " + r.Key
	case len(values) == 0:
		return "the NodePool has " + own.String()
	case len(values) > shownValues:
		return fmt.Sprintf("there it is %s or %d others", strings.Join(values[:shownValues], ", "), len(values)-shownValues)
	}
	return "there it is " + strings.Join(values, ", ")
}

// values returns the values nodes bought from the offers can have for the key
// of own, which is what their pool demands of it, sorted.
func (c *Catalogue) values(left Bits, own model.Requirement) []string {
	seen := map[string]bool{}
	add := func(r model.Requirement, defined bool) {
		if !defined || r.Complement {
			return
		}
		for _, v := range r.Values {
			seen[v] = true
		}
	}
	add(own, true)
	for i := range left.All() {
		if o, ok := c.Offers[i].Requirements.Get(own.Key); ok {
			add(o, ok)
			continue
		}
		add(c.Types[c.Offers[i].Type].Requirements.Get(own.Key))
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(seen)), func(v string) bool { return !own.Has(v) })
}
