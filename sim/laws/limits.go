// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	v1 "karpenter/api/v1"
	"karpenter/sim"
	"karpenter/sim/store"
)

// past remembers what a pool prescribed, and since when.
type past[T any] struct {
	at   time.Time
	what T
}

// inForce returns what was in force at any time since then.
func inForce[T any](all []past[T], since time.Time) []T {
	var out []T
	for i := range all {
		if i+1 == len(all) || all[i+1].at.After(since) {
			out = append(out, all[i].what)
		}
	}
	return out
}

type limits struct {
	terms
	past map[string][]past[v1.Limits] // by pool
}

func newLimits(t terms) *Law {
	l := &limits{t, map[string][]past[v1.Limits]{}}
	return &Law{
		name: "limits", check: l.check,
		means: "When a NodeClaim is created or launched, the NodeClaims of its NodePool that are not being deleted stay within the limits on nodes, CPU and memory. A NodeClaim that is not launched yet counts with its requests.",
	}
}

func (l *limits) check(s *sim.Seen) error {
	if !changed[*v1.NodePool](s) && !changed[*v1.NodeClaim](s) {
		return nil
	}
	for p := range store.All[*v1.NodePool](s.API) {
		known := l.past[p.Name]
		if len(known) == 0 || !same(known[len(known)-1].what, p.Spec.Limits) {
			l.past[p.Name] = append(known, past[v1.Limits]{s.Now, p.Spec.Limits})
		}
	}
	for _, c := range s.Changes {
		claim := as[*v1.NodeClaim](c.New)
		if claim == nil || c.By != Us || claim.DeletionTimestamp != nil {
			continue
		}
		old := as[*v1.NodeClaim](c.Old)
		if old != nil && (old.Status.ProviderID != "" || claim.Status.ProviderID == "") {
			continue // neither new nor launched by this
		}
		if err := l.within(s, claim); err != nil {
			return err
		}
	}
	return nil
}

// within compares what the pool of the claim uses with the most it was allowed
// since shortly before the claim was made.
func (l *limits) within(s *sim.Seen, claim *v1.NodeClaim) error {
	pool := claim.Labels[v1.NodePoolLabelKey]
	allowed := inForce(l.past[pool], claim.CreationTimestamp.Add(-l.lag))
	if len(allowed) == 0 {
		return nil
	}
	used := corev1.ResourceList{}
	for _, c := range claimsOf(s, pool) {
		if c.DeletionTimestamp == nil {
			add(used, usage(c))
		}
	}
	for _, name := range []corev1.ResourceName{v1.ResourceNodes, corev1.ResourceCPU, corev1.ResourceMemory} {
		most, limited := resource.Quantity{}, true
		for _, a := range allowed {
			q, ok := a[name]
			limited = limited && ok
			if q.Cmp(most) > 0 {
				most = q
			}
		}
		if have := used[name]; limited && have.Cmp(most) > 0 {
			return fmt.Errorf("pool %s uses %s of %s with claim %s, its limit is %s", pool, have.String(), name, claim.Name, most.String())
		}
	}
	return nil
}

// usage is what the claim counts in the limits of its pool.
func usage(c *v1.NodeClaim) corev1.ResourceList {
	out := corev1.ResourceList{v1.ResourceNodes: *resource.NewQuantity(1, resource.DecimalSI)}
	if c.Status.ProviderID != "" {
		add(out, c.Status.Capacity)
	} else {
		add(out, c.Spec.Resources.Requests)
	}
	return out
}

func add(sum, more corev1.ResourceList) {
	for name, q := range more {
		have := sum[name]
		have.Add(q)
		sum[name] = have
	}
}

func same(a, b v1.Limits) bool {
	if len(a) != len(b) {
		return false
	}
	for name, q := range a {
		other, ok := b[name]
		if !ok || q.Cmp(other) != 0 {
			return false
		}
	}
	return true
}
