// SPDX-License-Identifier: Apache-2.0

package cover

import "math"

// line is what pricing knows of an item, or of a set of similar ones.
type line struct {
	request []int64   // by dimension
	weight  []float64 // the same in units of the largest room
	class   int
	most    int   // pods one node takes; 0 = no bound
	members []int // items, smallest first
}

// whole returns how many times request fits into room.
func whole(room, request []int64) int {
	n := int64(math.MaxInt32)
	for d, v := range request {
		if v > 0 {
			if room[d] < v {
				return 0
			}
			n = min(n, room[d]/v)
		}
	}
	return int(n)
}

// holds reports whether the room is enough for the request.
func holds(room, request []int64) bool {
	for d, v := range request {
		if v > 0 && v > room[d] {
			return false
		}
	}
	return true
}
