// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "karpenter/api/v1"
	"karpenter/kube/convert"
	"karpenter/model"
	"karpenter/world"
)

// The condition RolloutHalted becomes what the world knows of a roll-out.
func TestRolloutHalted(t *testing.T) {
	c := convert.Converter{Axis: model.NewAxis(), Labels: v1.DefaultLabels(), Manages: func(*v1.NodeClassReference) bool { return true }}
	for status, want := range map[metav1.ConditionStatus]world.Drift{
		"": world.Free, metav1.ConditionFalse: world.Free, metav1.ConditionUnknown: world.Probing, metav1.ConditionTrue: world.Halted,
	} {
		pool := &v1.NodePool{}
		if status != "" {
			pool.StatusConditions(time.Unix(0, 0)).Set(metav1.Condition{Type: v1.RolloutHaltedCondition, Status: status, Reason: "Test"})
		}
		if got, _ := c.Pool(pool); got.Drift != want {
			t.Errorf("RolloutHalted %q: got %v, want %v", status, got.Drift, want)
		}
	}
}
