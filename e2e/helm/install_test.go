// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/e2e/harness"
)

const (
	namespace = "kube-system"
	patience  = 5 * time.Minute // for anything, on a busy machine
)

// surroundings are the cluster of the tests and where its API server writes what
// it was asked. They are set once, by TestMain.
var surroundings struct {
	shared *harness.Shared
	audit  string
}

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "karpenter-helm-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	policy, err := filepath.Abs("testdata/audit-policy.yaml")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	surroundings.audit = filepath.Join(dir, "audit.log")
	surroundings.shared = harness.NewShared(harness.Options{Kubelets: true, WithoutCRDs: true, Args: []string{
		"--pod-stop-delay=1s",
		"--extra-arg=kube-apiserver=--audit-policy-file=" + policy,
		"--extra-arg=kube-apiserver=--audit-log-path=" + surroundings.audit,
		"--extra-arg=kube-apiserver=--audit-log-mode=blocking",
		// Off by default, on where owner references must not lend permissions,
		// such as OpenShift.
		"--extra-arg=kube-apiserver=--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
	}})
	return surroundings.shared.Run(m)
}

// installation is what one test has installed.
type installation struct {
	*testing.T
	*harness.Cluster
	home  string // Helm's
	since int    // how much of the audit log is of earlier ones
}

// begin makes the nodes that the charts' pods run on, which are not ours, in two
// zones, and tainted as nodes for the system often are.
func begin(t *testing.T) *installation {
	t.Helper()
	i := &installation{T: t, Cluster: surroundings.shared.Cluster(t), home: t.TempDir()}
	log, err := os.ReadFile(surroundings.audit)
	if err != nil {
		t.Fatal(err)
	}
	i.since = len(log)
	for _, zone := range []string{"test-zone-a", "test-zone-b"} {
		name := "system-" + zone
		i.Apply(t, fmt.Sprintf(`
apiVersion: v1
kind: Node
metadata:
  name: %[1]s
  labels: {kubernetes.io/hostname: %[1]s, kubernetes.io/os: linux, topology.kubernetes.io/zone: %[2]s}
  annotations: {kwok.x-k8s.io/node: fake}
spec: {taints: [{key: CriticalAddonsOnly, effect: NoSchedule}]}
status:
  capacity: {cpu: "4", memory: 8Gi, pods: "110"}
  allocatable: {cpu: "4", memory: 8Gi, pods: "110"}
`, name, zone))
		t.Cleanup(func() { i.remove("v1", "Node", name) })
	}
	return i
}

// helm runs Helm, and returns what it prints.
func (i *installation) helm(args ...string) string {
	i.Helper()
	out, err := i.try(args...)
	if err != nil {
		i.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (i *installation) try(args ...string) (string, error) {
	run := exec.CommandContext(i.Context(), "../../bin/helm", append(args, "--namespace", namespace)...)
	run.Env = append(os.Environ(), "KUBECONFIG="+i.Kubeconfig, "HELM_CACHE_HOME="+i.home, "HELM_CONFIG_HOME="+i.home, "HELM_DATA_HOME="+i.home)
	out, err := run.CombinedOutput()
	return string(out), err
}

// install does what a runbook does, twice, and shows that the second time changes
// nothing. The arguments are values.
func (i *installation) install(values ...string) {
	i.Helper()
	definitions := []string{"upgrade", "--install", "karpenter-crd", "../../charts/karpenter-crd", "--create-namespace", "--wait"}
	controller := append([]string{
		"upgrade", "--install", "karpenter", "../../charts/karpenter", "--create-namespace", "--wait", "--timeout", "3m",
		"--set", "controller.resources.requests.cpu=1", "--set", "controller.resources.requests.memory=1Gi",
		"--set", "controller.resources.limits.cpu=1", "--set", "controller.resources.limits.memory=1Gi",
	}, values...)
	i.helm(definitions...)
	i.helm(controller...)
	before := i.versions()
	i.helm(definitions...)
	i.helm(controller...)
	after := i.versions()
	if len(before) < 15 {
		i.Fatalf("the charts made %d objects: %v", len(before), before)
	}
	for name, version := range before {
		if after[name] != version {
			i.Errorf("%s was %s and is %s after an upgrade that changes nothing", name, version, after[name])
		}
	}
}

// versions tells which content each object of the charts has.
func (i *installation) versions() map[string]string {
	i.Helper()
	out := map[string]string{}
	for _, release := range []string{"karpenter-crd", "karpenter"} {
		for o := range i.objects(release) {
			live := &unstructured.Unstructured{}
			live.SetGroupVersionKind(o.GroupVersionKind())
			if err := i.Client.Get(i.Context(), client.ObjectKeyFromObject(o), live); err != nil {
				i.Fatal(err)
			}
			version := live.GetResourceVersion()
			if n := live.GetGeneration(); n > 0 { // the status changes by itself
				version = fmt.Sprint("generation ", n)
			}
			out[o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName()] = version
		}
	}
	return out
}

// objects returns what a release consists of.
func (i *installation) objects(release string) map[*unstructured.Unstructured]bool {
	i.Helper()
	manifest := i.helm("get", "manifest", release)
	out := map[*unstructured.Unstructured]bool{}
	for _, text := range strings.Split(manifest, "\n---\n") {
		o := &unstructured.Unstructured{}
		if decode(i.T, text, &o.Object); len(o.Object) > 0 {
			out[o] = true
		}
	}
	return out
}

// uninstall removes what was installed, the nodes and pools being gone, and the
// lease, which the next test's program must make itself.
func (i *installation) uninstall() {
	i.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "karpenter-leader-election"}}
	if err := i.Client.Delete(i.Context(), lease); err != nil {
		i.Errorf("delete the lease: %v", err)
	}
	for _, release := range []string{"karpenter", "karpenter-crd"} {
		objects := i.objects(release)
		i.helm("uninstall", release, "--wait")
		for o := range objects {
			if err := i.Client.Get(i.Context(), client.ObjectKeyFromObject(o), o); client.IgnoreNotFound(err) != nil || err == nil {
				i.Errorf("%s %s after helm uninstall: %v", o.GetKind(), o.GetName(), err)
			}
		}
	}
}

// pod returns a pod of the chart's Deployment.
func (i *installation) pod() *corev1.Pod {
	i.Helper()
	deployment := &appsv1.Deployment{}
	if err := i.Client.Get(i.Context(), client.ObjectKey{Namespace: namespace, Name: "karpenter"}, deployment); err != nil {
		i.Fatal(err)
	}
	pods := &corev1.PodList{}
	err := i.Client.List(i.Context(), pods, client.InNamespace(namespace), client.MatchingLabels(deployment.Spec.Selector.MatchLabels))
	pods.Items = slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil }) // of the installation before
	if err != nil || len(pods.Items) != 2 {
		i.Fatalf("%d pods of the Deployment, want 2: %v", len(pods.Items), err)
	}
	return &pods.Items[0]
}

// remove deletes an object, if it is there.
func (i *installation) remove(apiVersion, kind, name string) {
	i.Helper()
	o := &unstructured.Unstructured{}
	group, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		i.Fatal(err)
	}
	o.SetGroupVersionKind(group.WithKind(kind))
	o.SetName(name)
	if err := i.Client.Delete(background(), o); client.IgnoreNotFound(err) != nil {
		i.Errorf("delete %s %s: %v", kind, name, err)
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// lines decodes a file of JSON documents, one on each line, from a byte on.
func lines[T any](t *testing.T, path string, from int) []T {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []T
	for line := range strings.Lines(string(text[from:])) {
		var value T
		if err := json.Unmarshal([]byte(line), &value); err != nil {
			t.Fatalf("%s: %v in %s", path, err, line)
		}
		out = append(out, value)
	}
	return out
}
