// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "karpenter/api/v1"
	"karpenter/cmd/karpenter/recording"
)

// TestDemand: a pod that had to leave its node and the pod that its owner made instead are one
// demand; pods that end for other reasons are not continued.
func TestDemand(t *testing.T) {
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	controller := true
	pod := func(name, node string, created int, change func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(start.Add(time.Duration(created) * time.Second)),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", Controller: &controller}},
		}}
		p.Spec.NodeName = node
		if node != "" {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(start.Add(time.Duration(created+10) * time.Second))}}
		}
		if change != nil {
			change(p)
		}
		return p
	}
	claim := func(deleted bool) *v1.NodeClaim {
		c := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", Labels: map[string]string{v1.NodePoolLabelKey: "general"}}}
		c.Status.NodeName, c.Status.ProviderID = "n", "i"
		if deleted {
			c.DeletionTimestamp = &metav1.Time{Time: start}
		}
		return c
	}
	leaving := func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: start} }
	done := func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }
	type change struct {
		at      int
		object  client.Object
		deleted bool
	}
	before := []change{{0, claim(false), false}, {0, pod("a", "", 0, nil), false}, {10, pod("a", "n", 0, nil), false}}
	for _, x := range []struct {
		name    string
		changes []change
		want    string
		evicted int
	}{
		{"it stays", nil, "a 0s to the end", 0},
		{"evicted, with another one in its place", []change{
			{100, claim(true), false}, {100, pod("a", "n", 0, leaving), false}, {101, pod("b", "", 101, nil), false}, {130, pod("a", "n", 0, leaving), true},
			{400, pod("b", "", 101, leaving), true},
		}, "a 0s to 6m40s", 1},
		{"evicted, with another one much later", []change{
			{100, claim(true), false}, {130, pod("a", "n", 0, nil), true}, {500, pod("b", "", 500, nil), false},
		}, "a 0s to 2m10s; b 8m20s to the end", 1},
		{"evicted, with two more", []change{
			{100, claim(true), false}, {130, pod("a", "n", 0, nil), true}, {131, pod("b", "", 131, nil), false}, {131, pod("c", "", 131, nil), false},
		}, "a 0s to the end; c 2m11s to the end", 1},
		{"deleted, with another one in its place", []change{
			{100, pod("a", "n", 0, leaving), false}, {101, pod("b", "", 101, nil), false}, {130, pod("a", "n", 0, leaving), true},
		}, "a 0s leaves 1m40s to 2m10s; b 1m41s to the end", 0},
		{"completed", []change{{70, pod("a", "n", 0, done), false}, {80, pod("a", "n", 0, done), true}}, "a 0s runs 1m0s", 0},
	} {
		r := &recording.Recording{Header: recording.Header{Started: start}}
		for _, c := range append(before[:len(before):len(before)], x.changes...) {
			r.Changes = append(r.Changes, recording.Change{At: start.Add(time.Duration(c.at) * time.Second), Object: c.object, Deleted: c.deleted})
		}
		reads := newReader(r)
		for i := range r.Changes {
			if err := reads.read(&r.Changes[i]); err != nil {
				t.Fatal(err)
			}
		}
		reads.finish()
		var got []string
		for _, d := range reads.h.demands {
			text := fmt.Sprint(d.pod.Name, " ", d.at.Sub(start))
			switch {
			case d.runs > 0:
				text += fmt.Sprint(" runs ", d.runs)
			case d.ends.IsZero():
				text += " to the end"
			case d.ends.After(d.leaves) && reads.h.outcome.Evictions == 0:
				text += fmt.Sprint(" leaves ", d.leaves.Sub(start), " to ", d.ends.Sub(start))
			default:
				text += fmt.Sprint(" to ", d.ends.Sub(start))
			}
			got = append(got, text)
		}
		if text := strings.Join(got, "; "); text != x.want || reads.h.outcome.Evictions != x.evicted {
			t.Errorf("%s: %q and %d evictions, want %q and %d", x.name, text, reads.h.outcome.Evictions, x.want, x.evicted)
		}
	}
}

// TestGuards: a PodDisruptionBudget allows as many evictions as Kubernetes would.
func TestGuards(t *testing.T) {
	number, share := intstr.FromInt32(2), intstr.FromString("25%")
	for _, x := range []struct {
		spec              policyv1.PodDisruptionBudgetSpec
		expected, healthy int
		want              int
	}{
		{policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &number}, 10, 10, 2},
		{policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &number}, 10, 9, 1},
		{policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &number}, 10, 7, 0},
		{policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &share}, 10, 10, 3},
		{policyv1.PodDisruptionBudgetSpec{MinAvailable: &number}, 10, 10, 8},
		{policyv1.PodDisruptionBudgetSpec{MinAvailable: &share}, 10, 10, 7},
		{policyv1.PodDisruptionBudgetSpec{MinAvailable: &number}, 1, 1, 0},
		{policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &number}, 1, 1, 1},
		{policyv1.PodDisruptionBudgetSpec{}, 3, 3, 0},
	} {
		g := guard{object: &policyv1.PodDisruptionBudget{Spec: x.spec}, expected: x.expected, healthy: x.healthy}
		if got := g.allowed(); got != x.want {
			t.Errorf("%+v with %d of %d: %d, want %d", x.spec, x.healthy, x.expected, got, x.want)
		}
	}
}
