// SPDX-License-Identifier: Apache-2.0

package world

import (
	"fmt"
	"maps"
	"slices"

	"karpenter/model"
)

// labels returns the labels of the machine's view.
func (w *World) labels(m *machine) model.Requirements {
	of := named{node: m.node, claim: m.claim, name: w.nameOf(m), byName: w.interest.nodeNames > 0}
	if m.speaks() {
		of.claim = nil
	}
	if m.names.labels == nil || m.names.node != of.node || m.names.claim != of.claim || m.names.name != of.name || m.names.byName != of.byName {
		of.labels = m.requirements(of.name, of.byName)
		m.names = of
	}
	labels := w.foresee(m, m.names.labels)
	if more := w.declares(m); len(more) > 0 {
		labels = labels.And(more...)
	}
	return labels
}

// foresee returns the labels of a claim that is not launched with what every
// machine it may become has a value for: so that no label is taken for
// missing that only is not settled.
func (w *World) foresee(m *machine, labels model.Requirements) model.Requirements {
	if m.launched() {
		return labels
	}
	for _, r := range w.outlook(m).labels {
		if _, ok := labels.Intersects(model.Requirements{r}); ok {
			labels = labels.And(r)
		}
	}
	return labels
}

// outlook is what is sure of a claim that is not launched.
type outlook struct {
	labels  model.Requirements // as of shared
	least   model.Resources    // allocatable on any machine it may become
	devices []model.DevicePool // as of fewest
}

// outlook returns what is sure of the machine, which is not launched.
func (w *World) outlook(m *machine) outlook {
	pool := m.label(model.LabelNodePool)
	asked := pool
	for _, r := range m.claim.Requirements {
		asked += fmt.Sprintf("|%s %t %q %v %v %t", r.Key, r.Complement, r.Values, r.Gte, r.Lte, r.Present)
	}
	out, ok := w.outlooks[asked]
	if !ok {
		if len(w.outlooks) > 1000 { // of claims that are long gone
			clear(w.outlooks)
		}
		out = outlook{labels: shared(w.types[pool], m.claim.Requirements), least: least(w.types[pool], m.claim.Requirements), devices: fewest(w.types[pool], m.claim.Requirements)}
		w.outlooks[asked] = out
	}
	return out
}

// shared returns the labels that all machines have which the claim may become,
// with the values any of them has.
func shared(types []*model.InstanceType, claim model.Requirements) model.Requirements {
	all := tally{values: map[string]map[string]bool{}, having: map[string]int{}}
	n := 0
	for _, t := range types {
		if _, ok := claim.Intersects(t.Requirements); !ok {
			continue
		}
		offered := tally{values: all.values, having: map[string]int{}}
		offers := 0
		for i := range t.Offerings {
			if _, ok := claim.Intersects(t.Offerings[i].Requirements); ok {
				offered.add(t.Offerings[i].Requirements)
				offers++
			}
		}
		if offers == 0 {
			continue
		}
		n++
		all.add(slices.DeleteFunc(slices.Clone(t.Requirements), func(r model.Requirement) bool { return offered.having[r.Key] > 0 }))
		for key, having := range offered.having {
			if having == offers {
				all.having[key]++
			}
		}
	}
	var out model.Requirements
	for key, values := range all.values {
		if all.having[key] == n {
			out = out.And(model.NewRequirement(key, model.In, slices.Collect(maps.Keys(values))...))
		}
	}
	return out
}

// tally counts who has a label, and collects the values.
type tally struct {
	values map[string]map[string]bool
	having map[string]int
}

func (y tally) add(labels model.Requirements) {
	for _, r := range labels {
		if r.Complement || len(r.Values) == 0 {
			continue
		}
		y.having[r.Key]++
		if y.values[r.Key] == nil {
			y.values[r.Key] = map[string]bool{}
		}
		for _, v := range r.Values {
			y.values[r.Key][v] = true
		}
	}
}
