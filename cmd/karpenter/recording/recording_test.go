// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bytes"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestRecordingReadsAsTheClusterDid: at each moment a recording shows the objects
// that there were.
func TestRecordingReadsAsTheClusterDid(t *testing.T) {
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	pod := func(name, node string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: corev1.PodSpec{NodeName: node}}
	}
	var file bytes.Buffer
	w, err := NewWriter(&file, Header{Title: "test", Kubernetes: "v1.36.4", Started: start}, scheme.Scheme)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []Change{{Object: pod("a", "")}, {Object: pod("b", "")}, {Object: pod("a", "n1")}, {Object: pod("b", ""), Deleted: true}} {
		c.At = start.Add(time.Duration(i) * time.Second)
		if err := w.Write(c); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := Read(bytes.NewReader(file.Bytes()), scheme.Scheme)
	if err != nil || r.Title != "test" || r.Kubernetes != "v1.36.4" || !r.Ended().Equal(start.Add(3*time.Second)) {
		t.Fatalf("%v: %+v", err, r)
	}
	for after, want := range []string{"a ", "a b ", "an1 b ", "an1 "} {
		list := &corev1.PodList{}
		if err := r.At(start.Add(time.Duration(after)*time.Second)).List(t.Context(), list, client.Limit(1), client.InNamespace("shop")); err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, p := range list.Items {
			got += p.Name + p.Spec.NodeName + " "
		}
		if got != want || list.Continue != "" {
			t.Errorf("after %ds there are %q, want %q", after, got, want)
		}
	}
	end := r.At(r.Ended())
	if err := end.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "b"}, &corev1.Pod{}); !apierrors.IsNotFound(err) {
		t.Errorf("a pod that is gone: %v", err)
	}
	named := &corev1.PodList{}
	if err := end.List(t.Context(), named, &client.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", "a")}); err != nil || len(named.Items) != 1 {
		t.Errorf("by name: %v, %d", err, len(named.Items))
	}
	if _, err := Read(bytes.NewReader(file.Bytes()[:file.Len()/2]), scheme.Scheme); err == nil {
		t.Error("half a recording was read without an error")
	}
}
