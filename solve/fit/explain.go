// SPDX-License-Identifier: Apache-2.0

package fit

import "karpenter/model"

// Explain returns the chain of constraints that narrows the pool's offers for
// d, ending at the first that leaves none. Of several alternatives it tells the one that gets
// furthest. A last step that leaves some means
// the shape itself is not what keeps the pods from the pool. The resource
// names are those of the Snapshot.
func (c *Catalogue) Explain(pool int, d *Demand, names []string) []model.Step {
	var best []model.Step
	furthest := none
	for _, a := range alternatives(d.Shape) {
		steps, reached := c.explain(pool, d.Shape, a, names)
		if steps[len(steps)-1].Left > 0 {
			return steps
		}
		if reached > furthest || reached == furthest && len(steps) > len(best) {
			best, furthest = steps, reached
		}
	}
	return best
}

// stage is how far an alternative gets: at which kind of constraint nothing is left.
type stage int8

const (
	none stage = iota
	atPool
	atPod
	atVolumes
	atDevices
	atGroup
	atSize
)

// told is a conjunction the pod may run under, with what its volumes, its claims with
// devices and its PodGroup demand apart from what it demands itself.
type told struct{ own, volumes, devices, group model.Requirements }

func alternatives(s *model.Shape) []told {
	var out []told
	for _, own := range s.Chosen() {
		for _, volumes := range anyOf(s.VolumeTerms) {
			for _, devices := range anyOf(s.DeviceTerms) {
				for _, group := range anyOf(s.GroupTerms) {
					out = append(out, told{own, volumes, devices, group})
				}
			}
		}
	}
	return out
}

// anyOf returns the terms, or one that demands nothing.
func anyOf(terms []model.Requirements) []model.Requirements {
	if len(terms) == 0 {
		return []model.Requirements{nil}
	}
	return terms
}

func (c *Catalogue) explain(pool int, s *model.Shape, demands told, names []string) ([]model.Step, stage) {
	p := &c.Pools[pool]
	window := p.Offers.Window()
	left := window.Empty()
	window.Add(left, p.Offers)
	n := left.Count()
	var steps []model.Step
	// narrowTo applies a constraint. One that excludes nothing is not worth
	// telling; the hint, made of what was left before, is for one that excludes
	// everything.
	narrowTo := func(to Bits, step model.Step, hint func(before Bits) string) bool {
		step.Left = left.common(to)
		if step.Left == 0 {
			step.Hint = hint(window.Widen(left, len(c.Offers)))
		}
		if step.Left < n {
			steps = append(steps, step)
		}
		if n = step.Left; n > 0 {
			left.Keep(to)
		}
		return n > 0
	}
	narrow := func(to Bits, constraint string, hint func(before Bits) string) bool {
		return narrowTo(window.Of(to), model.Step{Constraint: constraint}, hint)
	}
	say := func(text string) func(Bits) string { return func(Bits) string { return text } }
	if n == 0 {
		return []model.Step{{Constraint: "offerings", Hint: "the NodeClass offers no instance types"}}, atPool
	}
	steps = append(steps, model.Step{Constraint: "offerings", Left: n})
	if !narrowTo(p.Allowed.Part(window), model.Step{Constraint: model.PoolRequirements}, say("they exclude every instance type: "+p.Pool.Requirements.String())) ||
		!narrowTo(p.Usable.Part(window), model.Step{Constraint: "unavailable offerings"}, say("the cloud has no capacity; Karpenter asks again in a few minutes")) {
		return steps, atPool
	}
	if t, bad := model.Untolerated(p.Taints, s.Tolerations); bad {
		return append(steps, model.Step{Constraint: "taint " + t.String() + " is not tolerated", Hint: "add a toleration for it to the pod"}), atPool
	}
	for _, r := range demands.own {
		if !narrow(c.Match(r), wording(s, r), func(before Bits) string { return c.labelHint(pool, before, s, r) }) {
			return steps, atPod
		}
	}
	both := demands.own.And(demands.volumes...)
	for _, r := range demands.volumes {
		all, _ := both.Get(r.Key)
		step := model.Step{Constraint: volumeWording(r), Volumes: true}
		if !narrowTo(window.Of(c.Match(all)), step, func(before Bits) string { return c.volumeHint(pool, before, r) }) {
			return steps, atVolumes
		}
	}
	both = both.And(demands.devices...)
	for _, r := range demands.devices {
		all, _ := both.Get(r.Key)
		if !narrow(c.Match(all), "where its claims have their devices: "+r.String(), say("a claim that has devices keeps pods to where these are; free capacity there, or have the pod use another claim")) {
			return steps, atDevices
		}
	}
	both = both.And(demands.group...)
	for _, r := range demands.group {
		all, _ := both.Get(r.Key)
		why := "all pods of the group must be in one domain of " + r.Key
		if r.Complement {
			why = "nodes launched there for the group have not started; wait until its other pods run"
		}
		if !narrow(c.Match(all), "the PodGroup in "+r.String(), say(why)) {
			return steps, atGroup
		}
	}
	narrow(c.roomy(s, window.Widen(left, len(c.Offers))), "requests "+s.Requests.Format(names), func(before Bits) string { return c.sizeHint(pool, before, s, names) })
	return steps, atSize
}
