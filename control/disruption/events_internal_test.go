// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/kube/events"
	"karpenter/model"
)

// told counts events by the objects they are about.
type told map[types.UID]int

func (t told) Event(o runtime.Object, _, _, _ string) { t[o.(client.Object).GetUID()]++ }

// TestUnconsolidatableEventsOfEveryNode covers a large cluster none of whose nodes can go: each is
// told why within some passes, and no pass says more than the queue of events holds.
func TestUnconsolidatableEventsOfEveryNode(t *testing.T) {
	const nodes = 2000
	clk, sink := clocktesting.NewFakePassiveClock(time.Unix(0, 0)), told{}
	recorder := events.NewPublisher(sink, clk)
	for pass, before := 0, 0; len(sink) < nodes; pass++ {
		if pass == 20 {
			t.Fatalf("after %d passes, %d of %d nodes have been told", pass, len(sink), nodes)
		}
		for i := range nodes {
			node := &corev1.Node{}
			node.UID = types.UID(fmt.Sprint(i))
			e, ok := stayed(node, &model.Stay{Reason: model.Underutilized, Cause: model.ByPrice, Why: "nothing is cheaper"})
			if !ok {
				t.Fatal("there is nothing to tell")
			}
			recorder.Publish(e)
		}
		if now := len(sink) - before; now > 500 {
			t.Errorf("pass %d told %d nodes", pass, now)
		}
		before = len(sink)
		clk.SetTime(clk.Now().Add(DefaultPeriod))
	}
}
