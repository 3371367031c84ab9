// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karpenter/cloud"
	"karpenter/cloud/cloudtest"
	"karpenter/control/controltest"
	"karpenter/kube/events/eventstest"
)

// TestLaunchFailureEvents: spec 48/78. The NodeClaim and the pods that wait for
// it get an event, of at most 1024 bytes.
func TestLaunchFailureEvents(t *testing.T) {
	c := controltest.New(t)
	recorder := &eventstest.Recorder{}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: "a", UID: "a"}}
	r := &Reconciler{
		Client: c.Client, Provider: c.Cloud, Clock: c.Clock, Recorder: recorder, Metrics: NewMetrics(c.Registry), Disruptions: c.Disruptions,
		Waiting: func(string) []*corev1.Pod { return []*corev1.Pod{pod} },
	}
	claim := c.NewClaim("c")
	if err := c.Client.Create(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	c.Cloud.FailNext(cloudtest.Create, &cloud.InsufficientCapacityError{Err: errors.New(strings.Repeat("\u00e4", 2500))})
	s := &scope{claim: claim, conditions: claim.StatusConditions(c.Clock.Now())}
	if _, err := r.launch(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	told := recorder.Events()
	if len(told) != 2 || told[0].Object.GetName() != "c" || told[1].Object.GetName() != "a" {
		t.Fatalf("events %v", told)
	}
	for _, e := range told {
		if e.Reason != "InsufficientCapacityError" || len(e.Message) > 1024 || len(e.Message) < 1000 || !strings.HasSuffix(e.Message, "ä...") {
			t.Errorf("%s: %d bytes: %s", e.Reason, len(e.Message), e.Message)
		}
	}
	if !strings.HasPrefix(told[1].Message, "NodeClaim c nominated for this pod failed to launch: ") {
		t.Errorf("the pod is told: %s", told[1].Message)
	}
}
