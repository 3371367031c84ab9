// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/model"
	"karpenter/sim"
	"karpenter/sim/laws"
	"karpenter/sim/simcloud"
	"karpenter/sim/store"
)

// Ledger is a witness that counts what a run does and costs. Its fields may be
// read when the trial is over.
type Ledger struct {
	From time.Duration // since the start; what comes before is not counted

	Launches  int                  // instances
	Evictions int                  // pods the process has evicted
	Twice     int                  // of Evictions, those of pods made in place of others that it had evicted within an hour
	Replaced  int                  // pods that users or their own ends have replaced
	Taken     map[model.Reason]int // nodes removed voluntarily
	Lost      int                  // instances ended for another reason
	ByMoves   int                  // of Launches, those that consolidation has made
	Again     int                  // of ByMoves, those that consolidation has removed again
	Soon      int                  // of Again, those within an hour
	Idly      int                  // of Again, those without a change of demand in between
	Spent     float64              // dollars
	Lasted    time.Duration        // what was counted
	Last      time.Duration        // since the start: the last launch, eviction or node removed
	Rate      float64              // dollars per hour of the instances that run
	Nodes     Range
	Waiting   Range         // pods that wait for a node, at the ends of steps
	Longest   time.Duration // that a pod has waited for a node

	moves   *laws.Moves
	last    time.Time
	started time.Time
	version int64
	running int
	known   int                     // instances there ever were
	waiting map[types.UID]time.Time // since when
	ended   map[string][]time.Time  // by workload: pods that have ended and are not made again, when, or the zero time if of their own
	moved   map[types.UID]time.Time // when the pod in whose place it was made was evicted
}

// Range is what a number was over time.
type Range struct {
	Least, Most int
	weighted    float64 // sum of number times hours
	hours       float64
}

func (r *Range) add(n int, d time.Duration) {
	if r.hours == 0 {
		r.Least, r.Most = n, n
	}
	r.Least, r.Most = min(r.Least, n), max(r.Most, n)
	r.weighted += float64(n) * d.Hours()
	r.hours += d.Hours()
}

// Mean is the average over time.
func (r *Range) Mean() float64 {
	if r.hours == 0 {
		return 0
	}
	return r.weighted / r.hours
}

// NewLedger returns an empty one.
func NewLedger(from time.Duration) *Ledger {
	return &Ledger{From: from, Taken: map[model.Reason]int{}, moves: laws.NewMoves(), waiting: map[types.UID]time.Time{}, ended: map[string][]time.Time{}, moved: map[types.UID]time.Time{}}
}

// Name implements sim.Law.
func (l *Ledger) Name() string { return "ledger" }

// End implements sim.Law.
func (l *Ledger) End(s *sim.Seen) error { return l.Check(s) }

// Check implements sim.Law. It breaks no run.
func (l *Ledger) Check(s *sim.Seen) error {
	counts := s.Now.Sub(s.Started) >= l.From
	if counts && !l.last.IsZero() {
		d := s.Now.Sub(l.last)
		l.Spent += l.Rate * d.Hours()
		l.Lasted += d
		if d > 0 {
			l.Nodes.add(l.running, d)
			l.Waiting.add(len(l.waiting), d)
		}
	}
	l.last, l.started = s.Now, s.Started
	l.machines(s, counts)
	if again := l.moves.See(s); again != nil && counts {
		l.Again++
		if s.Now.Sub(again.Launched) < time.Hour {
			l.Soon++
		}
		if again.Idle {
			l.Idly++
		}
	}
	for _, c := range s.Changes {
		l.change(c, counts)
	}
	return nil
}

// machines brings the rate up to date.
func (l *Ledger) machines(s *sim.Seen, counts bool) {
	version := s.Cloud.Version()
	if version == l.version {
		return
	}
	l.version, l.Rate, l.running = version, 0, 0
	all := s.Cloud.Machines()
	for i, m := range all {
		if m.Runs() {
			l.Rate += m.Price.Dollars()
			l.running++
		}
		if i >= l.known && counts {
			l.Launches++
			l.Last = s.Now.Sub(s.Started)
			if _, ok := l.moves.ByConsolidation[m.ClaimUID]; ok {
				l.ByMoves++
			}
		}
	}
	l.known = len(all)
	l.Lost = lost(all)
}

func lost(all []simcloud.Machine) int {
	n := 0
	for _, m := range all {
		if m.Lost {
			n++
		}
	}
	return n
}

func (l *Ledger) change(c store.Change, counts bool) {
	switch o := c.Object().(type) {
	case *corev1.Pod:
		since, waits := l.waiting[o.UID]
		switch {
		case c.New == nil || o.Spec.NodeName != "" || o.DeletionTimestamp != nil:
			if waits && counts {
				l.Longest = max(l.Longest, l.last.Sub(since))
			}
			delete(l.waiting, o.UID)
		case !waits:
			l.waiting[o.UID] = l.last
		}
		began := c.Old != nil && c.Old.GetDeletionTimestamp() == nil && (c.New == nil || c.New.GetDeletionTimestamp() != nil)
		l.follow(c, o, began)
		switch {
		case !began || !counts:
		case c.By == laws.Us:
			l.Evictions++
			l.Last = l.last.Sub(l.started)
		default:
			l.Replaced++
		}
	case *v1.NodeClaim:
		if old, ok := c.Old.(*v1.NodeClaim); ok && c.New != nil && counts && c.By == laws.Us &&
			o.DeletionTimestamp != nil && old.DeletionTimestamp == nil {
			reason := model.Reason("other")
			if r := conditions.Get(o, v1.DisruptionReasonCondition); r != nil {
				reason = model.Reason(r.Reason)
			}
			l.Taken[reason]++
			l.Last = l.last.Sub(l.started)
		}
	}
}

// follow notes in whose place pods are made: in that of the first of their
// workload that has ended and was not made again.
func (l *Ledger) follow(c store.Change, p *corev1.Pod, began bool) {
	owner := p.Namespace + "/" + p.Labels["app"]
	switch {
	case c.Old == nil && len(l.ended[owner]) > 0:
		if at := l.ended[owner][0]; !at.IsZero() {
			l.moved[p.UID] = at
		}
		l.ended[owner] = l.ended[owner][1:]
	case began && c.By == laws.Us:
		if at, ok := l.moved[p.UID]; ok && l.last.Sub(at) < time.Hour && l.last.Sub(l.started) >= l.From {
			l.Twice++
		}
		l.ended[owner] = append(l.ended[owner], l.last)
	case began:
		l.ended[owner] = append(l.ended[owner], time.Time{})
	}
	if c.New == nil {
		delete(l.moved, p.UID)
	}
}

// String is the account, as a table.
func (l *Ledger) String() string {
	var b strings.Builder
	row := func(what, format string, args ...any) {
		fmt.Fprintf(&b, "%-44s %s\n", what, fmt.Sprintf(format, args...))
	}
	row("counted", "%s from %s on", l.Lasted.Round(time.Second), l.From)
	row("nodes, least / mean / most", "%d / %.1f / %d", l.Nodes.Least, l.Nodes.Mean(), l.Nodes.Most)
	row("pods that wait, mean / most", "%.2f / %d", l.Waiting.Mean(), l.Waiting.Most)
	row("the longest that a pod has waited", "%s", l.Longest.Round(time.Second))
	row("pods that ended of their own", "%d", l.Replaced)
	row("pods evicted", "%d, %d of them a second time within an hour", l.Evictions, l.Twice)
	row("instances launched", "%d, %d of them to replace others", l.Launches, l.ByMoves)
	row("nodes removed, Empty / Underutilized", "%d / %d", l.Taken[model.Empty], l.Taken[model.Underutilized])
	row("of those launched to replace, taken again", "%d; %d within an hour, %d while demand stayed", l.Again, l.Soon, l.Idly)
	row("dollars", "%.2f, %.4f per hour", l.Spent, l.Spent/max(l.Lasted.Hours(), 1e-9))
	return b.String()
}
