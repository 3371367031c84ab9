// SPDX-License-Identifier: Apache-2.0

package whole

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/e2e/harness"
)

// workload makes a Deployment of small pods with the label app=name. One node
// can run all pods of a test: the scheduler fills the node that comes first, and
// a pod that must follow another into a full node waits forever.
func (f *fixture) workload(name string, replicas int32, edit func(*corev1.PodSpec)) {
	f.Helper()
	labels := map[string]string{"app": name}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: f.name, Name: name}}
	d.Spec = appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}}
	d.Spec.Template.Labels = labels
	d.Spec.Template.Spec = corev1.PodSpec{
		NodeSelector: map[string]string{"test": f.name},
		Containers: []corev1.Container{{Name: "c", Image: "c", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": quantity("50m"), "memory": quantity("64Mi")},
		}}},
	}
	edit(&d.Spec.Template.Spec)
	f.create(d)
}

func to(app string) corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}
}

// TestPeers runs pods that are spread over zones by revision, that keep apart,
// that follow others into a node, and that want one port: the nodes that are
// launched at once are all that the scheduler needs.
func TestPeers(t *testing.T) {
	f := setUp(t, 0)
	if err := f.Client.Patch(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.name}},
		client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"team":"peers"}}}`))); err != nil {
		t.Fatal(err)
	}
	f.pool(nil)
	v := f.Watch(t, f.oneToOne)
	f.workload("spread", 6, func(s *corev1.PodSpec) {
		s.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector:  &metav1.LabelSelector{MatchLabels: map[string]string{"app": "spread"}},
			MatchLabelKeys: []string{"pod-template-hash"},
		}}
	})
	// The scheduler does not try again when a pod comes that affinity by a
	// namespaceSelector waits for (1.36), so that is for anti-affinity here.
	apart := to("apart")
	apart.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "peers"}}
	f.workload("apart", 3, func(s *corev1.PodSpec) {
		s.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{apart},
		}}
	})
	f.workload("anchor", 1, func(*corev1.PodSpec) {})
	f.workload("follower", 2, func(s *corev1.PodSpec) {
		s.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{to("anchor")},
		}}
	})
	f.workload("port", 2, func(s *corev1.PodSpec) {
		s.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 8080}}
	})
	f.StartController(t)
	v.Until("all run", patience, f.running(v, 14))
	if got := f.hosts(v, "apart"); len(got) != 3 {
		t.Errorf("pods that keep apart run on %v", got)
	}
	if got := f.hosts(v, "port"); len(got) != 2 {
		t.Errorf("pods that want one port run on %v", got)
	}
	both := f.hosts(v, "anchor")
	maps.Copy(both, f.hosts(v, "follower"))
	if len(both) != 1 {
		t.Errorf("anchor and followers run on %v", both)
	}
	zones := f.zones(v, "spread")
	counts := slices.Sorted(maps.Values(zones))
	if len(zones) < 2 || counts[len(counts)-1]-counts[0] > 1 {
		t.Errorf("pods that are spread run in %v", zones)
	}
	if n := len(f.claims(v)); n > 6 {
		t.Errorf("%d nodes were bought for what six can run", n)
	}
}

// spec 20/107: pods without constraints of their own get those of the
// configuration. The scheduler here knows nothing of it and would have been
// content with one node.
func TestDefaultSpread(t *testing.T) {
	f := setUp(t, 0)
	f.pool(nil)
	v := f.Watch(t, f.oneToOne)
	f.StartController(t, "SCHEDULER_CONFIG={podTopologySpread: {defaultConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule}]}}")
	f.workload("web", 3, func(*corev1.PodSpec) {})
	v.Until("all run", patience, f.running(v, 3))
	zones := map[string]bool{}
	for _, n := range f.nodes(v) {
		zones[n.Labels[corev1.LabelTopologyZone]] = true
	}
	if len(zones) != 3 {
		t.Errorf("nodes are in %v, want three zones", zones)
	}
}

// hosts returns the nodes on which pods of the app run.
func (f *fixture) hosts(v *harness.View, app string) map[string]int {
	out := map[string]int{}
	for _, p := range v.Pods(f.name) {
		if p.Labels["app"] == app {
			out[p.Spec.NodeName]++
		}
	}
	return out
}

// zones counts the pods of the app by zone.
func (f *fixture) zones(v *harness.View, app string) map[string]int {
	of := map[string]string{}
	for _, n := range f.nodes(v) {
		of[n.Name] = n.Labels[corev1.LabelTopologyZone]
	}
	out := map[string]int{}
	for host, pods := range f.hosts(v, app) {
		out[of[host]] += pods
	}
	if _, unknown := out[""]; unknown {
		f.Error(fmt.Sprint("pods of ", app, " run in no zone"))
	}
	return out
}
