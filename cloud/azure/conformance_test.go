// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"testing"
	"time"

	v1 "karpenter/api/v1"
	"karpenter/cloud/cloudtest"
)

// The suite that every provider passes, on a cloud whose machines take their time
// to be created and deleted.
func TestConformance(t *testing.T) {
	cloudtest.Run(t, func(t *testing.T) *cloudtest.Cloud {
		r := newRegion(t)
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
				r.azure.Stock(place(instanceType, zone, capacityType), 0)
			},
		}
	})
}
