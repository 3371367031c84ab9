// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"time"

	v1 "karpenter/api/v1"
)

// setConsolidatable sets or clears the condition Consolidatable. It returns the
// time until the condition can become true without an event, 0 for never.
func setConsolidatable(claim *v1.NodeClaim, pool *v1.NodePool, now time.Time) (time.Duration, error) {
	after := pool.Spec.Disruption.ConsolidateAfter.Duration
	initialized, ok := isInitialized(claim)
	if after == nil || !ok || pool.IsStatic() {
		return 0, unset(claim, v1.ConsolidatableCondition, now)
	}
	quietSince := claim.Status.LastPodEventTime
	if quietSince.IsZero() {
		quietSince = initialized
	}
	if left := quietSince.Add(*after).Sub(now); left > 0 && *after != 0 {
		return left, unset(claim, v1.ConsolidatableCondition, now)
	}
	claim.StatusConditions(now).SetTrue(v1.ConsolidatableCondition)
	return 0, nil
}
