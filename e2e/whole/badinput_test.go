// SPDX-License-Identifier: Apache-2.0

package whole

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	v1 "karpenter/api/v1"
	"karpenter/e2e/harness"
)

// apply creates the object written in YAML.
func (f *fixture) apply(text string) {
	f.Helper()
	var o unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		f.Fatal(err)
	}
	f.create(&o)
}

func quantity(text string) resource.Quantity { return resource.MustParse(text) }

func contains(text string, all ...string) bool {
	for _, part := range all {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

// condition says how a pool's condition differs from what is wanted.
func condition(v *harness.View, pool, kind string, status metav1.ConditionStatus, text string) func() string {
	return func() string {
		p := v.Pool(pool)
		if p == nil {
			return "there is no pool"
		}
		for _, c := range p.Status.Conditions {
			if c.Type == kind && c.Status == status && contains(c.Reason+" "+c.Message, text) {
				return ""
			}
		}
		return fmt.Sprintf("conditions are %+v", p.Status.Conditions)
	}
}

// TestPoolThatBreaksARule is told by a condition; a rule of the schema, by the
// API server.
func TestPoolThatBreaksARule(t *testing.T) {
	f := setUp(t, 0)
	v := f.Watch(t)
	f.StartController(t)
	f.pool(func(p *v1.NodePool) { p.Spec.Template.Labels["a key with spaces"] = "x" })
	v.Until("the condition says so", patience, condition(v, f.name, v1.ValidationSucceededCondition, metav1.ConditionFalse, "a key with spaces"))
	v.Until("and the pool is not ready", patience, condition(v, f.name, "Ready", metav1.ConditionFalse, "ValidationSucceeded=False"))
	f.deployment(3, "1", "1Gi")
	v.Until("pods are told", patience, f.told(v, "Failed to schedule pod, nodepool "))
	if n := len(f.claims(v)); n > 0 {
		t.Errorf("%d claims of a pool that is not ready", n)
	}

	bad := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: f.name + "-bad"}}
	bad.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: "a/b", Kind: "K", Name: "n"}
	bad.Spec.Template.Spec.Requirements = []v1.NodeSelectorRequirementWithMinValues{}
	if err := f.Client.Create(t.Context(), bad); err == nil || !strings.Contains(err.Error(), "group") {
		t.Errorf("the API server accepted a group with a slash, or did not say so: %v", err)
	}
}

// told says which pods have not been told all of this in FailedScheduling.
func (f *fixture) told(v *harness.View, text ...string) func() string {
	return func() string {
		pods := v.Pods(f.name)
		for _, p := range pods {
			events := v.Events("FailedScheduling", p.Name)
			ok := false
			for _, message := range events {
				ok = ok || contains(message, text...)
			}
			if !ok {
				return fmt.Sprintf("pod %s was told %q", p.Name, events)
			}
		}
		return some(len(pods), "pod")
	}
}

// TestNodeClassThatDoesNotExist is told by the pool's condition.
func TestNodeClassThatDoesNotExist(t *testing.T) {
	f := setUp(t, 0)
	v := f.Watch(t)
	f.StartController(t)
	f.pool(func(p *v1.NodePool) { p.Spec.Template.Spec.NodeClassRef.Name = "nobody" })
	f.deployment(3, "1", "1Gi")
	v.Until("the condition says so", patience, condition(v, f.name, v1.NodeClassReadyCondition, metav1.ConditionFalse, "NodeClassNotFound"))
	v.Until("pods are told", patience, f.told(v, "Failed to schedule pod, nodepool "))
	if n := len(f.claims(v)); n > 0 {
		t.Errorf("%d claims without a NodeClass", n)
	}
}

// TestPodNothingCanRun is told by an event that names what is in the way.
func TestPodNothingCanRun(t *testing.T) {
	f := setUp(t, 0)
	f.pool(nil)
	v := f.Watch(t)
	f.StartController(t)
	f.pod("huge", func(s *corev1.PodSpec) { s.Containers[0].Resources.Requests["cpu"] = quantity("10k") })
	f.pod("nowhere", func(s *corev1.PodSpec) { s.NodeSelector["topology.kubernetes.io/zone"] = "moon-1a" })
	f.pod("pinned", func(s *corev1.PodSpec) { s.NodeSelector["kubernetes.io/hostname"] = "no-such-node" })
	for name, parts := range map[string][]string{
		"huge":    {"nodepool " + f.name, "0 after requests cpu=10000"},
		"nowhere": {"0 after topology.kubernetes.io/zone In [moon-1a]", "test-zone-a"},
		"pinned":  {"nodeSelector kubernetes.io/hostname", "decided per node"},
	} {
		v.Until(name+" is told", patience, func() string {
			for _, message := range v.Events("FailedScheduling", name) {
				if contains(message, parts...) {
					return ""
				}
			}
			return fmt.Sprintf("it was told %q", v.Events("FailedScheduling", name))
		})
	}
	if n := len(f.claims(v)); n > 0 {
		t.Errorf("%d claims for pods nothing can run", n)
	}
}

// soldOut is a types file in which every launch fails.
const soldOut = `[
  {"name": "sold-out", "architecture": "amd64", "operatingSystems": ["linux"],
   "resources": {"cpu": "4", "memory": "16Gi", "pods": "110", "ephemeral-storage": "20Gi"},
   "offerings": [
    {"price": 0.1, "launchError": "InsufficientCapacity", "requirements": [
      {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
      {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["test-zone-a"]}]}]}
]`

// TestCloudWithoutCapacity meets a cloud that answers every launch with
// insufficient capacity: an event says so, pods are told, and there is no
// storm of claims.
func TestCloudWithoutCapacity(t *testing.T) {
	f := setUp(t, 0)
	f.pool(nil)
	names := map[string]bool{}
	v := f.Watch(t, func(v *harness.View) {
		for _, c := range f.claims(v) {
			names[c.Name] = true
		}
	})
	f.StartController(t, "INSTANCE_TYPES_FILE_PATH="+f.file("types.json", soldOut))
	// Pods that are told of a pool that is not ready hear of nothing else for five minutes.
	v.Until("the pool is ready", patience, condition(v, f.name, "Ready", metav1.ConditionTrue, ""))
	f.deployment(9, "1", "1Gi") // three nodes of four CPUs
	v.Until("a claim is told", patience, func() string {
		for name := range names {
			for _, message := range v.Events("InsufficientCapacityError", name) {
				if message != "" {
					return ""
				}
			}
		}
		return fmt.Sprintf("claims %v were told nothing", names)
	})
	v.Until("pods are told", patience, f.told(v, "the cloud has no capacity"))
	v.Throughout(25 * time.Second) // the controller looks again every ten
	if n := len(names); n > 4 {
		t.Errorf("%d claims were made while the cloud had nothing", n)
	}
	if n := len(f.nodes(v)); n > 0 {
		t.Errorf("%d nodes came from a cloud without capacity", n)
	}
}
