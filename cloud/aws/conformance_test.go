// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"testing"
	"time"

	v1 "karpenter/api/v1"
	"karpenter/cloud/aws/awsfake"
	"karpenter/cloud/cloudtest"
)

// The suite that every provider passes, on an account whose instances take
// their time to be seen, to boot and to end.
func TestConformance(t *testing.T) {
	cloudtest.Run(t, func(t *testing.T) *cloudtest.Cloud {
		r := newRegion(t, nil)
		return &cloudtest.Cloud{
			Provider: r.Provider,
			Pool:     r.pool,
			Class:    *r.pool.Spec.Template.Spec.NodeClassRef,
			Store: func(t *testing.T, claim *v1.NodeClaim) {
				t.Helper()
				r.store(claim)
			},
			Settle: func(*testing.T) { r.clock.Step(time.Minute) },
			SellOut: func(instanceType, zone, capacityType string) {
				r.aws.Stock(awsfake.Pool{Type: instanceType, Zone: zone, CapacityType: capacityType}, 0)
			},
		}
	})
}
