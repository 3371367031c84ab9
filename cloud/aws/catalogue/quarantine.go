// SPDX-License-Identifier: Apache-2.0

package catalogue

const (
	// answersNeeded is how many answers in a row must agree before a doubtful
	// change is accepted.
	answersNeeded = 3
	// Fewer losses than either of these are accepted at once, unless everything
	// is missing.
	lossesBelieved = 3
	shareBelieved  = 20 // one of so many
)

// quarantine doubts answers that lack much of what was known. It counts in how
// many answers in a row each thing has been missing.
type quarantine[K comparable] struct{ missing map[K]int }

// kept returns the known things that an answer lacks and that are kept
// nevertheless.
func (q *quarantine[K]) kept(known []K, has func(K) bool) []K {
	var lost []K
	for _, k := range known {
		if !has(k) {
			lost = append(lost, k)
		}
	}
	missing := map[K]int{}
	if len(lost) > max(lossesBelieved, len(known)/shareBelieved) || len(lost) == len(known) {
		for _, k := range lost {
			if n := q.missing[k] + 1; n < answersNeeded {
				missing[k] = n
			}
		}
	}
	q.missing = missing
	var out []K
	for _, k := range lost {
		if missing[k] > 0 {
			out = append(out, k)
		}
	}
	return out
}

// place is a type in a zone.
type place struct{ instanceType, zone string }

// doubts are what answers are doubted about.
type doubts struct {
	types    quarantine[string]
	places   quarantine[place]
	onDemand quarantine[string] // prices that have fallen
	spot     quarantine[place]
}
