// SPDX-License-Identifier: Apache-2.0

package cover

import (
	"math"
	"math/bits"
)

// line is what pricing knows of an item, or of a set of similar ones.
type line struct {
	request []int64   // by dimension
	weight  []float64 // the same in units of the largest room
	class   int
	most    int     // pods one node takes; 0 = no bound
	members []int   // items, smallest first
	likely  float64 // of its pods, the part that values are found for
}

// manyNodes is from how many nodes on that a line needs their number tells lines apart: the
// line that needs most can be all that a cover pays for.
const manyNodes = 16

// spreads returns about how many nodes so many pods of the line need because a node takes
// only so few of them, as a power of the square root of two; 0 = there is no such bound, or
// they need few.
func (l *line) spreads(pods int) int {
	if l.most == 0 || pods < manyNodes*l.most {
		return 0
	}
	nodes := uint(pods / l.most)
	return bits.Len(nodes * nodes)
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
