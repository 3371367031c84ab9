// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "karpenter/api/v1"
)

// TestEvictionCost: spec 48/67.
func TestEvictionCost(t *testing.T) {
	for _, tc := range []struct {
		name             string
		disruption, pods string // "-" = none
		written          bool
		want             float64
	}{
		{"disruption cost", "134217728", "-", false, 2},
		{"both, gate off", "134217728", "-134217728", false, 2},
		{"both, gate on", "134217728", "-134217728", true, 2},
		{"deletion cost, gate off", "-", "134217728", false, 2},
		{"deletion cost, gate on", "-", "134217728", true, 1},
		{"a fraction", "1.5", "-", false, 1},
		{"no number does not fall back", "abc", "134217728", false, 1},
		{"too large", "4294967296", "-", false, 1},
		{"the least", "-2147483648", "-", false, -10},
	} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{}}}
		if tc.disruption != "-" {
			p.Annotations[v1.DisruptionCostAnnotationKey] = tc.disruption
		}
		if tc.pods != "-" {
			p.Annotations[corev1.PodDeletionCost] = tc.pods
		}
		if got := EvictionCost(p, tc.written); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}
