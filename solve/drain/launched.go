// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"slices"

	"karpenter/model"
)

// labelled returns the labels that the node of a launch will have.
func (sc *scene) labelled(l *model.Launch) model.Requirements {
	pool := &sc.s.Pools[sc.pools[l.Pool]]
	out := sc.labels(pool, l).And(
		model.NewRequirement(model.LabelZone, model.In, zones(pool, l)...),
		model.NewRequirement(model.LabelNodePool, model.In, l.Pool))
	if len(l.CapacityTypes) > 0 {
		out = out.And(model.NewRequirement(model.LabelCapacityType, model.In, l.CapacityTypes...))
	}
	return out
}

// labels returns what is known of the labels of a launch, whichever of its types it
// becomes.
func (sc *scene) labels(pool *model.Pool, l *model.Launch) model.Requirements {
	out := l.Requirements.And(sc.inCommon(pool, l.Types)...)
	for _, q := range out {
		if n, ok := q.Number(); ok && !q.AllowsAbsence() && !sc.s.WellKnown.Has(q.Key) {
			out = out.And(model.NewRequirement(q.Key, model.In, n))
		}
	}
	return out
}

// inCommon returns what all of the types, of those that launches list, say about
// labels: the values that some of them have.
func (sc *scene) inCommon(pool *model.Pool, names []string) model.Requirements {
	m := typeList{pool: pool.Name, types: len(names)}
	if len(names) > 0 {
		m.first = &names[0]
	}
	if out, ok := sc.menus[m]; ok {
		return out
	}
	if sc.menus == nil {
		sc.menus, sc.wording = map[typeList]model.Requirements{}, newWording()
	}
	listed := map[string]bool{}
	for _, name := range names {
		listed[name] = true
	}
	types := make([]*model.InstanceType, 0, len(names))
	for _, t := range pool.Types {
		if listed[t.Name] {
			types = append(types, t)
		}
	}
	out := sc.wording.inCommon(types)
	sc.menus[m] = out
	return out
}

// zones returns where the launch may come, the planned zone first. What is sold out
// now may be had again when the launch is made.
func zones(pool *model.Pool, l *model.Launch) []string {
	out := []string{l.Zone}
	listed := map[string]bool{}
	for _, name := range l.Types {
		listed[name] = true
	}
	demand, demanded := l.Requirements.Get(model.LabelZone)
	for _, t := range pool.Types {
		if !listed[t.Name] {
			continue
		}
		for i := range t.Offerings {
			o := &t.Offerings[i]
			if !slices.Contains(out, o.Zone) && slices.Contains(l.CapacityTypes, o.CapacityType) &&
				(!demanded || demand.Has(o.Zone)) {
				out = append(out, o.Zone)
			}
		}
	}
	return out
}
