// SPDX-License-Identifier: Apache-2.0

package pack

import "maps"

// lessons is what attempts at a plan teach the next one.
type lessons struct {
	most  map[lesson]int  // pods that nodes could be launched for at most
	apart map[[2]int]bool // kinds that the scheduler does not let share a node as planned
	wary  map[int]bool    // kinds that nodes launched for others stood in the way of
	first map[int]bool    // kinds that come before all others: those took their places

	zone   string // that pods tied to one domain by affinity go to if they may; "" = each group to where it costs least
	hurry  bool   // pods are left unless they are bound before others that they have affinity to
	lavish bool   // limits of pools do not count as yet
	vanish bool   // no plan has pods in the domains whose only nodes are being deleted: these do not count
}

// lesson names pods of a kind: those in one cell, or those in all cells together.
type lesson struct {
	kind int
	cell string
	all  bool
}

// add adds what was found, and reports whether that is anything.
func (l *lessons) add(found lessons) bool {
	if l.most == nil {
		*l = lessons{most: map[lesson]int{}, apart: map[[2]int]bool{}, wary: map[int]bool{}, first: l.first, zone: l.zone, hurry: l.hurry, lavish: l.lavish, vanish: l.vanish}
	}
	maps.Copy(l.most, found.most)
	maps.Copy(l.apart, found.apart)
	maps.Copy(l.wary, found.wary)
	return len(found.most)+len(found.apart)+len(found.wary) > 0
}

// after is 0 for kinds that come before all others.
func (l *lessons) after(kind int) int {
	if l.first[kind] {
		return 0
	}
	return 1
}
