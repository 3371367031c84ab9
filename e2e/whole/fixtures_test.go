// SPDX-License-Identifier: Apache-2.0

package whole

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "karpenter/api/v1"
	"karpenter/e2e/harness"
)

var shared = harness.NewShared(harness.Options{Kubelets: true, Args: []string{"--pod-stop-delay=2s", "--job-duration=2s"}})

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }

// patience is how long anything may take on a busy machine.
const patience = 5 * time.Minute

// fixture is what one test has made in the shared cluster.
type fixture struct {
	*testing.T
	*harness.Cluster
	name string // of the NodeClass, the NodePool and the namespace
}

// setUp makes a namespace and a NodeClass. What a test makes stays in the
// cluster until the last test ends: NodePools of others are part of the weather.
func setUp(t *testing.T, bootDelay time.Duration) *fixture {
	f := &fixture{T: t, Cluster: shared.Cluster(t), name: strings.ToLower(strings.TrimPrefix(t.Name(), "Test"))}
	t.Cleanup(func() {
		if t.Failed() {
			f.Log(f.story())
		}
	})
	f.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.name}})
	f.apply(fmt.Sprintf(`
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: %s}
spec: {nodeRegistrationDelay: %s}
`, f.name, bootDelay))
	return f
}

func (f *fixture) create(o client.Object) {
	f.Helper()
	if err := f.Client.Create(f.Context(), o); err != nil {
		f.Fatal(err)
	}
}

// pool makes a NodePool of the test's NodeClass for on-demand amd64 instances.
// The edit, if any, changes it first.
func (f *fixture) pool(edit func(*v1.NodePool)) *v1.NodePool {
	f.Helper()
	p := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: f.name}}
	in := func(key string, values ...string) v1.NodeSelectorRequirementWithMinValues {
		return v1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
	}
	p.Spec.Template.Spec = v1.NodeClaimTemplateSpec{
		NodeClassRef: &v1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: f.name},
		Requirements: []v1.NodeSelectorRequirementWithMinValues{
			in("karpenter.sh/capacity-type", "on-demand"), in("kubernetes.io/arch", "amd64"), in("kubernetes.io/os", "linux")},
	}
	p.Spec.Template.Labels = map[string]string{"test": f.name}
	p.Spec.Disruption.ConsolidateAfter = v1.MustParseNillableDuration("0s")
	p.Spec.Disruption.Budgets = []v1.Budget{{Nodes: "100%"}}
	if edit != nil {
		edit(p)
	}
	f.create(p)
	return p
}

// pod makes a pod that goes to the test's pool only. Nothing would make another in its
// place: if Kubernetes' taint eviction sees late that a node has registered, it deletes
// pods there that do not tolerate the taint the node had before.
func (f *fixture) pod(name string, edit func(*corev1.PodSpec)) {
	f.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: f.name, Name: name}}
	p.Spec.NodeSelector = map[string]string{"test": f.name}
	p.Spec.Tolerations = []corev1.Toleration{{Key: v1.UnregisteredTaintKey, Operator: corev1.TolerationOpExists}}
	p.Spec.Containers = []corev1.Container{{Name: "c", Image: "c", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{"cpu": quantity("1")}}}}
	edit(&p.Spec)
	f.create(p)
}

// deployment makes a Deployment whose pods go to the test's pool only.
func (f *fixture) deployment(replicas int32, cpu, memory string) *appsv1.Deployment {
	f.Helper()
	labels := map[string]string{"app": "web"}
	grace := int64(5)
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: f.name, Name: "web"}}
	d.Spec = appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"test": f.name}, TerminationGracePeriodSeconds: &grace,
			Containers: []corev1.Container{{Name: "web", Image: "web", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory)}}}}}},
	}
	f.create(d)
	return d
}

func (f *fixture) scale(d *appsv1.Deployment, replicas int32) {
	f.Helper()
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
	if err := f.Client.Patch(f.Context(), d, patch); err != nil {
		f.Fatal(err)
	}
}

// story tells how the test's pods and nodes are, and what happened to them, for
// whoever reads a failure.
func (f *fixture) story() string {
	var out strings.Builder
	list := func(l client.ObjectList, options ...client.ListOption) {
		if err := f.Client.List(context.Background(), l, options...); err != nil {
			fmt.Fprintln(&out, err)
		}
	}
	var nodes corev1.NodeList
	list(&nodes, client.MatchingLabels{v1.NodePoolLabelKey: f.name})
	for _, n := range nodes.Items {
		fmt.Fprintf(&out, "node %s in %s, taints %v, deleted %v\n", n.Name, n.Labels[corev1.LabelTopologyZone], n.Spec.Taints, n.DeletionTimestamp)
	}
	var pods corev1.PodList
	list(&pods, client.InNamespace(f.name))
	for _, p := range pods.Items {
		fmt.Fprintf(&out, "pod %s is %s on %q, deleted %v\n", p.Name, p.Status.Phase, p.Spec.NodeName, p.DeletionTimestamp)
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodScheduled {
				fmt.Fprintf(&out, "  scheduled %s since %s: %s\n", c.Status, c.LastTransitionTime.Format(time.TimeOnly), c.Message)
			}
		}
	}
	var events corev1.EventList
	list(&events)
	for _, e := range events.Items {
		if e.Namespace == f.name || strings.HasPrefix(e.InvolvedObject.Name, f.name) {
			fmt.Fprintf(&out, "%s ×%d %s %s: %s\n", e.CreationTimestamp.Format(time.TimeOnly), max(1, e.Count), e.InvolvedObject.Name, e.Reason, e.Message)
		}
	}
	return out.String()
}

// running says what keeps n pods of the test from running.
func (f *fixture) running(v *harness.View, n int) func() string {
	return func() string {
		phases := map[corev1.PodPhase]int{}
		pods := v.Pods(f.name)
		for _, p := range pods {
			if p.DeletionTimestamp == nil {
				phases[p.Status.Phase]++
			}
		}
		if phases[corev1.PodRunning] == n && len(pods) == n {
			return ""
		}
		return fmt.Sprintf("%d pods, by phase %v; want %d running", len(pods), phases, n)
	}
}

// nodes returns the nodes of the test's pool.
func (f *fixture) nodes(v *harness.View) []corev1.Node {
	return slices.DeleteFunc(v.Nodes(), func(n corev1.Node) bool { return n.Labels[v1.NodePoolLabelKey] != f.name })
}

// claims returns the NodeClaims of the test's pool.
func (f *fixture) claims(v *harness.View) []v1.NodeClaim {
	return slices.DeleteFunc(v.Claims(), func(c v1.NodeClaim) bool { return c.Labels[v1.NodePoolLabelKey] != f.name })
}

// empty says what the test's pool still has.
func (f *fixture) empty(v *harness.View) func() string {
	return func() string {
		if nodes, claims := len(f.nodes(v)), len(f.claims(v)); nodes+claims > 0 {
			return fmt.Sprintf("%d nodes and %d claims are left", nodes, claims)
		}
		return ""
	}
}

// oneToOne fails the test when a claim has two nodes, or a node no claim.
func (f *fixture) oneToOne(v *harness.View) {
	nodes := map[string]string{}
	for _, n := range f.nodes(v) {
		if other, double := nodes[n.Spec.ProviderID]; double {
			f.Errorf("nodes %s and %s are the same machine", other, n.Name)
		}
		nodes[n.Spec.ProviderID] = n.Name
	}
	claims := map[string]string{}
	for _, c := range f.claims(v) {
		if id := c.Status.ProviderID; id != "" {
			if other, double := claims[id]; double {
				f.Errorf("claims %s and %s have the same machine", other, c.Name)
			}
			claims[id] = c.Name
		}
	}
}

// file writes text where the controller can read it.
func (f *fixture) file(name, text string) string {
	path := filepath.Join(f.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		f.Fatal(err)
	}
	return path
}
