// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"reflect"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/cmd/karpenter/record"
	"karpenter/cmd/karpenter/situation"
	"karpenter/model"
	"karpenter/scenario"
)

// Situation returns the situation with pseudonyms.
func Situation(s scenario.Situation) scenario.Situation {
	r := &Redactor{}
	Learn(r, s.Snapshot)
	return scenario.Situation{Snapshot: r.snapshot(s.Snapshot), Policy: s.Policy}
}

// snapshot returns the Snapshot with pseudonyms. The keys of shapes are computed again from the
// changed shapes.
func (r *Redactor) snapshot(s *model.Snapshot) *model.Snapshot {
	out := Redacted(r, s)
	name := func(all []model.Pending) {
		for i := range all {
			all[i].Shape.Key = all[i].Shape.Identity(out.Resources)
		}
	}
	name(out.Pending)
	for i := range out.Nodes {
		name(out.Nodes[i].Movable)
	}
	for i := range out.Daemons {
		out.Daemons[i].Shape.Key = out.Daemons[i].Shape.Identity(out.Resources)
	}
	return out
}

// Object returns the object of a recording with pseudonyms, nil if it has to be left out. What the
// leader publishes and the record keep their names, because commands look for them by name.
func (r *Redactor) Object(o client.Object) (client.Object, error) {
	switch o := o.(type) {
	case *apiextensionsv1.CustomResourceDefinition:
		return o, nil
	case *corev1.ConfigMap:
		switch {
		case o.Name == situation.Name:
			return r.published(o)
		case o.Name == record.BaselineName:
			return r.baseline(o), nil
		case slices.Contains(record.Names(), o.Name):
			return r.decisions(o), nil
		}
		return nil, nil
	case *coordinationv1.Lease:
		out := Redacted(r, o)
		out.Name = o.Name
		return out, nil
	}
	return r.walk(reflect.ValueOf(o), "").Interface().(client.Object), nil
}

// decisions returns a ConfigMap of the record, without the reasons why pods could not be placed,
// which are sentences with names. It returns nil if the ConfigMap cannot be parsed.
func (r *Redactor) decisions(m *corev1.ConfigMap) client.Object {
	packed, err := record.Rewritten(m,
		func(d *record.Decision) *record.Decision { return Redacted(r, d) },
		func(o *record.Outcome) *record.Outcome { return Redacted(r, o) })
	if err != nil {
		return nil
	}
	out := Redacted(r, m)
	out.Name, out.Data, out.BinaryData = m.Name, packed.Data, packed.BinaryData
	return out
}

// baseline returns the ConfigMap of a baseline, which contains only amounts. It returns nil if
// the ConfigMap cannot be parsed.
func (r *Redactor) baseline(m *corev1.ConfigMap) client.Object {
	b, err := record.ParseBaseline(m)
	if err != nil {
		return nil
	}
	fresh, err := b.ConfigMap(m.Namespace)
	if err != nil {
		return nil
	}
	out := Redacted(r, m)
	out.Name, out.Data = m.Name, fresh.Data
	return out
}

func (r *Redactor) published(m *corev1.ConfigMap) (client.Object, error) {
	out := m.DeepCopy()
	out.Namespace = r.Name(m.Namespace)
	if len(m.Data) == 0 {
		return out, nil
	}
	p, err := situation.Parse(m)
	if err != nil {
		return nil, err
	}
	p.Offerings.Snapshot = r.snapshot(p.Offerings.Snapshot)
	p.Rules.Constraints = *Redacted(r, &p.Rules.Constraints)
	if p.Health != nil {
		p.Health.Queue = r.Name(p.Health.Queue)
	}
	return out, p.Replace(out)
}
