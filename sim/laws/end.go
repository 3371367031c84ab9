// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/sim"
	"karpenter/sim/script"
	"karpenter/sim/store"
)

const (
	startsWithin = 5 * time.Minute  // a bound pod
	endsWithin   = 15 * time.Minute // a deleted claim or Node that nothing keeps
	restsFor     = 10 * time.Minute // at the end
)

// clean follows since when nothing keeps what is being deleted.
type clean struct {
	free since // by UID
	tick every
}

func newClean(terms) *Law {
	l := &clean{since{}, every{period: time.Minute}}
	return &Law{
		name: "clean", check: l.check, end: l.end,
		means: "At the end, only nodes that are being removed are marked as disrupted. No Node or NodeClaim is still being deleted, unless a pod that must not be evicted kept it in the last 5 minutes and its deadline has not passed.",
	}
}

func (l *clean) check(s *sim.Seen) error {
	if !l.tick.due(s.Now) {
		return nil
	}
	for c := range store.All[*v1.NodeClaim](s.API) {
		n := nodeOf(s, c)
		deadline, bounded := deadlineOf(c)
		l.free.so(string(c.UID), c.DeletionTimestamp != nil && (n == nil || keeps(s, n.Name) == "" || bounded && s.Now.After(deadline)), s.Now)
	}
	for n := range store.All[*corev1.Node](s.API) {
		l.free.so(string(n.UID), n.DeletionTimestamp != nil && keeps(s, n.Name) == "", s.Now)
	}
	return nil
}

func (l *clean) end(s *sim.Seen) error {
	for c := range store.All[*v1.NodeClaim](s.API) {
		if c.DeletionTimestamp == nil && voluntary(c) != "" && s.Now.Sub(s.Quiet) > restsFor {
			return fmt.Errorf("claim %s is marked for disruption (%s) and nothing follows", c.Name, voluntary(c))
		}
		if l.stays(s, c) {
			return fmt.Errorf("claim %s has been deleted at %s, still exists with finalizers %v and runs nothing that keeps it", c.Name, c.DeletionTimestamp.Sub(s.Started), c.Finalizers)
		}
	}
	for n := range store.All[*corev1.Node](s.API) {
		tainted := slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == v1.DisruptedTaintKey })
		if n.DeletionTimestamp == nil && tainted && !goes(s, n) {
			return fmt.Errorf("node %s is tainted as disrupted and stays", n.Name)
		}
		if l.stays(s, n) {
			return fmt.Errorf("node %s has been deleted at %s, still exists with finalizers %v and runs nothing that keeps it", n.Name, n.DeletionTimestamp.Sub(s.Started), n.Finalizers)
		}
	}
	return nil
}

// stays reports whether the object should long have gone.
func (l *clean) stays(s *sim.Seen, o client.Object) bool {
	deleted := o.GetDeletionTimestamp()
	free, is := l.free[string(o.GetUID())]
	return deleted != nil && s.Now.Sub(deleted.Time) > endsWithin && is && s.Now.Sub(free) > startsWithin
}

func goes(s *sim.Seen, n *corev1.Node) bool {
	c := claimOf(s, n.Name)
	return c != nil && (c.DeletionTimestamp != nil || voluntary(c) != "")
}

// keeps names a pod on the node that may not be evicted, or returns "".
func keeps(s *sim.Seen, node string) string {
	for _, p := range podsOn(s, node) {
		if !waitedFor(p, s.Now) {
			continue
		}
		if inForceOn(p, s.Now) || s.Now.Sub(boundAt(p)) < endsWithin || refused(s, p) {
			return p.Name
		}
	}
	return ""
}

func newRest(t terms) *Law {
	var last, free time.Time // free: when a do-not-disrupt with a period, or drift, last ended
	var what string
	var evicted []time.Time // when the process moved pods
	return &Law{
		name:  "rest",
		means: "With constant demand and no faults, the system comes to rest: in the last 10 minutes, the process creates, launches, terminates, marks and evicts nothing. Exceptions: expiring nodes, drift that is in progress or ended less than 10 minutes before, and nodes that can be removed only now, because an hour since the last move or a do-not-disrupt has ended.",
		check: func(s *sim.Seen) error {
			for _, c := range s.Changes {
				if c.By != Us || !acts(c) {
					continue
				}
				if at := freed(s); at.After(free) {
					free = at
				}
				if drifting(s, c) {
					free = s.Now
				}
				if c.Kind == "Pod" {
					evicted = append(evicted, s.Now)
				}
				movable := slices.ContainsFunc(evicted, func(at time.Time) bool {
					since := s.Now.Sub(at)
					return since >= time.Hour && since < time.Hour+2*restsFor // it takes a while until they run elsewhere
				})
				if !matured(s) && !movable && (free.IsZero() || s.Now.Sub(free) >= restsFor) {
					last, what = s.Now, fmt.Sprintf("%s of %s %s", c.Verb, c.Kind, c.Object().GetName())
				}
			}
			return nil
		},
		end: func(s *sim.Seen) error {
			expires := slices.ContainsFunc(t.script.Pools, func(p script.Pool) bool { return p.Expire > 0 && p.Expire < t.script.Run+t.script.Rest })
			if t.script.Rest < 2*restsFor || expires || last.IsZero() || s.Now.Sub(last) >= restsFor {
				return nil
			}
			return fmt.Errorf("the last thing the process did was the %s at %s, when nothing had happened since %s", what, last.Sub(s.Started), t.script.Run)
		},
	}
}

// matured reports whether some node that has replaced others may, since a short
// time, be replaced itself.
func matured(s *sim.Seen) bool {
	for c := range store.All[*v1.NodeClaim](s.API) {
		age := s.Now.Sub(c.CreationTimestamp.Time)
		if c.Annotations[v1.ReplacesAnnotationKey] == "underutilized" && age >= time.Hour && age < time.Hour+restsFor {
			return true
		}
	}
	return false
}

// freed returns when the do-not-disrupt of a bound pod last ended that holds for
// a period; zero = none has ended.
func freed(s *sim.Seen) time.Time {
	var last time.Time
	for p := range store.All[*corev1.Pod](s.API) {
		d, err := time.ParseDuration(p.Annotations[v1.DoNotDisruptAnnotationKey])
		if err != nil || d <= 0 || p.Status.StartTime == nil {
			continue
		}
		if end := p.Status.StartTime.Add(d); !end.After(s.Now) && end.After(last) {
			last = end
		}
	}
	return last
}

// drifting reports whether some node still has to be replaced for what users
// have edited, which may take as long as pods and budgets keep it.
func drifting(s *sim.Seen, c store.Change) bool {
	if claim := as[*v1.NodeClaim](c.Old); claim != nil && conditions.IsTrue(claim, v1.DriftedCondition) {
		return true
	}
	for claim := range store.All[*v1.NodeClaim](s.API) {
		if conditions.IsTrue(claim, v1.DriftedCondition) {
			return true
		}
	}
	return false
}

// acts reports whether the change is more than bookkeeping.
func acts(c store.Change) bool {
	if c.Old == nil || c.New == nil || began(c) {
		return true
	}
	n, was := as[*corev1.Node](c.New), as[*corev1.Node](c.Old)
	return n != nil && len(n.Spec.Taints) != len(was.Spec.Taints)
}
