// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"encoding/binary"
	"slices"
	"strings"

	"karpenter/model"
	"karpenter/solve/fit"
)

// region is an area however domains are numbered.
type region struct {
	labels []string     // the names of the keys
	names  []string     // by key: the value of the label; "" where it is not settled
	states []labelState // by key
	offers fit.OfferSet
	rank   int // by the values
}

// labelState says what is known of a label of the nodes in a region.
type labelState byte

const (
	labelAbsent  labelState = iota // they do not have it
	labelSettled                   // it has the value
	labelOpen                      // it has some value that is not settled
)

// id is equal for equal regions of the same keys.
func (r *region) id() string {
	b := make([]byte, 0, 32*len(r.names))
	for i, name := range r.names {
		b = append(binary.AppendUvarint(b, uint64(len(name))), name...)
		b = append(b, byte(r.states[i]))
	}
	return string(b)
}

// text is equal for equal regions, also of other drafts, which number domains differently.
func (r *region) text() string { return strings.Join(r.labels, "\x00") + "\x00" + r.id() }

// pin returns what settles a node for the region as far as it is about one of the labels,
// and whether anything does.
func (r *region) pin(i int) (model.Requirement, bool) {
	switch r.states[i] {
	case labelSettled:
		return model.Requirement{Key: r.labels[i], Values: r.names[i : i+1 : i+1]}, true
	case labelAbsent:
		return model.NewRequirement(r.labels[i], model.DoesNotExist), true
	}
	return model.Requirement{}, false
}

// pins returns what settles a node for the region.
func (r *region) pins() model.Requirements {
	out := make(model.Requirements, 0, len(r.labels))
	for i := range r.labels {
		if pin, ok := r.pin(i); ok {
			out = append(out, pin)
		}
	}
	slices.SortFunc(out, func(a, b model.Requirement) int { return strings.Compare(a.Key, b.Key) })
	return out
}

// suits reports whether a node in the region can meet the demands.
func (r *region) suits(demands model.Requirements) bool {
	if len(demands) == 0 {
		return true
	}
	for i := range r.labels {
		if pin, ok := r.pin(i); ok {
			if _, met := demands.Intersects(model.Requirements{pin}); !met {
				return false
			}
		}
	}
	return true
}

// valueOf returns the value of a label that is settled in the region, or "".
func (r *region) valueOf(label string) string {
	if i := slices.Index(r.labels, label); i >= 0 {
		return r.names[i]
	}
	return ""
}

// name tells the region from others of the same demand.
func (r *region) name() string { return strings.Join(r.names, "\x00") }
