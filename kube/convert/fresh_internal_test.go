// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "karpenter/api/v1"
)

func TestFreshUntil(t *testing.T) {
	made := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for reason, want := range map[string]time.Time{"underutilized": made.Add(time.Hour), "drifted": {}, "": {}} {
		claim := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{
			CreationTimestamp: metav1.NewTime(made), Annotations: map[string]string{v1.ReplacesAnnotationKey: reason},
		}}
		if got := freshUntil(claim); !got.Equal(want) {
			t.Errorf("made for %q: fresh until %v, want %v", reason, got, want)
		}
	}
}

// TestAdvised reads since when the provider recommends to leave a node.
func TestAdvised(t *testing.T) {
	at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{"2030-01-01T00:00:00Z": at, "soon": {}, "": {}} {
		claim := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1.RebalanceRecommendedAnnotationKey: text}}}
		if got := advised(claim); !got.Equal(want) {
			t.Errorf("%q: advised since %v, want %v", text, got, want)
		}
	}
}
