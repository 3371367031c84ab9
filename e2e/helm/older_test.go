// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/api/v1alpha1"
)

// older are the resources that the role of an older chart does not name.
var older = []string{"podgroups", "nodeoverlays", "capacitybuffers", "podtemplates", "deployments", "services", "replicasets"}

const podGroups = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: podgroups.scheduling.x-k8s.io
  annotations: {api-approved.kubernetes.io: "https://github.com/kubernetes-sigs/scheduler-plugins"}
spec:
  group: scheduling.x-k8s.io
  names: {kind: PodGroup, plural: podgroups}
  scope: Namespaced
  versions:
    - name: v1alpha1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

const olderWork = `
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: default}
spec: {nodeRegistrationDelay: 1s}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: older}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements:
        - {key: kubernetes.io/os, operator: In, values: [linux]}
---
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata: {name: older}
spec:
  requirements: [{key: karpenter.sh/nodepool, operator: In, values: [older]}]
  priceAdjustment: "+1%"
---
apiVersion: v1
kind: Namespace
metadata: {name: older}
---
apiVersion: v1
kind: PodTemplate
metadata: {name: room, namespace: older}
template:
  spec: {containers: [{name: c, image: c, resources: {requests: {cpu: "1"}}}]}
---
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {name: room, namespace: older}
spec: {podTemplateRef: {name: room}, replicas: 1}
`

// member is a pod of a PodGroup that does not exist. Nothing would make another in its
// place: if Kubernetes' taint eviction sees late that a node has registered, it deletes
// pods there that do not tolerate the taint the node had before.
const member = `
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: older, labels: {scheduling.x-k8s.io/pod-group: none}}
spec: {tolerations: [{key: karpenter.sh/unregistered, operator: Exists}], containers: [{name: c, image: c, resources: {requests: {cpu: "%d"}}}]}
`

// TestOlderRole runs the program with the ClusterRole of a chart that did not know some
// of the kinds it reads, as after an update of the image only: it plans without these
// kinds and says so, and takes them in when the role has the rights, without a restart.
func TestOlderRole(t *testing.T) {
	i := begin(t)
	i.Apply(t, podGroups)
	t.Cleanup(func() {
		i.remove("apiextensions.k8s.io/v1", "CustomResourceDefinition", "podgroups.scheduling.x-k8s.io")
	})
	metrics, health := freePort(t), freePort(t)
	i.install("-f", "testdata/kwok.values.yaml",
		"--set", fmt.Sprint("controller.metrics.port=", metrics), "--set", fmt.Sprint("controller.healthProbe.port=", health))
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "karpenter-core"}}
	i.get(client.ObjectKeyFromObject(role), role)
	complete := role.DeepCopy().Rules
	for k := range role.Rules {
		role.Rules[k].Resources = slices.DeleteFunc(role.Rules[k].Resources, func(r string) bool { return slices.Contains(older, r) })
	}
	role.Rules = slices.DeleteFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return len(r.Resources) == 0 })
	i.rules(role.Rules)

	i.served("karpenter.sh/v1", "NodePool", "NodeClaim")
	i.served("karpenter.kwok.sh/v1alpha1", "KWOKNodeClass")
	program := i.start(i.pod())
	v := i.Watch(t)
	i.leads("")
	i.Apply(t, olderWork)
	i.Apply(t, fmt.Sprintf(member, "alone", 1))
	v.Until("a pod runs whose PodGroup cannot be read", patience, running(v, "older", 1))
	v.Until("the program is ready", patience, func() string { return answer(health, "/readyz", "ok") })
	v.Until("the metric tells", patience, func() string {
		return answer(metrics, "/metrics", `karpenter_cluster_state_watch_down_time_seconds{kind="CoschedulingPodGroup",optional="true"}`)
	})
	v.Until("the log tells", patience, func() string {
		if strings.Contains(program.Log(), `"cannot read an optional kind of object; going on without it"`) {
			return ""
		}
		return "it does not"
	})
	v.Until("karpenter status tells", patience, func() string {
		out, err := exec.CommandContext(t.Context(), "../../bin/karpenter", "status", "--kubeconfig", i.Kubeconfig).CombinedOutput()
		if strings.Contains(string(out), "CoschedulingPodGroup") && strings.Contains(string(out), "goes on without") {
			return ""
		}
		return fmt.Sprintf("%v: %s", err, out)
	})

	i.rules(complete)
	v.Until("overlays are evaluated", patience, func() string { return i.overlaid("older") })
	v.Until("buffers are kept", patience, func() string {
		if b := v.Buffer("older", "room"); b == nil || !meta.IsStatusConditionTrue(b.Status.Conditions, "Provisioning") {
			return fmt.Sprintf("%+v", b)
		}
		return ""
	})
	v.Until("PodGroups are read", patience, func() string {
		if read(program.Log(), "CoschedulingPodGroup") {
			return ""
		}
		return "the log does not say so"
	})
	i.Apply(t, fmt.Sprintf(member, "waiting", 20)) // no node that is there has 20
	v.Until("a pod waits for its PodGroup", patience, func() string {
		if said := v.Events("FailedScheduling", "waiting"); slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, "PodGroup") }) {
			return ""
		}
		return fmt.Sprint(v.Events("FailedScheduling", "waiting"))
	})

	i.remove("v1", "Namespace", "older")
	i.remove("karpenter.sh/v1alpha1", "NodeOverlay", "older")
	i.remove("karpenter.sh/v1", "NodePool", "older")
	v.Until("nodes are gone", patience, func() string { return left(v) })
	program.Stop()
	i.remove("karpenter.kwok.sh/v1alpha1", "KWOKNodeClass", "default")
	i.uninstall()
}

// rules has the program's role allow these.
func (i *installation) rules(rules []rbacv1.PolicyRule) {
	i.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "karpenter-core"}}
	i.get(client.ObjectKeyFromObject(role), role)
	role.Rules = rules
	if err := i.Client.Update(i.Context(), role); err != nil {
		i.Fatal(err)
	}
}

// overlaid says what the NodeOverlay lacks to be in force.
func (i *installation) overlaid(name string) string {
	o := &v1alpha1.NodeOverlay{}
	if err := i.Client.Get(i.Context(), client.ObjectKey{Name: name}, o); err != nil {
		return err.Error()
	}
	for _, c := range o.Status.Conditions {
		if c.Type == "Ready" && c.Status == "True" {
			return ""
		}
	}
	return fmt.Sprintf("%+v", o.Status)
}

// answer says how what is served on the port differs from what it must contain.
func answer(port int, path, want string) string {
	response, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d%s", port, path))
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK || !strings.Contains(string(body), want) {
		return fmt.Sprintf("%s: %s, and %v", path, response.Status, err)
	}
	return ""
}

// read reports whether the log says that an optional kind is read.
func read(log, kind string) bool {
	for line := range strings.Lines(log) {
		var entry struct{ Message, Kind string }
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Message == "reading an optional kind of object" && entry.Kind == kind {
			return true
		}
	}
	return false
}
