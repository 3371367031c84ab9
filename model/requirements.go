// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"
	"strings"
)

// Requirements is a conjunction: at most one Requirement per key, sorted by
// key. The nil value demands nothing. Methods never modify their receiver.
type Requirements []Requirement

// NewRequirements returns the conjunction of all of rs; entries with the same
// key are intersected.
func NewRequirements(rs ...Requirement) Requirements {
	return Requirements(nil).And(rs...)
}

// LabelRequirements returns labels as requirements with one value each.
func LabelRequirements(labels map[string]string) Requirements {
	out := make(Requirements, 0, len(labels))
	for k, v := range labels {
		out = append(out, Requirement{Key: k, Values: []string{v}})
	}
	slices.SortFunc(out, byKey)
	return out
}

func byKey(a, b Requirement) int { return strings.Compare(a.Key, b.Key) }

func (rs Requirements) find(key string) (int, bool) {
	low, high := 0, len(rs)
	for low < high { // as slices.BinarySearchFunc, which copies a Requirement for each comparison
		if i := (low + high) / 2; rs[i].Key < key {
			low = i + 1
		} else {
			high = i
		}
	}
	return low, low < len(rs) && rs[low].Key == key
}

// Get returns the requirement for key and whether there is one; without one it
// is Exists, which any value satisfies.
func (rs Requirements) Get(key string) (Requirement, bool) {
	if i, ok := rs.find(key); ok {
		return rs[i], true
	}
	return Requirement{Key: key, Complement: true}, false
}

// Value returns the single value rs pins key to.
func (rs Requirements) Value(key string) (string, bool) {
	r, ok := rs.Get(key)
	if !ok || r.Complement || len(r.Values) != 1 {
		return "", false
	}
	return r.Values[0], true
}

// And returns rs with more added; an added key that is present is intersected.
func (rs Requirements) And(more ...Requirement) Requirements {
	if len(more) == 0 {
		return slices.Clone(rs)
	}
	out := append(make(Requirements, 0, len(rs)+min(len(more), mostNew)), rs...)
	for _, r := range more {
		if i, ok := out.find(r.Key); ok {
			out[i] = out[i].Intersect(r)
		} else {
			out = slices.Insert(out, i, r)
		}
	}
	return out
}

// mostNew is for how many keys of which nothing was required yet there is memory at once:
// many requirements together are mostly about the same keys.
const mostNew = 8

// Without returns rs less the requirements for keys.
func (rs Requirements) Without(keys ...string) Requirements {
	return slices.DeleteFunc(slices.Clone(rs), func(r Requirement) bool { return slices.Contains(keys, r.Key) })
}

// Conflict is the first requirement that is not satisfied. Existing is nil if
// the other side does not define the label.
type Conflict struct {
	Incoming Requirement
	Existing *Requirement
}

// String prints the conflict as one clause.
func (c Conflict) String() string {
	if c.Existing == nil {
		return "label " + c.Incoming.Key + " is not defined (wanted " + c.Incoming.String() + ")"
	}
	return c.Incoming.String() + " conflicts with " + c.Existing.String()
}

// Intersects reports whether labels exist that satisfy both sets, looking at
// shared keys only; otherwise it names the first conflict. NotIn and
// DoesNotExist are compatible: an absent label satisfies both.
func (rs Requirements) Intersects(incoming Requirements) (Conflict, bool) {
	for _, in := range incoming {
		i, ok := rs.find(in.Key)
		if !ok || rs[i].Intersects(in) || (rs[i].AllowsAbsence() && in.AllowsAbsence()) {
			continue
		}
		return Conflict{Incoming: in, Existing: &rs[i]}, false
	}
	return Conflict{}, true
}

// Compatible reports whether incoming can be met by something described by
// rs. A key that rs does not define is accepted if undefined contains it, or if
// incoming accepts that the label is absent. Pass nil for a strict check, and
// the well-known labels for a lenient one.
func (rs Requirements) Compatible(incoming Requirements, undefined LabelSet) (Conflict, bool) {
	for _, in := range incoming {
		if _, defined := rs.find(in.Key); !defined && !undefined.Has(in.Key) && !in.AllowsAbsence() {
			return Conflict{Incoming: in}, false
		}
	}
	return rs.Intersects(incoming)
}

// Satisfies reports whether whatever rs allows also meets demand: the test for
// capacity that already exists, or whose labels are not all settled yet.
func (rs Requirements) Satisfies(demand Requirements) (Conflict, bool) {
	for _, d := range demand {
		i, ok := rs.find(d.Key)
		switch {
		case !ok && !d.AllowsAbsence():
			return Conflict{Incoming: d}, false
		case ok && !rs[i].Within(d):
			return Conflict{Incoming: d, Existing: &rs[i]}, false
		}
	}
	return Conflict{}, true
}

// String prints the requirements joined by commas; the hostname is left out.
func (rs Requirements) String() string {
	var parts []string
	for _, r := range rs {
		if r.Key != LabelHostname {
			parts = append(parts, r.String())
		}
	}
	return strings.Join(parts, ", ")
}

// LabelSet is a set of label keys. The nil set is empty.
type LabelSet map[string]struct{}

// NewLabelSet returns the set of keys.
func NewLabelSet(keys ...string) LabelSet {
	s := make(LabelSet, len(keys))
	for _, k := range keys {
		s[k] = struct{}{}
	}
	return s
}

// Has reports whether key is in the set.
func (s LabelSet) Has(key string) bool { _, ok := s[key]; return ok }

// Labels that decisions are made on.
const (
	LabelZone         = "topology.kubernetes.io/zone"
	LabelRegion       = "topology.kubernetes.io/region"
	LabelHostname     = "kubernetes.io/hostname"
	LabelInstanceType = "node.kubernetes.io/instance-type"
	LabelArch         = "kubernetes.io/arch"
	LabelOS           = "kubernetes.io/os"
	LabelCapacityType = "karpenter.sh/capacity-type"
	LabelNodePool     = "karpenter.sh/nodepool"
	LabelRegistered   = "karpenter.sh/registered"
	LabelInitialized  = "karpenter.sh/initialized"
)

// FieldName stands for the name of a Node where pods demand one. No label can
// be called so, and no node that is still to be launched has it.
const FieldName = ".metadata.name"

// FeaturePrefix begins the key that stands for a feature in Node.status.declaredFeatures, where
// pods need one. The value is "true". No label can be called so.
const FeaturePrefix = ".status.declaredFeatures/"

// Values of LabelCapacityType.
const (
	Spot     = "spot"
	OnDemand = "on-demand"
	Reserved = "reserved"
)
