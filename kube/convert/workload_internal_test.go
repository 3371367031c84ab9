// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestWorkload: replicas of a Deployment have the same workload whatever ReplicaSet
// they are of, and so have the Jobs of a CronJob.
func TestWorkload(t *testing.T) {
	yes := true
	for _, c := range []struct{ kind, owner, want string }{
		{"ReplicaSet", "web-7d9f", "web"},
		{"ReplicaSet", "alone", "alone"},
		{"StatefulSet", "db-7d9f", "db-7d9f"},
		{"Job", "backup-29112345", "backup"},
		{"Job", "import-2", "import-2"},
		{"DaemonSet", "agent", ""},
		{"", "", ""},
	} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"pod-template-hash": "7d9f"}}}
		if c.kind != "" {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: c.kind, Name: c.owner, Controller: &yes}}
		}
		if got := workload(p); got != c.want {
			t.Errorf("%s %s: workload %q, want %q", c.kind, c.owner, got, c.want)
		}
	}
}
