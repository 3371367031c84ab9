// SPDX-License-Identifier: Apache-2.0

package feed_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"

	v1 "karpenter/api/v1"
	"karpenter/kube/convert"
	"karpenter/kube/feed"
	"karpenter/kube/meter"
	"karpenter/kube/volumes"
	"karpenter/model"
	"karpenter/world"
)

// Who measures how long pods wait hears of each pod, whether the scheduler has
// found no node for it, and when it is gone.
func TestPodWaitMetricsHearOfPods(t *testing.T) {
	const unbound, undecided = "karpenter_pods_unbound_time_seconds", "karpenter_pods_provisioning_scheduling_undecided_time_seconds"
	reg := prometheus.NewRegistry()
	waits := meter.NewPods(reg, clocktesting.NewFakePassiveClock(now()), func(string) bool { return true })
	if err := waits.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	axis := model.NewAxis()
	x := &fixture{t: t, informers: &informertest.FakeInformers{Scheme: newScheme(t)}, world: world.New(axis, nil)}
	c := convert.Converter{Axis: axis, Labels: v1.DefaultLabels()}
	if _, err := feed.Start(t.Context(), x.informers, x.world, c, feed.Sources{Volumes: volumes.New(c.Labels, volumes.Rules{}), Waits: waits}); err != nil {
		t.Fatal(err)
	}
	check := func(when string, wantUnbound, wantUndecided int) {
		t.Helper()
		for name, want := range map[string]int{unbound: wantUnbound, undecided: wantUndecided} {
			if got, err := testutil.GatherAndCount(reg, name); err != nil || got != want {
				t.Errorf("%s, %s counts %d pods, %v; want %d", when, name, got, err, want)
			}
		}
	}
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name, pod.UID, pod.Status.Phase = "default", "a", "u", corev1.PodPending
	x.tell("add", pod)
	check("new", 1, 0)
	pod = pod.DeepCopy()
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	x.tell("update", pod)
	check("unschedulable", 1, 1)
	x.tell("delete", pod)
	check("deleted", 0, 0)
}
