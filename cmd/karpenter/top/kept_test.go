// SPDX-License-Identifier: Apache-2.0

package top

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"karpenter/cmd/karpenter/record"
)

// TestRecordingKeepsTheRecord: each ConfigMap of the record and the baseline is taken in when it
// is new and when it has changed, and no other one.
func TestRecordingKeepsTheRecord(t *testing.T) {
	named := func(namespace, name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	second := named("karpenter", record.Name(1))
	api := fake.NewClientBuilder().WithObjects(named("karpenter", record.Name(0)), second, named("karpenter", "other"), named("elsewhere", record.Name(2))).Build()
	k := kept{from: api, versions: map[string]string{}}
	check := func(want ...string) {
		t.Helper()
		got := k.changed(t.Context(), "karpenter")
		if len(got) != len(want) {
			t.Fatalf("%d ConfigMaps, want %v", len(got), want)
		}
		for i := range got {
			if got[i].GetName() != want[i] {
				t.Errorf("ConfigMap %s, want %s", got[i].GetName(), want[i])
			}
		}
	}
	check(record.Name(0), record.Name(1))
	check()
	second.Data = map[string]string{"a": "b"}
	if err := api.Update(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	if err := api.Create(t.Context(), named("karpenter", record.BaselineName)); err != nil {
		t.Fatal(err)
	}
	check(record.BaselineName, record.Name(1))
}
