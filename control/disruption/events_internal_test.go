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

	v1 "karpenter/api/v1"
	"karpenter/kube/events"
	"karpenter/model"
)

// told counts events by the objects they are about.
type told map[types.UID]int

func (t told) Event(o runtime.Object, _, _, _ string) { t[o.(client.Object).GetUID()]++ }

// TestUnconsolidatableEventsOfEveryNode covers a large cluster none of whose nodes can go: in the first
// five minutes of a leader, at most 1,600 events reach the API server, and each object has its
// event before any has a second one.
func TestUnconsolidatableEventsOfEveryNode(t *testing.T) {
	const nodes = 5000
	clk, sink := clocktesting.NewFakePassiveClock(time.Unix(0, 0)), told{}
	recorder := events.NewPublisher(sink, clk)
	for len(sink) < 2*nodes {
		if passed := clk.Now().Sub(time.Unix(0, 0)); passed > time.Hour {
			t.Fatalf("after an hour, %d of %d objects have an event", len(sink), 2*nodes)
		} else if passed <= 5*time.Minute && len(sink) > 1600 {
			t.Errorf("after %s there are %d events", passed, len(sink))
		}
		for i := range nodes {
			for _, o := range []client.Object{&corev1.Node{}, &v1.NodeClaim{}} {
				o.SetUID(types.UID(fmt.Sprintf("%T %d", o, i)))
				e, ok := aboutNodes(nodes).stayed(o, &model.Stay{Reason: model.Underutilized, Cause: model.ByPrice, Why: "nothing is cheaper"})
				if !ok {
					t.Fatal("there is nothing to tell")
				}
				recorder.Publish(e)
			}
		}
		clk.SetTime(clk.Now().Add(DefaultPeriod))
	}
	for uid, n := range sink {
		if n > 1 {
			t.Errorf("%s has %d events before others have one", uid, n)
		}
	}
}

// TestEventsOfSmallClusters covers that the times between events are the documented ones with up to 2,000 nodes.
func TestEventsOfSmallClusters(t *testing.T) {
	stay := &model.Stay{Reason: model.Underutilized, Cause: model.ByPrice, Why: "nothing is cheaper"}
	if e, _ := aboutNodes(2000).stayed(&corev1.Node{}, stay); e.Timeout != quiet {
		t.Errorf("with 2,000 nodes, Unconsolidatable is repeated after %s", e.Timeout)
	}
	if e := aboutNodes(300).blocked(&corev1.Node{}, "a pod"); e.Timeout != events.DefaultTimeout {
		t.Errorf("with 300 nodes, DisruptionBlocked is repeated after %s", e.Timeout)
	}
}
