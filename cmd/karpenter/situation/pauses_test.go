// SPDX-License-Identifier: Apache-2.0

package situation

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karpenter/world"
)

// TestPausesThatAreRead restores what a leader has published, and nothing if there is no
// ConfigMap, or none that can be read: planning does not wait for that.
func TestPausesThatAreRead(t *testing.T) {
	until := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for text, want := range map[string]int{"": 0, "{": 0, `{"u":{"Failures":2,"Until":"2026-01-01T00:00:00Z"}}`: 1} {
		for _, there := range []bool{true, false} {
			_, builder := cluster(t)
			if there {
				builder = builder.WithObjects(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: Name}, Data: map[string]string{pausesKey: text}})
			}
			var got map[string]world.Pause
			p := &Pauses{Live: builder.Build(), Namespace: "kube-system", Restore: func(all map[string]world.Pause) { got = all }, Synced: func() bool { return true }}
			if err := p.Start(t.Context()); err != nil || !p.Read() {
				t.Errorf("%q: read %t, %v", text, p.Read(), err)
			}
			if there && len(got) != want || !there && len(got) > 0 {
				t.Errorf("%q: restored %v, want %d", text, got, want)
			}
			if pause, ok := got["u"]; ok && pause != (world.Pause{Failures: 2, Until: until}) {
				t.Errorf("restored %v", pause)
			}
		}
	}
}
