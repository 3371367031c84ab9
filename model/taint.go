// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"
	"strconv"
)

// Effect is what a taint does to pods that do not tolerate it.
type Effect string

// The three effects. PreferNoSchedule excludes pods like NoSchedule, until the
// preferences of a pod are relaxed to tolerate it.
const (
	NoSchedule       Effect = "NoSchedule"
	PreferNoSchedule Effect = "PreferNoSchedule"
	NoExecute        Effect = "NoExecute"
)

// Taint repels pods from a node.
type Taint struct {
	Key, Value string
	Effect     Effect
}

// String prints key[=value]:effect.
func (t Taint) String() string {
	if t.Value == "" {
		return t.Key + ":" + string(t.Effect)
	}
	return t.Key + "=" + t.Value + ":" + string(t.Effect)
}

// Firm returns the taints that keep pods away for good: PreferNoSchedule does not.
func Firm(taints []Taint) []Taint {
	return slices.DeleteFunc(slices.Clone(taints), func(t Taint) bool { return t.Effect == PreferNoSchedule })
}

// Toleration lets a pod onto nodes with matching taints. An empty Key with
// Exists matches every key, an empty Effect every effect.
type Toleration struct {
	Key     string
	Exists  bool       // otherwise Value must be equal, or
	Compare Comparison // what the value of the taint must be; "" = equal
	Value   string
	Effect  Effect
}

// Comparison is how the value of a taint must compare to that of a toleration, both as
// integers.
type Comparison string

// The comparisons.
const (
	Greater Comparison = "Gt"
	Less    Comparison = "Lt"
)

// holds reports whether the value of a taint compares in this way to that of a
// toleration. Texts that are not integers as strconv writes them never do.
func (c Comparison) holds(taint, toleration string) bool {
	a, okA := integer(taint)
	b, okB := integer(toleration)
	return okA && okB && (c == Greater && a > b || c == Less && a < b)
}

func integer(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && strconv.FormatInt(n, 10) == text
}

// Tolerates reports whether t is matched by the toleration.
func (o Toleration) Tolerates(t Taint) bool {
	if o.Effect != "" && o.Effect != t.Effect {
		return false
	}
	if o.Key != t.Key && (o.Key != "" || !o.Exists) {
		return false
	}
	if o.Exists || o.Compare == "" {
		return o.Exists || o.Value == t.Value
	}
	return o.Compare.holds(t.Value, o.Value)
}

// Untolerated returns the first taint that none of tolerations matches.
func Untolerated(taints []Taint, tolerations []Toleration) (Taint, bool) {
	for i := range taints {
		if !tolerated(&taints[i], tolerations) {
			return taints[i], true
		}
	}
	return Taint{}, false
}

func tolerated(t *Taint, tolerations []Toleration) bool {
	for i := range tolerations {
		if tolerations[i].Tolerates(*t) {
			return true
		}
	}
	return false
}
