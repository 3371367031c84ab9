// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"math"
	"slices"

	"karpenter/model"
)

// Attachable returns how many pods with these volumes the node's limits on
// attached volumes leave room for.
func (n *NodeRow) Attachable(volumes []model.Volumes) int {
	most := math.MaxInt32
	for _, v := range volumes {
		for _, a := range n.Attached {
			if a.Driver != v.Driver {
				continue
			}
			left := a.Limit - a.Own - len(a.Shared) - news(a.Shared, v.Shared)
			switch {
			case left < 0 && news(a.Shared, v.Shared)+v.Own > 0:
				return 0
			case v.Own > 0:
				most = min(most, left/v.Own)
			}
		}
	}
	return most
}

// Attach notes the volumes of one more pod.
func (n *NodeRow) Attach(volumes []model.Volumes) {
	if len(volumes) == 0 || len(n.Attached) == 0 {
		return
	}
	node := *n.Node
	node.Attached = slices.Clone(node.Attached)
	n.Node = &node
	for i := range node.Attached {
		a := &node.Attached[i]
		for _, v := range volumes {
			if v.Driver == a.Driver {
				a.Own += v.Own
				a.Shared = slices.Compact(slices.Sorted(slices.Values(slices.Concat(a.Shared, v.Shared))))
			}
		}
	}
}

// news returns how many of the claims are not among those attached.
func news(attached, claims []string) int {
	n := 0
	for _, c := range claims {
		if _, ok := slices.BinarySearch(attached, c); !ok {
			n++
		}
	}
	return n
}
