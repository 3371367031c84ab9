// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "karpenter/api/v1"
	"karpenter/e2e/harness"
)

// TestKWOK installs both charts with everything on, runs two replicas of the
// program with exactly what the chart gives its pods, and lets everything happen
// that needs a permission: nodes come, are told of, are drained within budgets
// and deadlines, are forgotten and found again, and go.
func TestKWOK(t *testing.T) {
	i := begin(t)
	i.install("-f", "testdata/kwok.values.yaml",
		"--set", fmt.Sprint("controller.metrics.port=", freePort(t)), "--set", fmt.Sprint("controller.healthProbe.port=", freePort(t)))
	pod := i.pod()
	leader := i.start(pod)
	v := i.Watch(t)
	i.leads("")
	other := i.start(pod, withoutStreams, fmt.Sprint("METRICS_PORT=", freePort(t)), fmt.Sprint("HEALTH_PROBE_PORT=", freePort(t)))

	manifest, err := os.ReadFile("testdata/kwok.yaml")
	if err != nil {
		t.Fatal(err)
	}
	i.Apply(t, string(manifest))
	v.Until("pods run", patience, running(v, "shop", 6))
	v.Until("buffers are kept", patience, func() string { return i.buffers(v) })
	if err := i.Client.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "brief"}}); err != nil {
		t.Fatal(err)
	}
	i.asks("shop", "db")
	i.deadline(v)
	i.drain(v)
	i.reboot(v)
	i.orphan(v)
	v.Until("it is said again that the budget of a pool allows nothing", patience, func() string { return i.repeated("held") })
	leader.Stop()
	i.patch(&v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "static"}}, `{"spec":{"replicas":0}}`)
	v.Until("the program has deleted the claims of a pool that is to have none", patience, func() string {
		if left := len(of(v, "static")); left > 0 {
			return fmt.Sprintf("%d claims are left", left)
		}
		return ""
	})
	i.scale("shop", 0)
	v.Until("only the nodes of buffers and of pools that stay are left", patience, func() string {
		if n := len(ours(v)); n > 4 {
			return fmt.Sprintf("%d nodes", n)
		}
		return ""
	})
	for _, pool := range []string{"work", "static", "held"} {
		i.remove("karpenter.sh/v1", "NodePool", pool)
	}
	v.Until("nodes are gone", patience, func() string { return left(v) })
	other.Stop()
	i.prove(pod.Spec.ServiceAccountName, "karpenter", "karpenter-core")
	i.remove("karpenter.kwok.sh/v1alpha1", "KWOKNodeClass", "default")
	i.uninstall()
}

// withoutStreams has the program read as clients do of API servers that cannot
// stream lists.
const withoutStreams = "KUBE_FEATURE_WatchListClient=false"

// ours are the nodes that the program has made.
func ours(v *harness.View) []corev1.Node {
	return slices.DeleteFunc(v.Nodes(), func(n corev1.Node) bool { return n.Labels[v1.NodePoolLabelKey] == "" })
}

// of returns the NodeClaims of a pool.
func of(v *harness.View, pool string) []v1.NodeClaim {
	return slices.DeleteFunc(v.Claims(), func(c v1.NodeClaim) bool { return c.Labels[v1.NodePoolLabelKey] != pool })
}

// left says what there is of them, and of NodeClaims.
func left(v *harness.View) string {
	if nodes, claims := len(ours(v)), len(v.Claims()); nodes+claims > 0 {
		return fmt.Sprintf("%d nodes and %d claims are left", nodes, claims)
	}
	return ""
}

func running(v *harness.View, namespace string, want int) func() string {
	return func() string {
		n := 0
		pods := v.Pods(namespace)
		for _, p := range pods {
			if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
				n++
			}
		}
		if n == want {
			return ""
		}
		return fmt.Sprintf("%d of %d pods run, want %d", n, len(pods), want)
	}
}

// buffers says which CapacityBuffer is not provisioned.
func (i *installation) buffers(v *harness.View) string {
	for _, name := range []string{"template", "share"} {
		b := v.Buffer("shop", name)
		if b == nil || !meta.IsStatusConditionTrue(b.Status.Conditions, "Provisioning") {
			return fmt.Sprintf("buffer %s: %+v", name, b)
		}
	}
	return ""
}

// repeated says whether no event about the pool was told twice: the second time
// changes the first.
func (i *installation) repeated(pool string) string {
	i.Helper()
	told := &corev1.EventList{}
	i.list(told)
	most := int32(0)
	for _, e := range told.Items {
		if e.InvolvedObject.Kind == "NodePool" && e.InvolvedObject.Name == pool {
			most = max(most, e.Count)
		}
	}
	if most > 1 {
		return ""
	}
	return fmt.Sprintf("an event was told %d times at most", most)
}

// asks has a user of the ClusterRole view, whose kubeconfig has an exec plugin, ask
// why a pod that runs is where it is, and a user without rights.
func (i *installation) asks(namespace, pod string) {
	i.Helper()
	for _, name := range []string{"viewer", "stranger"} {
		i.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
	}
	i.create(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "viewer-of-" + namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "viewer"}},
	})
	ask := func(account string, args ...string) (string, error) {
		config := harness.ExecKubeconfig(i.T, i.Cluster, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}})
		run := exec.CommandContext(i.Context(), "../../bin/karpenter", args...)
		run.Env = append(os.Environ(), "KUBECONFIG="+config)
		out, err := run.CombinedOutput()
		return string(out), err
	}
	var out string
	if !harness.Eventually(i.T, func(context.Context) bool {
		var err error
		out, err = ask("viewer", "explain", "pod", pod, "-n", namespace)
		return err == nil && strings.Contains(out, "pod "+namespace+"/"+pod+" needs no new node: it is bound to node ")
	}) {
		i.Errorf("explain: %s", out)
	}
	if out, err := ask("viewer", "plan"); err != nil || !strings.Contains(out, "$/MONTH") {
		i.Errorf("plan: %v\n%s", err, out)
	}
	for _, c := range []struct{ args, want string }{
		{"status", " ok"},
		{"top --once", "is proven"},
		{"savings --price m-2x-amd64-linux=0.1", "NODES"},
	} {
		// Offerings are published some seconds after the first nodes. Status fails when a check does, and
		// prices are known of no type of KWOK.
		var err error
		if !harness.Eventually(i.T, func(context.Context) bool {
			out, err = ask("viewer", strings.Fields(c.args)...)
			return !strings.Contains(out, "forbidden") && (c.args != "top --once" || err == nil) &&
				(strings.Contains(out, c.want) || strings.Contains(out, "no price is known"))
		}) {
			i.Errorf("%s: %v\n%s", c.args, err, out)
		}
	}
	for _, args := range []string{"plan", "top --once", "savings", "explain pods -A"} {
		if out, err := ask("stranger", strings.Fields(args)...); err == nil || !strings.Contains(out, "forbidden") || !strings.Contains(out, "--clusterrole=karpenter-viewer") {
			i.Errorf("%s: a stranger gets %v\n%s", args, err, out)
		}
	}
	if out, err := ask("stranger", "status"); err == nil && !strings.Contains(out, "skip") {
		i.Errorf("status: a stranger gets %v\n%s", err, out)
	}
}

// deadline ends the node of a pod that will not leave it: it is deleted when the
// node's deadline leaves it just its grace. Its volume is detached then.
func (i *installation) deadline(v *harness.View) {
	i.Helper()
	db := &corev1.Pod{}
	i.get(client.ObjectKey{Namespace: "shop", Name: "db"}, db)
	disk := "disk"
	attachment := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "disk"}}
	attachment.Spec = storagev1.VolumeAttachmentSpec{Attacher: "disks.example.com", NodeName: db.Spec.NodeName, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &disk}}
	i.create(attachment)
	i.end(v, db.Spec.NodeName)
	v.Until("the pod is deleted", patience, func() string {
		if slices.ContainsFunc(v.Pods("shop"), func(p corev1.Pod) bool { return p.Name == "db" }) {
			return "it is there"
		}
		return ""
	})
	i.remove("storage.k8s.io/v1", "VolumeAttachment", "disk")
	gone(v, db.Spec.NodeName)
}

// drain ends a node of the deployment's pods: they are evicted.
func (i *installation) drain(v *harness.View) {
	i.Helper()
	node := ""
	v.Until("a pod of the deployment runs", patience, func() string {
		for _, p := range v.Pods("shop") {
			if p.Labels["app"] == "web" && p.Status.Phase == corev1.PodRunning {
				node = p.Spec.NodeName
				return ""
			}
		}
		return "none does"
	})
	i.end(v, node)
	gone(v, node)
}

// end deletes the NodeClaim of a node.
func (i *installation) end(v *harness.View, node string) {
	i.Helper()
	for _, c := range v.Claims() {
		if c.Status.NodeName == node {
			i.remove("karpenter.sh/v1", "NodeClaim", c.Name)
		}
	}
}

func gone(v *harness.View, node string) {
	v.Until("node "+node+" is gone", patience, func() string {
		if slices.ContainsFunc(v.Nodes(), func(n corev1.Node) bool { return n.Name == node }) {
			return "it is there"
		}
		return ""
	})
}

// reboot asks for a reboot of a node, as a node monitor would, and waits for it.
func (i *installation) reboot(v *harness.View) {
	i.Helper()
	node := &corev1.Node{}
	v.Until("a node of the pool without a budget is ready", patience, func() string {
		for _, claim := range of(v, "work") {
			if err := i.Client.Get(i.Context(), client.ObjectKey{Name: claim.Status.NodeName}, node); err == nil && claim.DeletionTimestamp.IsZero() {
				return ""
			}
		}
		return "none is"
	})
	boot := node.Status.NodeInfo.BootID
	stored := node.DeepCopy()
	node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
		Type: "KWOKRebootRequired", Status: corev1.ConditionTrue, Reason: "Test", LastTransitionTime: metav1.Now(),
	})
	if err := i.Client.Status().Patch(i.Context(), node, client.MergeFrom(stored)); err != nil {
		i.Fatal(err)
	}
	v.Until("the node has rebooted", patience, func() string {
		if err := i.Client.Get(i.Context(), client.ObjectKeyFromObject(node), node); err != nil {
			return err.Error()
		}
		if node.Status.NodeInfo.BootID == boot {
			return fmt.Sprintf("node %s has not", node.Name)
		}
		return ""
	})
}

// orphan removes the NodeClaim of the static pool by force, as people do: its
// machine is found and ended, and the pool gets another node.
func (i *installation) orphan(v *harness.View) {
	i.Helper()
	claim := i.static(v, "")
	i.patch(&claim, `{"metadata":{"finalizers":null}}`)
	i.remove("karpenter.sh/v1", "NodeClaim", claim.Name)
	i.patch(&claim, `{"metadata":{"finalizers":null}}`)
	gone(v, claim.Status.NodeName) // with its instance
	i.static(v, claim.Name)
}

// static waits for the NodeClaim of the static pool that has a node and another
// name than the one given.
func (i *installation) static(v *harness.View, not string) (claim v1.NodeClaim) {
	i.Helper()
	v.Until("the static pool has its node", patience, func() string {
		for _, claim = range of(v, "static") {
			if claim.Name != not && claim.Status.NodeName != "" {
				return ""
			}
		}
		return "it has none"
	})
	return claim
}

func (i *installation) create(o client.Object) {
	i.Helper()
	if err := i.Client.Create(i.Context(), o); err != nil {
		i.Fatal(err)
	}
}

// patch merges into an object, if it is there.
func (i *installation) patch(o client.Object, merge string) {
	i.Helper()
	if err := i.Client.Patch(i.Context(), o, client.RawPatch("application/merge-patch+json", []byte(merge))); client.IgnoreNotFound(err) != nil {
		i.Fatal(err)
	}
}
