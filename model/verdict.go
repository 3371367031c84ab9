// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"
	"strings"
)

// Verdict says why pods of one shape stay pending: a reason in the pods
// themselves, and for each pool the constraints that excluded its offerings,
// step by step.
type Verdict struct {
	Pods   []Pod
	Shape  *Shape
	Reason string // what keeps the pods pending besides pools, or instead of them: their PodGroup, something rejected, no pools
	Pools  []PoolVerdict
	Nodes  int // existing nodes that were considered and had no capacity
}

// PoolVerdict says why one pool launches nothing for the pods.
type PoolVerdict struct {
	Pool   string
	Reason string // set when the pool was not asked; then there are no Steps
	Steps  []Step // in the order the constraints were applied; the last leaves nothing
	Suits  bool   // but for the last step, the pool has offerings that could take the pods
}

// Step is one constraint and what it left.
type Step struct {
	Constraint string // in words: "taint dedicated=gpu:NoSchedule not tolerated"
	Left       int    // offerings still possible
	Hint       string // smallest change that would help; "" = none known
	Volumes    bool   // the constraint is where volumes can be used; the Claims of a pod say whose
}

// String prints the verdict on one line, stable for equal causes, so that
// events can be deduplicated by it.
func (v Verdict) String() string {
	var parts []string
	if v.Reason != "" {
		parts = append(parts, v.Reason)
	}
	for _, p := range v.Pools {
		parts = append(parts, p.String())
	}
	return strings.Join(parts, "; ")
}

// Brief prints the verdict in at most about that many bytes. Pools that suit
// the pods come first. Pools that do not fit are only counted. The first one is
// always printed in full.
func (v Verdict) Brief(most int) string {
	whole := v.String()
	if len(whole) <= most || len(v.Pools) < 2 {
		return whole
	}
	pools := slices.Clone(v.Pools)
	slices.SortStableFunc(pools, func(a, b PoolVerdict) int {
		switch {
		case a.Suits == b.Suits:
			return 0
		case a.Suits:
			return -1
		}
		return 1
	})
	text := pools[0].String()
	if v.Reason != "" {
		text = v.Reason + "; " + text
	}
	for i, p := range pools[1:] {
		rest := fmt.Sprintf("; NodePools not shown: %d", len(pools)-1-i)
		next := text + "; " + p.String()
		if len(next)+len(rest) > most {
			return text + rest
		}
		text = next
	}
	return text
}

// String prints "nodepool general: 412 offerings → 96 after kubernetes.io/arch
// In [arm64] → 0 after …".
func (p PoolVerdict) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "nodepool %s: %s", p.Pool, p.Reason)
	for i, s := range p.Steps {
		if i == 0 {
			fmt.Fprintf(&b, "%d %s", s.Left, s.Constraint)
		} else {
			fmt.Fprintf(&b, " → %d after %s", s.Left, s.Constraint)
		}
		if s.Hint != "" {
			fmt.Fprintf(&b, " (%s)", s.Hint)
		}
	}
	return b.String()
}

// For returns the verdict for one of its pods. If volumes constrain the pod,
// the verdict names their claims.
func (v Verdict) For(pod Pod) Verdict {
	if pod.Claims == "" {
		return v
	}
	v.Pools = slices.Clone(v.Pools)
	for i, p := range v.Pools {
		p.Steps = slices.Clone(p.Steps)
		for j := range p.Steps {
			if p.Steps[j].Volumes {
				p.Steps[j].Constraint += ", of PersistentVolumeClaim " + pod.Claims
			}
		}
		v.Pools[i] = p
	}
	return v
}

// PoolRequirements is the Constraint of the Step that applies what a pool
// demands itself.
const PoolRequirements = "the NodePool's requirements"

// LeavesNoType reports whether the pool's own requirements exclude every
// instance type, for any pod.
func (p PoolVerdict) LeavesNoType() bool {
	if len(p.Steps) == 0 {
		return false
	}
	last := p.Steps[len(p.Steps)-1]
	return last.Constraint == PoolRequirements && last.Left == 0
}
