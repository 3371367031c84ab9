// SPDX-License-Identifier: Apache-2.0

package conditions_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "karpenter/api/v1"
)

// TestObserve covers spec 30/68: a generation raised by deletion neither
// makes the root Unknown nor moves its transition time.
func TestObserve(t *testing.T) {
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	claim := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Generation: 1, CreationTimestamp: metav1.NewTime(start)}}
	set := claim.StatusConditions(start)
	set.SetTrue(v1.LaunchedCondition)
	set.SetTrue(v1.RegisteredCondition)
	set.SetTrue(v1.InitializedCondition)
	set.SetTrue(v1.DriftedCondition)

	claim.Generation = 2
	partly := claim.DeepCopy().StatusConditions(start.Add(time.Hour))
	if !partly.Observe(v1.LaunchedCondition) {
		t.Error("observing one condition changed nothing")
	}
	if root := partly.Root(); root.Status != metav1.ConditionUnknown {
		t.Errorf("root is %s while two dependents are behind, want Unknown", root.Status)
	}

	set = claim.StatusConditions(start.Add(time.Hour))
	if !set.Observe() {
		t.Error("observing all conditions changed nothing")
	}
	for _, c := range set.List() {
		if c.ObservedGeneration != 2 || c.Status != metav1.ConditionTrue || !c.LastTransitionTime.Time.Equal(start) {
			t.Errorf("%s is %s since %s at generation %d, want True since %s at 2",
				c.Type, c.Status, c.LastTransitionTime, c.ObservedGeneration, start)
		}
	}
	if set.Observe() {
		t.Error("observing again changed something")
	}
}
