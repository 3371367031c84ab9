// SPDX-License-Identifier: Apache-2.0

package whole

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karpenter/e2e/harness"
)

// TestExplain explains why a pod waits, as users with and without the right to
// read, by certificate, token and exec plugin, and replays the snapshot.
func TestExplain(t *testing.T) {
	f := setUp(t, 0)
	f.StartController(t, "SYSTEM_NAMESPACE="+f.name)
	f.pool(nil)
	f.lost("lost", "test-zone-ax")
	viewer, stranger := f.plugin("viewer", "karpenter-test-viewer"), f.plugin("stranger", "")

	ask := func(command, kubeconfig string, args ...string) (string, error) {
		args = append(strings.Fields(command), append(args, "--kubeconfig", kubeconfig, "--karpenter-namespace", f.name)...)
		out, err := exec.CommandContext(t.Context(), "../../bin/karpenter", args...).CombinedOutput()
		answer, _, _ := strings.Cut(string(out), "\nNext: ")
		return answer, err
	}
	var last string
	if !harness.Eventually(t, func(context.Context) bool {
		out, err := ask("explain pod lost", viewer, "-n", f.name)
		last = out
		return err == nil && strings.Contains(out, "did you mean test-zone-a?")
	}) {
		t.Fatalf("the answer is\n%s", last)
	}
	if out, err := ask("explain pod lost", f.Kubeconfig, "-n", f.name); err != nil || out != last {
		t.Errorf("by certificate: %v\n%s, want\n%s", err, out, last)
	}
	impersonated := []string{"-n", f.name, "--as", "system:serviceaccount:" + f.name + ":stranger"}
	for _, try := range []struct {
		kubeconfig string
		args       []string
	}{{stranger, []string{"-n", f.name}}, {f.Kubeconfig, impersonated}} {
		out, err := ask("explain pod lost", try.kubeconfig, try.args...)
		if err == nil || !strings.Contains(out, f.name+":stranger\" cannot list resource \"configmaps\"") || !strings.Contains(out, "--clusterrole=karpenter-viewer") {
			t.Errorf("a stranger gets %v\n%s", err, out)
		}
	}
	if out, err := ask("explain pod nobody", viewer, "-n", f.name); err == nil || !strings.Contains(out, "found no pod "+f.name+"/nobody") {
		t.Errorf("about a pod that is not: %v\n%s", err, out)
	}
	dump, err := ask("snapshot", viewer)
	if err != nil {
		t.Fatalf("%v\n%s", err, dump)
	}
	file := filepath.Join(t.TempDir(), "situation.txt")
	if err := os.WriteFile(file, []byte(dump), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "../../bin/karpenter", "explain", "pod", f.name+"/lost", "--file", file).Output()
	if err != nil || strings.TrimSpace(string(out)) != strings.TrimSpace(last) {
		t.Errorf("the snapshot says (%v)\n%s\nthe cluster\n%s", err, out, last)
	}
}

// plugin makes a service account of the test, binds it to a ClusterRole that may
// read what the chart's viewer may, and returns a kubeconfig whose user is an
// exec plugin, as that of EKS is.
func (f *fixture) plugin(name, role string) string {
	f.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: f.name, Name: name}}
	f.create(account)
	if role != "" {
		meta := metav1.ObjectMeta{Name: f.name + "-" + role}
		read := []string{"get", "list"}
		f.create(&rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"pods", "nodes", "namespaces", "persistentvolumes", "persistentvolumeclaims"}, Verbs: read},
			{APIGroups: []string{"apps"}, Resources: []string{"daemonsets"}, Verbs: read},
			{APIGroups: []string{"policy"}, Resources: []string{"poddisruptionbudgets"}, Verbs: read},
			{APIGroups: []string{"storage.k8s.io"}, Resources: []string{"storageclasses", "csinodes"}, Verbs: read},
			{APIGroups: []string{"karpenter.sh"}, Resources: []string{"nodepools", "nodeclaims"}, Verbs: read},
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"karpenter-offerings"}, Verbs: read},
		}})
		f.create(&rbacv1.ClusterRoleBinding{
			ObjectMeta: meta,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: f.name, Name: name}},
		})
	}
	return harness.ExecKubeconfig(f.T, f.Cluster, account)
}

// lost makes a pod of the test's pool that wants a zone.
func (f *fixture) lost(name, zone string) {
	f.Helper()
	f.pod(name, func(s *corev1.PodSpec) { s.NodeSelector[corev1.LabelTopologyZone] = zone })
}
