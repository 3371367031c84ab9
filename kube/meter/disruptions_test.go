// SPDX-License-Identifier: Apache-2.0

package meter_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "karpenter/api/v1"
	"karpenter/kube/meter"
)

// TestTerminationMode covers the label termination_mode of spec 40 §8. What
// is counted, spec 30/54, is tested in the cases of control/expiration.
func TestTerminationMode(t *testing.T) {
	tests := []struct {
		name   string
		period *metav1.Duration
		want   string
	}{
		{"no limit", nil, "graceful"},
		{"at once", &metav1.Duration{}, "forceful"},
		{"some time", &metav1.Duration{Duration: time.Minute}, "eventual"},
	}
	for _, tt := range tests {
		claim := &v1.NodeClaim{Spec: v1.NodeClaimSpec{TerminationGracePeriod: tt.period}}
		if got := meter.TerminationMode(claim); got != tt.want {
			t.Errorf("%s: mode %q, want %q", tt.name, got, tt.want)
		}
	}
}
