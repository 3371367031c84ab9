// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/e2e/harness"
)

// TestOddObjects starts the controller on objects with values that a real API server accepts and
// no one expects, in testdata/odd, and changes and deletes them while it runs. Pods of another
// namespace get their nodes all the time, nothing panics, and neither CPU time nor memory is wasted.
func TestOddObjects(t *testing.T) {
	cluster, err := harness.Start(t.Context(), harness.Options{})
	check(t, err)
	t.Cleanup(func() { check(t, cluster.Stop()) })
	check(t, cluster.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "odd"}}))
	odd := append(oddObjects(t), crowded())
	for _, o := range odd {
		store(t, cluster.Client, o)
	}

	port := harness.FreePort(t)
	controller := cluster.StartController(t, fmt.Sprint("METRICS_PORT=", port),
		"FEATURE_GATES=NodeOverlay=true,CapacityBuffer=true,StaticCapacity=true,NodeRepair=true,PodDeletionCostManagement=true")
	check(t, cluster.Client.Create(t.Context(), object(t, `{apiVersion: karpenter.kwok.sh/v1alpha1, kind: KWOKNodeClass, metadata: {name: default}}`)))
	check(t, cluster.Client.Create(t.Context(), object(t, `{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: good}, spec: {template: {spec: {requirements: [], nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}}}}}`)))
	launches(t, cluster.Client, "first")
	for _, o := range odd {
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"example.com/changed":"true"}}}`))
		check(t, client.IgnoreNotFound(cluster.Client.Patch(t.Context(), o.DeepCopy(), patch)))
	}
	launches(t, cluster.Client, "second")
	for _, o := range odd {
		check(t, client.IgnoreNotFound(cluster.Client.Delete(t.Context(), o.DeepCopy())))
	}
	launches(t, cluster.Client, "third")

	if log := controller.Log(); strings.Contains(log, "panic") {
		t.Errorf("something panics:\n%s", log[strings.Index(log, "panic"):][:2000])
	}
	page := harness.Page(t, port, "/metrics")
	t.Logf("CPU time %.1f s, %.0f MiB", metric(t, page, "process_cpu_seconds_total"), metric(t, page, "process_resident_memory_bytes")/(1<<20))
	if seconds := metric(t, page, "process_cpu_seconds_total"); seconds > 60 {
		t.Errorf("the process took %.0f s of CPU time", seconds)
	}
	if mib := metric(t, page, "process_resident_memory_bytes") / (1 << 20); mib > 400 {
		t.Errorf("the process takes %.0f MiB of memory", mib)
	}
}

// oddObjects reads testdata/odd.
func oddObjects(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	files, err := filepath.Glob("testdata/odd/*.yaml")
	check(t, err)
	var out []*unstructured.Unstructured
	for _, file := range files {
		text, err := os.ReadFile(file)
		check(t, err)
		documents := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
		for {
			var raw runtime.RawExtension
			err := documents.Decode(&raw)
			if errors.Is(err, io.EOF) {
				break
			}
			o := &unstructured.Unstructured{}
			if err := errors.Join(err, o.UnmarshalJSON(raw.Raw)); err != nil { // keeps whole numbers as they are
				t.Fatalf("%s: %v", file, err)
			}
			out = append(out, o)
		}
	}
	return out
}

// crowded returns a pod with hundreds of containers.
func crowded() *unstructured.Unstructured {
	containers := func(n int, more map[string]any) []any {
		out := make([]any, n)
		for i := range out {
			c := map[string]any{"name": fmt.Sprint(more["restartPolicy"], "-", i), "image": "c", "resources": map[string]any{"requests": map[string]any{"cpu": "1m"}}}
			for key, value := range more {
				c[key] = value
			}
			c["name"] = strings.ToLower(strings.Trim(strings.ReplaceAll(fmt.Sprint(c["name"]), "<nil>", "c"), "-"))
			out[i] = c
		}
		return out
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "crowded", "namespace": "odd"},
		"spec": map[string]any{"initContainers": containers(300, map[string]any{"restartPolicy": "Always"}), "containers": containers(500, nil)},
	}}
}

// store creates the object, with its status.
func store(t *testing.T, c client.Client, o *unstructured.Unstructured) {
	t.Helper()
	status, reported := o.Object["status"]
	accepted := func(err error) error {
		if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
			t.Errorf("%s %s is no object that API servers accept: %v", o.GetKind(), o.GetName(), err)
			return nil
		}
		return client.IgnoreAlreadyExists(err)
	}
	until(t, fmt.Sprintf("%s %s is stored", o.GetKind(), o.GetName()), func(ctx context.Context) error {
		return accepted(c.Create(ctx, o.DeepCopy()))
	})
	if !reported {
		return
	}
	until(t, fmt.Sprintf("the status of %s %s is stored", o.GetKind(), o.GetName()), func(ctx context.Context) error {
		now := o.DeepCopy()
		if err := c.Get(ctx, client.ObjectKeyFromObject(o), now); err != nil {
			return client.IgnoreNotFound(err)
		}
		now.Object["status"] = status
		return accepted(c.Status().Update(ctx, now))
	})
}

// launches checks that a pod for which there is no node makes the good pool launch one.
func launches(t *testing.T, c client.Client, name string) {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"app": "good"}}}
	pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}}}
	pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: pod.Labels},
	}}}}
	began := time.Now()
	check(t, c.Create(t.Context(), pod))
	until(t, "pod "+name+" is planned", func(ctx context.Context) error {
		events := &corev1.EventList{}
		if err := c.List(ctx, events, client.InNamespace("default")); err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.InvolvedObject.Name == name && e.Reason == "Nominated" && !e.CreationTimestamp.Time.Before(began.Truncate(time.Second)) {
				return nil
			}
		}
		return fmt.Errorf("no event Nominated among %d", len(events.Items))
	})
}

// metric returns the value of a metric without labels.
func metric(t *testing.T, page, name string) float64 {
	t.Helper()
	found := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindStringSubmatch(page)
	if found == nil {
		t.Fatalf("no metric %s", name)
	}
	value, err := strconv.ParseFloat(found[1], 64)
	check(t, err)
	return value
}
