// SPDX-License-Identifier: Apache-2.0

package situation

import (
	"maps"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "karpenter/api/v1"
	"karpenter/kube/events"
	"karpenter/model"
	"karpenter/scenario"
)

func owned(kind, owner, name string, created time.Time) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, UID: types.UID(name + created.String()), CreationTimestamp: metav1.NewTime(created),
		OwnerReferences: []metav1.OwnerReference{{Kind: kind, Name: owner, Controller: ptr.To(true)}},
	}}
}

func evicted(name string, at time.Time) *corev1.Event {
	return &corev1.Event{
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: name, UID: types.UID(name)},
		Reason:         "Evicted", Source: corev1.EventSource{Component: events.Source}, LastTimestamp: metav1.NewTime(at),
	}
}

// TestMovedPods: a pod that its owner made soon after Karpenter evicted another one of the owner
// was moved, one for each eviction.
func TestMovedPods(t *testing.T) {
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	other := evicted("web-6f-ddddd", at(10))
	other.Source.Component = "descheduler"
	happened := []*corev1.Event{evicted("web-6f-bbbbb", at(20)), evicted("web-6f-aaaaa", at(10)), evicted("db-0", at(10)), evicted("api-77-aaaaa", at(10)), other}
	got := map[string]time.Time{}
	for p, at := range Moved(happened, []*corev1.Pod{
		owned("ReplicaSet", "web-6f", "web-6f-old", at(9)),    // before the evictions
		owned("ReplicaSet", "web-6f", "web-6f-3", at(22)),     // one more than were evicted
		owned("ReplicaSet", "web-6f", "web-6f-1", at(10)),     //
		owned("ReplicaSet", "web-6f", "web-6f-2", at(21)),     //
		owned("StatefulSet", "db", "db-0", at(11)),            // the same name again
		owned("StatefulSet", "db", "db-1", at(11)),            // another
		owned("ReplicaSet", "api-77", "api-77-late", at(600)), // too late
		{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-6f-lone", CreationTimestamp: metav1.NewTime(at(11))}},
	}) {
		got[p.Name] = at
	}
	want := map[string]time.Time{"web-6f-1": at(10), "web-6f-2": at(20), "db-0": at(10)}
	if !maps.Equal(got, want) {
		t.Errorf("moved %v, want %v", got, want)
	}
}

// TestMovedPodsKeepTheirNodes: the node of a pod that was moved is fresh for an hour.
func TestMovedPodsKeepTheirNodes(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	pod := owned("ReplicaSet", "web-6f", "web-6f-1", now.Add(-30*time.Minute))
	pod.Spec.NodeName, pod.Status.Phase = "n1", corev1.PodRunning
	objects := []client.Object{
		&v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c1", Labels: map[string]string{v1.NodePoolLabelKey: "general"}}, Spec: v1.NodeClaimSpec{NodeClassRef: &v1.NodeClassReference{Group: "karpenter.test", Kind: "Class", Name: "x"}}, Status: v1.NodeClaimStatus{ProviderID: "x:1", NodeName: "n1"}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{v1.NodePoolLabelKey: "general", v1.NodeRegisteredLabelKey: "true", v1.NodeInitializedLabelKey: "true"}}, Spec: corev1.NodeSpec{ProviderID: "x:1"}},
		pod, evicted("web-6f-gone", now.Add(-31*time.Minute)),
	}
	fresh := func(now time.Time) bool {
		t.Helper()
		got, err := Build(Published{Rules: Rules{Version: version, Labels: v1.DefaultLabels(), NodeClasses: []schema.GroupKind{{Group: "karpenter.test", Kind: "Class"}}}, Offerings: scenario.Situation{Snapshot: &model.Snapshot{}}}, now,
			func(kind client.Object) ([]client.Object, error) {
				var out []client.Object
				for _, o := range objects {
					if reflect.TypeOf(o) == reflect.TypeOf(kind) {
						out = append(out, o)
					}
				}
				return out, nil
			})
		if err != nil || len(got.Snapshot.Nodes) != 1 {
			t.Fatalf("%v: %+v", err, got.Snapshot)
		}
		return got.Snapshot.Nodes[0].Disruption.Fresh
	}
	if !fresh(now) {
		t.Error("a pod was moved half an hour ago, and its node may be consolidated")
	}
	if fresh(now.Add(time.Hour)) {
		t.Error("its node may not be consolidated although the pod was moved more than an hour ago")
	}
}
