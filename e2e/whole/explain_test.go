package whole

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karpenter/e2e/harness"
)

// TestExplain asks the running controller why a pod waits, as users with and
// without the right to, and replays its snapshot.
func TestExplain(t *testing.T) {
	f := setUp(t, 0)
	address := fmt.Sprint("127.0.0.1:", harness.FreePort(t))
	f.StartController(t, "EXPLAIN_BIND_ADDRESS="+address)
	f.pool(nil)
	f.account("asker", "/explain/*", "/snapshot")
	f.account("stranger")
	f.lost("lost", "test-zone-ax")

	ask := func(command, account string, args ...string) (string, error) {
		args = append(strings.Fields(command), append(args, "--address", address, "--service-account", f.name+"/"+account)...)
		run := exec.CommandContext(t.Context(), "../../bin/karpenter", args...)
		run.Env = append(run.Environ(), "KUBECONFIG="+f.Kubeconfig)
		out, err := run.CombinedOutput()
		return string(out), err
	}
	var last string
	if !harness.Eventually(t, func(context.Context) bool {
		out, err := ask("explain pod lost", "asker", "-n", f.name)
		last = out
		return err == nil && strings.Contains(out, "did you mean test-zone-a?")
	}) {
		t.Fatalf("the answer is\n%s", last)
	}
	if out, err := ask("explain pod lost", "stranger", "-n", f.name); err == nil || !strings.Contains(out, "403 Forbidden: system:serviceaccount:"+f.name+":stranger may not get /explain/pods/") {
		t.Errorf("a stranger gets %v\n%s", err, out)
	}
	if out, err := ask("explain pod nobody", "asker", "-n", f.name); err == nil || !strings.Contains(out, "there is no pod nobody") {
		t.Errorf("about a pod that is not: %v\n%s", err, out)
	}
	dump, err := ask("snapshot", "asker")
	if err != nil {
		t.Fatalf("%v\n%s", err, dump)
	}
	file := filepath.Join(t.TempDir(), "situation.txt")
	if err := os.WriteFile(file, []byte(dump), 0o600); err != nil {
		t.Fatal(err)
	}
	offline, err := exec.CommandContext(t.Context(), "../../bin/karpenter", "explain", "pod", f.name+"/lost", "--file", file).CombinedOutput()
	if err != nil || string(offline) != last {
		t.Errorf("the snapshot says (%v)\n%s\nthe controller\n%s", err, offline, last)
	}
}

// account makes a service account of the test that may get the paths.
func (f *fixture) account(name string, paths ...string) {
	f.Helper()
	f.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: f.name, Name: name}})
	if len(paths) == 0 {
		return
	}
	meta := metav1.ObjectMeta{Name: f.name + "-" + name}
	f.create(&rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{NonResourceURLs: paths, Verbs: []string{"get"}}}})
	f.create(&rbacv1.ClusterRoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: f.name, Name: name}},
	})
}

// lost makes a pod of the test's pool that wants a zone.
func (f *fixture) lost(name, zone string) {
	f.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: f.name, Name: name}}
	p.Spec.ServiceAccountName = "asker"
	p.Spec.NodeSelector = map[string]string{"test": f.name, corev1.LabelTopologyZone: zone}
	p.Spec.Containers = []corev1.Container{{Name: "c", Image: "c", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}}}
	f.create(p)
}
