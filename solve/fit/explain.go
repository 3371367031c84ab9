package fit

import (
	"fmt"
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
	narrow := func(to Bits, constraint, hint string) bool {
		left = left.And(to)
		steps = append(steps, model.Step{Constraint: constraint, Left: left.Count(), Hint: hint})
		return !left.Empty()
	}
	if !narrow(p.Usable, "offerings available within the NodePool's requirements", "") {
		steps[0].Hint = "its requirements exclude every instance type, or all are out of capacity"
		return steps
	}
	if t, bad := model.Untolerated(p.Taints, s.Tolerations); bad {
		narrow(NewBits(len(c.Offers)), "taint "+t.String()+" is not tolerated", "add a toleration for it to the pod")
		return steps
	}
	for _, r := range demands {
		if !narrow(c.Match(r), r.String(), "") {
			steps[len(steps)-1].Hint = c.hint(pool, r)
			return steps
		}
	}
	if !narrow(c.roomy(s, left), "requests "+s.Requests.Format(names), "") {
		steps[len(steps)-1].Hint = "the pod and the daemonsets of the node need more than any of them offers"
	}
	return steps
}

// shownValues is how many known values of a label a hint lists.
const shownValues = 5

// hint says what the pool does offer for the label r asks about.
func (c *Catalogue) hint(pool int, r model.Requirement) string {
	values := c.values(pool, r.Key)
	switch {
	case len(values) == 0:
		return "the NodePool does not define label " + r.Key
	case len(values) > shownValues:
		return fmt.Sprintf("the NodePool offers %s and %d others", strings.Join(values[:shownValues], ", "), len(values)-shownValues)
	}
	return "the NodePool offers " + strings.Join(values, ", ")
}

// values returns the values nodes of the pool can have for key, sorted.
func (c *Catalogue) values(pool int, key string) []string {
	p := &c.Pools[pool]
	own, defined := p.Requirements.Get(key)
	seen := map[string]bool{}
	add := func(r model.Requirement, ok bool) {
		if ok && !r.Complement {
			for _, v := range r.Values {
				seen[v] = seen[v] || own.Has(v)
			}
		}
	}
	add(own, defined)
	for i := range p.Usable.All() {
		add(c.Offers[i].Requirements.Get(key))
		add(c.Types[c.Offers[i].Type].Requirements.Get(key))
	}
	var out []string
	for v, allowed := range seen {
		if allowed {
			out = append(out, v)
		}
	}
	slices.Sort(out)
	return out
}
