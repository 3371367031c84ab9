// SPDX-License-Identifier: Apache-2.0

package model

import "slices"

// Effect is what a taint does to pods that do not tolerate it.
type Effect string

// The three effects. PreferNoSchedule keeps pods away as firmly as NoSchedule
// until a pod is relaxed to tolerate it.
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

// Toleration lets a pod onto nodes with matching taints. An empty Key with
// Exists matches every key, an empty Effect every effect.
type Toleration struct {
	Key    string
	Exists bool // otherwise Value must be equal
	Value  string
	Effect Effect
}

// Tolerates reports whether t is matched by the toleration.
func (o Toleration) Tolerates(t Taint) bool {
	if o.Effect != "" && o.Effect != t.Effect {
		return false
	}
	if o.Key != t.Key && (o.Key != "" || !o.Exists) {
		return false
	}
	return o.Exists || o.Value == t.Value
}

// Untolerated returns the first taint that none of tolerations matches.
func Untolerated(taints []Taint, tolerations []Toleration) (Taint, bool) {
	for _, t := range taints {
		if !slices.ContainsFunc(tolerations, func(o Toleration) bool { return o.Tolerates(t) }) {
			return t, true
		}
	}
	return Taint{}, false
}
