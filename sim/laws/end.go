package laws

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

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

func newClean(t terms) *Law {
	return &Law{
		name:  "clean",
		means: "At the end no node is marked as disrupted that is not going, and no Node or claim is still being deleted unless a pod that must not be evicted keeps it.",
		end: func(s *sim.Seen) error {
			for c := range store.All[*v1.NodeClaim](s.API) {
				if err := leftover(s, c); err != nil {
					return err
				}
			}
			for n := range store.All[*corev1.Node](s.API) {
				tainted := slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == v1.DisruptedTaintKey })
				switch {
				case n.DeletionTimestamp == nil && tainted && !goes(s, n):
					return fmt.Errorf("node %s is tainted as disrupted and stays", n.Name)
				case n.DeletionTimestamp != nil && s.Now.Sub(n.DeletionTimestamp.Time) > endsWithin && keeps(s, n.Name) == "":
					return fmt.Errorf("node %s has been deleted at %s, still exists with finalizers %v and runs nothing that keeps it", n.Name, n.DeletionTimestamp.Sub(s.Started), n.Finalizers)
				}
			}
			return nil
		},
	}
}

// leftover returns what is wrong with the claim at the end.
func leftover(s *sim.Seen, c *v1.NodeClaim) error {
	n := nodeOf(s, c)
	switch {
	case c.DeletionTimestamp == nil && voluntary(c) != "" && s.Now.Sub(s.Quiet) > restsFor:
		return fmt.Errorf("claim %s is marked for disruption (%s) and nothing follows", c.Name, voluntary(c))
	case c.DeletionTimestamp == nil || s.Now.Sub(c.DeletionTimestamp.Time) <= endsWithin:
		return nil
	case n != nil && keeps(s, n.Name) != "":
		return nil
	}
	return fmt.Errorf("claim %s has been deleted at %s, still exists with finalizers %v and runs nothing that keeps it", c.Name, c.DeletionTimestamp.Sub(s.Started), c.Finalizers)
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
	var last time.Time
	var what string
	return &Law{
		name:  "rest",
		means: "With constant demand and no faults the system comes to rest: over the last 10 minutes the process makes, launches, ends and marks nothing and evicts nobody; pools whose nodes expire, drift that is still being worked off, and nodes that have replaced others an hour ago and may be replaced now, excepted.",
		check: func(s *sim.Seen) error {
			for _, c := range s.Changes {
				if c.By == Us && acts(c) && !drifting(s, c) && !matured(s) {
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
