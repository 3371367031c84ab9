// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karpenter/api/azure/v1beta1"
)

// TestReady covers the first half of spec 71/11: Ready needs all five conditions.
func TestReady(t *testing.T) {
	dependents := []string{
		v1beta1.KubernetesVersionReadyCondition, v1beta1.ImagesReadyCondition, v1beta1.SubnetsReadyCondition,
		v1beta1.ValidationSucceededCondition, v1beta1.LocalDNSReadyCondition,
	}
	now := time.Unix(1_700_000_000, 0)
	for _, last := range dependents {
		var class v1beta1.AKSNodeClass
		set := class.StatusConditions(now)
		for _, condition := range dependents {
			if condition != last {
				set.SetTrue(condition)
			}
		}
		if status := set.Root().Status; status != metav1.ConditionUnknown {
			t.Errorf("without %s, Ready is %s", last, status)
		}
		set.SetFalse(last, "Some", "reason")
		if status := set.Root().Status; status != metav1.ConditionFalse {
			t.Errorf("with %s False, Ready is %s", last, status)
		}
		set.SetTrue(last)
		if status := set.Root().Status; status != metav1.ConditionTrue {
			t.Errorf("with all conditions True, Ready is %s", status)
		}
		if len(class.Status.Conditions) != len(dependents)+1 {
			t.Errorf("conditions are %v", class.Status.Conditions)
		}
	}
}

// TestStatusOfOtherGeneration covers the rule behind the second half of spec
// 71/11: images and version count only at the current generation.
func TestStatusOfOtherGeneration(t *testing.T) {
	class := v1beta1.AKSNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default", Generation: 1}}
	class.Status.KubernetesVersion = new("1.34.1")
	class.Status.Images = []v1beta1.NodeImage{{ID: "image"}}
	usable := func() (version, images bool) {
		_, err := class.KubernetesVersion()
		_, err2 := class.Images()
		return err == nil, err2 == nil
	}
	if version, images := usable(); version || images {
		t.Errorf("without conditions, the version is usable: %t, images: %t", version, images)
	}
	set := class.StatusConditions(time.Unix(1_700_000_000, 0))
	set.SetTrue(v1beta1.KubernetesVersionReadyCondition)
	set.SetFalse(v1beta1.ImagesReadyCondition, v1beta1.ImagesNotFoundReason, "none")
	if version, images := usable(); !version || images {
		t.Errorf("with ImagesReady False, the version is usable: %t, images: %t", version, images)
	}
	set.SetTrue(v1beta1.ImagesReadyCondition)
	if version, images := usable(); !version || !images {
		t.Errorf("with conditions True, the version is usable: %t, images: %t", version, images)
	}
	class.Generation = 2
	if version, images := usable(); version || images {
		t.Errorf("with stale conditions, the version is usable: %t, images: %t", version, images)
	}
}
