// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "karpenter/api/v1"
	"karpenter/sim"
	"karpenter/sim/store"
)

func newProtected(t terms) *Law {
	return &Law{
		name:  "protected",
		means: "The process does not evict or delete a pod while its do-not-disrupt applies, until only the pod's grace period is left before the node's deadline.",
		check: func(s *sim.Seen) error {
			for _, c := range s.Changes {
				p := as[*corev1.Pod](c.Old)
				if p == nil || c.By != Us || !began(c) || !inForceOn(p, s.Now) || ending(p, s.Now) || late(s, p) {
					continue
				}
				return fmt.Errorf("pod %s on %s, protected by do-not-disrupt %s, was hit by %s", p.Name, p.Spec.NodeName, p.Annotations[v1.DoNotDisruptAnnotationKey], c.Verb)
			}
			return nil
		},
	}
}

// inForceOn reports whether the pod's do-not-disrupt is in force.
func inForceOn(p *corev1.Pod, now time.Time) bool {
	text := p.Annotations[v1.DoNotDisruptAnnotationKey]
	if text == "true" {
		return true
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return false
	}
	return p.Status.StartTime == nil || now.Before(p.Status.StartTime.Add(d))
}

// ending reports whether nothing is left to protect.
func ending(p *corev1.Pod, _ time.Time) bool {
	return p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// late reports whether the deadline of the pod's node is nearer than the pod's
// grace, or no one runs the pod any more.
func late(s *sim.Seen, p *corev1.Pod) bool {
	claim := claimOf(s, p.Spec.NodeName)
	if claim == nil {
		return true
	}
	if m, ok := s.Cloud.Find(claim.Status.ProviderID); !ok || !m.Runs() {
		return true
	}
	deadline, ok := deadlineOf(claim)
	if !ok {
		return false
	}
	grace := time.Duration(corev1.DefaultTerminationGracePeriodSeconds) * time.Second
	if g := p.Spec.TerminationGracePeriodSeconds; g != nil {
		grace = time.Duration(*g) * time.Second
	}
	return !s.Now.Add(grace).Before(deadline.Add(-time.Second)) // deadlines are whole seconds
}

// deadlineOf is when the claim's instance may be ended whatever runs there.
func deadlineOf(c *v1.NodeClaim) (time.Time, bool) {
	at, err := time.Parse(time.RFC3339, c.Annotations[v1.NodeClaimTerminationTimestampAnnotationKey])
	return at, err == nil
}

func newForced(terms) *Law {
	return &Law{
		name:  "forced",
		means: "The process removes running pods by eviction, which PodDisruptionBudgets can reject. It deletes a pod only when nothing but the pod's grace period is left before the node's deadline.",
		check: func(s *sim.Seen) error {
			for _, c := range s.Changes {
				p := as[*corev1.Pod](c.Old)
				if p == nil || c.By != Us || c.Verb != "delete" || ending(p, s.Now) || late(s, p) {
					continue
				}
				return fmt.Errorf("running pod %s on %s was deleted, not evicted", p.Name, p.Spec.NodeName)
			}
			return nil
		},
	}
}

func newDrained(t terms) *Law {
	ends := map[string]bool{} // claims whose instance the process has begun to end
	return &Law{
		name:  "drained",
		means: "The process does not terminate an instance whose Node is ready while pods run there that the drain waits for, unless the deadline has passed.",
		check: func(s *sim.Seen) error {
			for _, call := range s.Calls {
				if call.Target != sim.Cloud || call.Verb != "Delete" || !call.Effect || ends[call.Name] {
					continue
				}
				ends[call.Name] = true
				if err := t.drained(s, call.Name); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func (t terms) drained(s *sim.Seen, claim string) error {
	c := store.Find[*v1.NodeClaim](s.API, "", claim)
	if c == nil {
		return nil
	}
	if deadline, ok := deadlineOf(c); ok && !s.Now.Before(deadline) {
		return nil
	}
	n := nodeOf(s, c)
	if n == nil || !isReady(n) {
		return nil
	}
	for _, p := range podsOn(s, n.Name) {
		if !waitedFor(p, s.Now) || s.Now.Sub(boundAt(p)) < t.lag {
			continue
		}
		return fmt.Errorf("the machine of claim %s was ended while pod %s runs on its node %s", claim, p.Name, n.Name)
	}
	return nil
}

// waitedFor reports whether a drain waits for the pod.
func waitedFor(p *corev1.Pod, now time.Time) bool {
	const stuck = time.Minute
	tolerates := slices.ContainsFunc(p.Spec.Tolerations, func(t corev1.Toleration) bool {
		return (t.Key == "" || t.Key == v1.DisruptedTaintKey) && (t.Effect == "" || t.Effect == corev1.TaintEffectNoSchedule) && t.Operator == corev1.TolerationOpExists
	})
	return !tolerates && (p.DeletionTimestamp == nil || now.Sub(p.DeletionTimestamp.Time) <= stuck)
}

func boundAt(p *corev1.Pod) time.Time {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	return p.CreationTimestamp.Time
}
