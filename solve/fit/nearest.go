// SPDX-License-Identifier: Apache-2.0

package fit

import "slices"

// nearest returns the one of known that word is most probably a misspelling
// of: close to it, and closer than any other. Of us-east-1a and us-east-1b,
// neither is what us-east-1x was meant to be.
func nearest(word string, known []string) (string, bool) {
	best, found := "", false
	least := min(3, len(word)/3) + 1
	for _, k := range known {
		switch d := distance(word, k); {
		case d < least:
			best, found, least = k, true, d
		case d == least && k != best:
			found = false
		}
	}
	return best, found
}

// distance is how many letters must be added, left out, replaced or swapped
// with their neighbour to make b of a (optimal string alignment).
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row = last, row, before
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replaced := last[j-1]
			if a[i-1] != b[j-1] {
				replaced++
			}
			row[j] = min(replaced, last[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}

// sortedUnique returns the words in order, each once.
func sortedUnique(words []string) []string {
	slices.Sort(words)
	return slices.Compact(words)
}
