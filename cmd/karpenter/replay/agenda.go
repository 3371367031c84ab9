// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"container/heap"
	"time"
)

// event is something that happens in a run.
type event struct {
	at  time.Time
	seq int // events of the same time happen in the order in which they were added
	do  func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return cmp.Or(e[i].at.Compare(e[j].at), cmp.Compare(e[i].seq, e[j].seq)) < 0
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	(*e)[last] = event{}
	*e = (*e)[:last]
	return x
}

// agenda is what happens, and what the time is.
type agenda struct {
	now    time.Time
	events events
	added  int
}

// at schedules do for the time t, or for now if t has passed.
func (a *agenda) at(t time.Time, do func()) {
	a.added++
	heap.Push(&a.events, event{later(t, a.now), a.added, do})
}

// in schedules do for the time d from now.
func (a *agenda) in(d time.Duration, do func()) { a.at(a.now.Add(d), do) }

// advance makes it the time at which something happens next. It reports false if nothing does by then.
func (a *agenda) advance(until time.Time) bool {
	if len(a.events) == 0 || a.events[0].at.After(until) {
		a.now = until
		return false
	}
	a.now = a.events[0].at
	return true
}

// happen lets everything happen that does so now.
func (a *agenda) happen() {
	for len(a.events) > 0 && !a.events[0].at.After(a.now) {
		heap.Pop(&a.events).(event).do()
	}
}
