// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"encoding/binary"
	"slices"

	"karpenter/solve/topology"
)

// area is a cell as far as it is the same for all demands: those that are tied
// to domains of the same keys share a list of them.
type area struct {
	*region
	id    string // of the place: what numbers domains, numbers those of another draft differently
	place topology.Place
}

// unlabelled is the region of areas of which nothing but the place is known.
var unlabelled = &region{}

// placeID is equal for places that agree in the keys.
func placeID(p topology.Place, keys []int) string { return string(appendPlaceID(nil, p, keys)) }

func appendPlaceID(b []byte, p topology.Place, keys []int) []byte {
	for _, key := range keys {
		b = binary.AppendUvarint(b, uint64(key))
		if p == nil {
			continue
		}
		b = binary.AppendUvarint(b, uint64(len(p[key])))
		for _, d := range p[key] {
			b = binary.AppendUvarint(b, uint64(d))
		}
	}
	return b
}

// inside reports whether a node at the wider place may turn out to be at the
// other.
func inside(p, wider topology.Place, keys []int) bool {
	return !slices.ContainsFunc(keys, func(key int) bool {
		if len(p[key]) == 0 || len(wider[key]) == 0 { // the label is absent
			return len(p[key]) != len(wider[key])
		}
		return !slices.Contains(wider[key], p[key][0])
	})
}
