package world

import (
	"slices"

	"karpenter/model"
)

// foresee returns the labels of a claim that is not launched with what every
// machine it may become has a value for: so that nobody takes a label for
// missing that only is not settled.
func (w *World) foresee(m *machine, labels model.Requirements) model.Requirements {
	if m.launched() {
		return labels
	}
	pool := m.label(model.LabelNodePool)
	allowed, ok := m.claim.Requirements.Get(model.LabelInstanceType)
	if !ok {
		allowed = model.NewRequirement(model.LabelInstanceType, model.Exists)
	}
	key := pool + " " + allowed.String()
	outlook, ok := w.outlooks[key]
	if !ok {
		if len(w.outlooks) > 1000 { // of claims that are long gone
			clear(w.outlooks)
		}
		outlook = shared(slices.DeleteFunc(slices.Clone(w.types[pool]), func(t *model.InstanceType) bool { return !allowed.Has(t.Name) }))
		w.outlooks[key] = outlook
	}
	for _, r := range outlook {
		if _, ok := labels.Intersects(model.Requirements{r}); ok {
			labels = labels.And(r)
		}
	}
	return labels
}

// shared returns the labels that all of the types have, with the values any of
// them has.
func shared(types []*model.InstanceType) model.Requirements {
	values, having := map[string][]string{}, map[string]int{}
	for _, t := range types {
		for _, r := range t.Requirements {
			if !r.Complement && len(r.Values) > 0 {
				having[r.Key]++
				values[r.Key] = append(values[r.Key], r.Values...)
			}
		}
	}
	var out model.Requirements
	for key, list := range values {
		if having[key] == len(types) {
			slices.Sort(list)
			out = out.And(model.NewRequirement(key, model.In, slices.Compact(list)...))
		}
	}
	return out
}
