// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "karpenter/api/aws/v1"
)

// TestReady covers spec 60 §6.1: what Ready depends on, with and without the
// gate ReservedCapacity.
func TestReady(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	dependents := []string{
		v1.AMIsReadyCondition, v1.PlacementGroupReadyCondition, v1.SubnetsReadyCondition,
		v1.SecurityGroupsReadyCondition, v1.InstanceProfileReadyCondition, v1.ValidationSucceededCondition,
	}
	for _, c := range []struct {
		reserved bool
		want     []string
	}{
		{false, dependents},
		{true, append(slices.Clone(dependents), v1.CapacityReservationsReadyCondition)},
	} {
		var class v1.EC2NodeClass
		set := class.StatusConditions(now, c.reserved)
		for _, condition := range c.want {
			if set.Root().Status == metav1.ConditionTrue {
				t.Errorf("reserved capacity %t: ready before %s", c.reserved, condition)
			}
			if got := set.Get(condition); got == nil || got.Status != metav1.ConditionUnknown {
				t.Errorf("reserved capacity %t: %s starts as %v", c.reserved, condition, got)
			}
			set.SetTrue(condition)
		}
		if set.Root().Status != metav1.ConditionTrue {
			t.Errorf("reserved capacity %t: not ready with %v", c.reserved, c.want)
		}
		if len(class.Status.Conditions) != len(c.want)+1 {
			t.Errorf("reserved capacity %t: conditions %v", c.reserved, class.Status.Conditions)
		}
	}
}
