// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/model"
	"karpenter/sim"
	"karpenter/sim/script"
	"karpenter/sim/simcloud"
	"karpenter/sim/store"
)

// Us is the process under test, as the author of changes.
const Us = "karpenter"

// Law is a sim.Law that says what it means.
type Law struct {
	name, means string
	check, end  func(*sim.Seen) error // nil = nothing is checked then
}

// Name implements sim.Law.
func (l *Law) Name() string { return l.name }

// Means is the law in one sentence.
func (l *Law) Means() string { return l.means }

// Check implements sim.Law.
func (l *Law) Check(s *sim.Seen) error {
	if l.check == nil {
		return nil
	}
	return l.check(s)
}

// End implements sim.Law.
func (l *Law) End(s *sim.Seen) error {
	if l.end == nil {
		return nil
	}
	return l.end(s)
}

// All returns the laws for a run of the script. Strays, which may be nil, are
// the pods that the scheduler has put neither where they were nominated nor on
// the emptiest node; more may be added as the run goes on.
func All(s *script.Script, strays map[types.UID]bool) []*Law {
	t := termsOf(s)
	t.strays = strays
	return []*Law{
		newLimits(t), newBudgets(t), newProtected(t), newForced(t), newDrained(t),
		newSurged(t), newOwned(t), newOnce(), newJoined(t), newIdle(t), newReasoned(t), newDrift(), newRolled(t), newRepaired(t), newLaunches(t),
		newKept(t), newRunning(t), newClean(t), newRest(t), newFenced(), newReturned(t), newTogether(t),
	}
}

// terms are what the laws know of the script.
type terms struct {
	script *script.Script
	// lag is how old what the process knows may be.
	lag time.Duration
	// trouble is how long after the start things may go wrong.
	trouble time.Duration
	strays  map[types.UID]bool
}

func termsOf(s *script.Script) terms {
	const (
		watch = 15 * time.Second // news waits to be handled
		lease = 15 * time.Second // after which no one waits for a frozen leader
	)
	t := terms{script: s, lag: watch}
	for i := range s.Faults {
		f := &s.Faults[i]
		t.trouble = s.Run
		if f.Kind == script.Stale {
			t.lag = max(t.lag, f.Lag+watch)
		}
		if f.Kind == script.Freeze {
			t.lag = max(t.lag, min(f.Lag, lease)+watch)
		}
	}
	return t
}

// calm is the moment from which a bound on what lasted since then counts.
func (t terms) calm(s *sim.Seen, since time.Time) time.Time {
	if end := s.Started.Add(t.trouble); t.trouble > 0 && end.After(since) {
		return end
	}
	return since
}

// claimsOf yields the claims of a pool.
func claimsOf(s *sim.Seen, pool string) []*v1.NodeClaim {
	var out []*v1.NodeClaim
	for c := range store.All[*v1.NodeClaim](s.API) {
		if c.Labels[v1.NodePoolLabelKey] == pool {
			out = append(out, c)
		}
	}
	return out
}

// nodeOf returns the Node of the claim's instance, or nil.
func nodeOf(s *sim.Seen, c *v1.NodeClaim) *corev1.Node {
	if c.Status.ProviderID == "" {
		return nil
	}
	for n := range store.All[*corev1.Node](s.API) {
		if n.Spec.ProviderID == c.Status.ProviderID {
			return n
		}
	}
	return nil
}

// claimOf returns the claim of the Node, or nil.
func claimOf(s *sim.Seen, node string) *v1.NodeClaim {
	n := store.Find[*corev1.Node](s.API, "", node)
	if n == nil {
		return nil
	}
	for c := range store.All[*v1.NodeClaim](s.API) {
		if c.Status.ProviderID == n.Spec.ProviderID {
			return c
		}
	}
	return nil
}

// podsOn returns the pods bound to the node that have not ended.
func podsOn(s *sim.Seen, node string) []*corev1.Pod {
	var out []*corev1.Pod
	for p := range store.All[*corev1.Pod](s.API) {
		if p.Spec.NodeName == node && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			out = append(out, p)
		}
	}
	return out
}

func running(s *sim.Seen) []simcloud.Machine {
	return slices.DeleteFunc(s.Cloud.Machines(), func(m simcloud.Machine) bool { return !m.Runs() })
}

func isReady(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

func ownedByDaemonSet(p *corev1.Pod) bool {
	return len(p.OwnerReferences) > 0 && p.OwnerReferences[0].Kind == "DaemonSet"
}

// voluntary returns the reason for which the process takes the claim's node
// away voluntarily, or "".
func voluntary(c *v1.NodeClaim) model.Reason {
	reason := conditions.Get(c, v1.DisruptionReasonCondition)
	if reason == nil || reason.Status != "True" {
		return ""
	}
	switch r := model.Reason(reason.Reason); r {
	case model.Empty, model.Drifted, model.Underutilized, model.Unhealthy:
		return r
	}
	return ""
}

// began reports whether the change is the beginning of the object's deletion.
func began(c store.Change) bool {
	if c.Old == nil || c.Old.GetDeletionTimestamp() != nil {
		return false
	}
	return c.New == nil || c.New.GetDeletionTimestamp() != nil
}

// changed reports whether an object of the kind was changed.
func changed[T client.Object](s *sim.Seen) bool {
	return slices.ContainsFunc(s.Changes, func(c store.Change) bool {
		_, ok := c.Object().(T)
		return ok
	})
}

// as returns the object as a T, or nil.
func as[T client.Object](o client.Object) T {
	out, _ := o.(T)
	return out
}

// every reports true once in each period of virtual time.
type every struct {
	period time.Duration
	last   time.Time
}

func (e *every) due(now time.Time) bool {
	if now.Sub(e.last) < e.period {
		return false
	}
	e.last = now
	return true
}
