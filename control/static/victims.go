// SPDX-License-Identifier: Apache-2.0

package static

import (
	"cmp"
	"slices"
	"strings"
)

// victim is a claim that can be deleted if its pool has too many, and what its
// removal would disrupt.
type victim struct {
	claim    string
	launched bool    // it has an instance
	ready    bool    // its Node is initialized
	drifted  bool    // it is to be replaced anyway
	spared   bool    // its Node has the annotation do-not-disrupt
	pods     int     // that are not its DaemonSets' and have not ended
	guarded  bool    // a pod on it has the annotation do-not-disrupt in force
	cost     float64 // of evicting its pods, less the older it is; 0 without any
	left     float64 // of its life, from 1 to 0
}

// class orders victims by how much their pods argue against the removal, least
// first.
func (v victim) class() int {
	switch {
	case !v.launched:
		return 0
	case v.pods == 0 && !v.guarded:
		return 1
	case !v.guarded:
		return 2
	}
	return 3
}

// victims returns the n claims to remove, in order: those without an instance;
// those without pods, or only with their DaemonSets'; then by what their pods
// cost to evict. Claims with a pod that is not to be disrupted come last of all.
// Of each kind, claims whose Node is not ready for pods yet come first, those
// whose Node is not to be disrupted last, and of equals those first that have
// drifted, then the oldest.
func victims(all []victim, n int) []string {
	order := slices.SortedFunc(slices.Values(all), func(a, b victim) int {
		return cmp.Or(
			cmp.Compare(a.class(), b.class()),
			yes(a.ready)-yes(b.ready),
			yes(a.spared)-yes(b.spared),
			cmp.Compare(a.cost, b.cost),
			yes(b.drifted)-yes(a.drifted),
			cmp.Compare(a.left, b.left),
			strings.Compare(a.claim, b.claim))
	})
	var out []string
	for _, v := range order[:min(n, len(order))] {
		out = append(out, v.claim)
	}
	return out
}

func yes(b bool) int {
	if b {
		return 1
	}
	return 0
}
