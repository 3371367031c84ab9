// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/model"
)

const (
	// typeCheckAge is the age below which a claim's type is not checked.
	typeCheckAge = time.Hour
	// typeCheckEvery is how long a type that was found is not checked again.
	typeCheckEvery = 30 * time.Minute
	// missingFor is how long a type has to be missing, and missingTimes in how
	// many answers, before it counts as removed.
	missingFor   = 30 * time.Minute
	missingTimes = 3
	// suspiciousFor is how long answers are ignored that have lost more than a
	// tenth of the types and offerings.
	suspiciousFor = 6 * time.Hour
)

// typeMemory remembers the answers of a provider about instance types. A cloud
// that answers in part must not drift nodes that run well, so a type is gone
// only when each of several answers over a time lacks it, none of them being
// empty or suddenly much smaller than before. A restart forgets everything: the
// time starts from the beginning, so a node is kept rather than replaced.
//
// The zero value is ready for use. Safe for concurrent use.
type typeMemory struct {
	mu      sync.Mutex
	claims  map[string]look   // by claim
	answers map[string]answer // by pool
}

// look is what was found when a claim's type was last looked for.
type look struct {
	claim   types.UID
	found   time.Time // zero = not found
	missing time.Time // since when it is missing; zero = it is not
	misses  int       // answers that lacked it
}

// answer is what a pool's answers were like.
type answer struct {
	most int       // types and offerings in the largest one
	seen time.Time // when there last were about as many
}

// isFresh reports whether the claim's type was found a short while ago.
func (t *typeMemory) isFresh(claim *v1.NodeClaim, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.claims[claim.Name]
	return l.claim == claim.UID && !l.found.IsZero() && now.Sub(l.found) < typeCheckEvery
}

// isPlausible records the size of an answer, and reports whether types that it
// lacks count as missing.
func (t *typeMemory) isPlausible(pool string, size int, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.answers[pool]
	switch {
	case size == 0:
		return false
	case size*10 >= a.most*9:
		a = answer{most: max(a.most, size), seen: now}
	case now.Sub(a.seen) >= suspiciousFor:
		a = answer{most: size, seen: now}
	default:
		return false
	}
	if t.answers == nil {
		t.answers = map[string]answer{}
	}
	t.answers[pool] = a
	return true
}

// found notes that the claim's type is there.
func (t *typeMemory) found(claim *v1.NodeClaim, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.setLocked(claim.Name, look{claim: claim.UID, found: now})
}

// missed records that an answer lacks the claim's type, and reports whether the
// type counts as removed.
func (t *typeMemory) missed(claim *v1.NodeClaim, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.claims[claim.Name]
	if l.claim != claim.UID || l.missing.IsZero() {
		l = look{claim: claim.UID, missing: now}
	}
	l.misses++
	t.setLocked(claim.Name, l)
	return now.Sub(l.missing) >= missingFor && l.misses >= missingTimes
}

func (t *typeMemory) setLocked(claim string, l look) {
	if t.claims == nil {
		t.claims = map[string]look{}
	}
	t.claims[claim] = l
}

// forget drops what is known of a claim that is gone.
func (t *typeMemory) forget(claim string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.claims, claim)
}

// typeGone reports whether the provider has no offering left that the claim's
// instance could be.
func (r *Reconciler) typeGone(ctx context.Context, claim *v1.NodeClaim, pool *v1.NodePool, now time.Time) (bool, error) {
	if now.Sub(claim.CreationTimestamp.Time) < typeCheckAge || r.types.isFresh(claim, now) {
		return false, nil
	}
	name := claim.Labels[corev1.LabelInstanceTypeStable]
	if name == "" {
		return true, nil
	}
	all, err := r.Provider.InstanceTypes(ctx, pool)
	if err != nil {
		return false, fmt.Errorf("instance types of node pool %s: %w", pool.Name, err)
	}
	plausible := r.types.isPlausible(pool.Name, sizeOf(all), now)
	i := slices.IndexFunc(all, func(t *cloud.InstanceType) bool { return t.Name == name })
	if i >= 0 && offered(all[i], labelsOf(claim, r.Labels), model.NewLabelSet(r.Labels.WellKnown.UnsortedList()...)) {
		r.types.found(claim, now)
		return false, nil
	}
	if c := conditions.Get(claim, v1.DriftedCondition); c != nil && c.Reason == v1.InstanceTypeNotFoundReason {
		return true, nil
	}
	return plausible && r.types.missed(claim, now), nil
}

// sizeOf counts types and offerings.
func sizeOf(all []*cloud.InstanceType) int {
	n := len(all)
	for _, t := range all {
		n += len(t.Offerings)
	}
	return n
}

// offered reports whether one of the type's offerings, available or not,
// matches the instance. An instance in reserved capacity can become an
// on-demand instance when its reservation ends, so the labels of reservations
// are not compared.
func offered(t *cloud.InstanceType, machine model.Requirements, wellKnown model.LabelSet) bool {
	if capacityType, _ := machine.Value(model.LabelCapacityType); capacityType == v1.CapacityTypeReserved {
		either := model.NewRequirement(model.LabelCapacityType, model.In, v1.CapacityTypeReserved, v1.CapacityTypeOnDemand)
		zone, _ := machine.Get(model.LabelZone)
		machine = model.NewRequirements(either, zone)
	}
	return slices.ContainsFunc(t.Offerings, func(o cloud.Offering) bool {
		_, ok := machine.Compatible(o.Requirements, wellKnown)
		return ok
	})
}
