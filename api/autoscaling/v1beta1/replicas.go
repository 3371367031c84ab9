// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"math"
	"math/big"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// DesiredReplicas returns the number of pods to keep capacity for.
//
// The workload is the number of replicas of the workload scalableRef names, or
// nil when the buffer names a pod template; requests are the effective
// requests of one pod. The larger of replicas and percentage counts, and the
// limits cap it. Without both, the limits alone decide. A limit on a resource
// the pod does not request constrains nothing.
func (s *CapacityBufferSpec) DesiredReplicas(workload *int32, requests corev1.ResourceList) int32 {
	desired, explicit := int32(0), false
	if s.Replicas != nil {
		desired, explicit = *s.Replicas, true
	}
	if s.Percentage != nil && workload != nil {
		desired, explicit = max(desired, share(*workload, *s.Percentage)), true
	}
	limit, limited := replicasWithin(s.Limits, requests)
	switch {
	case limited && explicit:
		return min(desired, limit)
	case limited:
		return limit
	default:
		return desired
	}
}

// share returns the percentage of n, rounded up.
func share(n, percentage int32) int32 {
	if n <= 0 || percentage <= 0 {
		return 0
	}
	return int32(min((int64(n)*int64(percentage)+99)/100, math.MaxInt32))
}

// replicasWithin returns how many pods fit the limits, and whether any limit
// constrains them.
func replicasWithin(limits, requests corev1.ResourceList) (int32, bool) {
	fit, limited := int32(math.MaxInt32), false
	for name, limit := range limits {
		request, ok := requests[name]
		if !ok || request.Sign() <= 0 {
			continue
		}
		limited = true
		fit = min(fit, quotient(limit, request))
	}
	return fit, limited
}

// quotient returns how often b, which is positive, fits into a.
func quotient(a, b resource.Quantity) int32 {
	if a.Sign() <= 0 {
		return 0
	}
	ratio := new(big.Rat).Quo(rational(a), rational(b))
	whole := new(big.Int).Quo(ratio.Num(), ratio.Denom())
	if !whole.IsInt64() || whole.Int64() > math.MaxInt32 {
		return math.MaxInt32
	}
	return int32(whole.Int64())
}

// rational returns the exact value of the quantity.
func rational(q resource.Quantity) *big.Rat {
	// AsDec changes the quantity's representation, so it gets a copy.
	exact := q.DeepCopy()
	// A decimal's own text always parses.
	r, _ := new(big.Rat).SetString(exact.AsDec().String())
	return r
}
