// SPDX-License-Identifier: Apache-2.0

package whole

import (
	"strings"
	"testing"
	"time"

	"karpenter/e2e/harness"
)

// spec 50/21: of two replicas one leads, both are ready and measured, and the
// lease is free as soon as the leader is asked to stop.
func TestTwoReplicas(t *testing.T) {
	const lease = "two-replicas"
	cluster := shared.Cluster(t)
	first := cluster.StartReplica(t, lease)
	leader := cluster.Holder(t, lease, "")
	second := cluster.StartReplica(t, lease)
	for _, r := range []*harness.Replica{first, second} {
		r.Probe("/healthz")
		r.Probe("/readyz")
		if page := r.Metrics(); !strings.Contains(page, "\nkarpenter_build_info{") {
			t.Error("the metrics have no karpenter_build_info")
		}
	}
	if now := cluster.Holder(t, lease, ""); now != leader {
		t.Errorf("the lease went from %s to %s while its holder was well", leader, now)
	}
	stopped := time.Now()
	first.Stop()
	if code := first.ExitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	cluster.Holder(t, lease, leader)
	// A lease that is not released is taken over after 15 seconds at the
	// earliest.
	if took := time.Since(stopped); took > 12*time.Second {
		t.Errorf("the other replica leads after %v: the lease was not released", took)
	}
}
