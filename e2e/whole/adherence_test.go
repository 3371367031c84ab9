// SPDX-License-Identifier: Apache-2.0

package whole

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "karpenter/api/v1"
	"karpenter/e2e/harness"
)

// TestPlannedIsBound plans pods of many sizes in one pass and has them run
// where they were planned. On a busy machine the scheduler may look at a pod in
// the moment in which its node is not named again yet; without naming nodes, it
// is one pod in eight that happens to go where it was planned.
func TestPlannedIsBound(t *testing.T) {
	const n, least = 60, 45
	a := adherence(t, n, "true")
	t.Logf("%d as planned, %d elsewhere, %d claims, %d beyond the plan", a.asPlanned, a.elsewhere, a.claims, a.beyond)
	for metric, count := range a.measured {
		if count != n {
			t.Errorf("%s counts %d pods, want %d", metric, count, n)
		}
	}
	if a.asPlanned < least || a.asPlanned+a.elsewhere != n {
		t.Errorf("%d pods were bound as planned and %d elsewhere, want at least %d of %d as planned", a.asPlanned, a.elsewhere, least, n)
	}
}

// TestMeasureAdherenceOn and TestMeasureAdherenceOff print what docs/benchmarks.md
// says about plan adherence. ADHERENCE_PODS is how many pods to measure with.
func TestMeasureAdherenceOn(t *testing.T)  { measureAdherence(t, "true") }
func TestMeasureAdherenceOff(t *testing.T) { measureAdherence(t, "false") }

func measureAdherence(t *testing.T, nominate string) {
	n, err := strconv.Atoi(os.Getenv("ADHERENCE_PODS"))
	if err != nil {
		t.Skip("ADHERENCE_PODS is not set")
	}
	a := adherence(t, n, nominate)
	t.Logf("NOMINATE_PODS=%s pods=%d as-planned=%d elsewhere=%d share=%.1f%% plans=%d claims=%d beyond=%d running-after=%v",
		nominate, n, a.asPlanned, a.elsewhere, 100*float64(a.asPlanned)/float64(n), a.planned, a.claims, a.beyond, a.took.Round(time.Second))
}

// outcome is what became of one plan for many pods.
type outcome struct {
	planned, asPlanned, elsewhere int // of metrics
	claims                        int // created
	beyond                        int // of these, by later passes than the one that planned all pods
	took                          time.Duration
	measured                      map[string]int // pods, by metric
}

// adherence has the scheduler find no node for n pods of 20 Deployments, lets
// the controller plan them all at once, and waits until they run.
func adherence(t *testing.T, n int, nominate string) outcome {
	f := setUp(t, 2*time.Second)
	f.pool(func(p *v1.NodePool) { p.Spec.Disruption.ConsolidateAfter = v1.MustParseNillableDuration("Never") })
	f.mixed(n, 20)
	v := f.Watch(t, f.oneToOne)
	v.Until("no node is found", patience, func() string {
		refused := 0
		for _, p := range v.Pods(f.name) {
			for _, c := range p.Status.Conditions {
				if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable {
					refused++
				}
			}
		}
		if refused == n {
			return ""
		}
		return fmt.Sprintf("%d of %d pods are unschedulable", refused, n)
	})
	port := harness.FreePort(t)
	started := time.Now()
	k := f.StartController(t, "NOMINATE_PODS="+nominate, fmt.Sprint("METRICS_PORT=", port))
	v.Until("pods run", 5*patience, f.running(v, n))
	out := outcome{took: time.Since(started), claims: len(f.claims(v)), beyond: len(f.claims(v)) - firstPlan(t, k)}
	v.Until("all bindings are counted", patience, func() string {
		page := harness.Page(t, port, "/metrics")
		out.planned = counter(t, page, "karpenter_pods_planned_total")
		out.asPlanned = counter(t, page, "karpenter_pods_bound_as_planned_total")
		out.elsewhere = counter(t, page, "karpenter_pods_bound_elsewhere_total")
		count := func(name string) int { return counter(t, page, "karpenter_pods_"+name+"_duration_seconds_count") }
		out.measured = map[string]int{}
		for _, name := range []string{"scheduling_decision", "bound", "provisioning_bound"} {
			out.measured[name] = count(name)
		}
		state := len(regexp.MustCompile(`(?m)^karpenter_pods_state\{.*nodepool="`+f.name+`".*ready="true"`).FindAllString(page, -1))
		started, ready := min(count("provisioning_startup"), count("startup"), state), readyPods(v.Pods(f.name))
		if out.asPlanned+out.elsewhere >= n && slices.Min(slices.Collect(maps.Values(out.measured))) >= n && ready > 0 && started >= ready {
			return ""
		}
		return fmt.Sprintf("%d and %d of %d, %v, %d started of %d", out.asPlanned, out.elsewhere, n, out.measured, started, ready)
	})
	return out
}

// readyPods counts the pods that are ready.
func readyPods(pods []corev1.Pod) int {
	n := 0
	for _, p := range pods {
		if slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		}) {
			n++
		}
	}
	return n
}

// firstPlan returns how many node claims the pass with the first ones has
// planned.
func firstPlan(t *testing.T, k *harness.Controller) int {
	for line := range strings.Lines(k.Log()) {
		if m := regexp.MustCompile(`"planned pods".*"node-claims":(\d+)`).FindStringSubmatch(line); m != nil && m[1] != "0" {
			claims, err := strconv.Atoi(m[1])
			if err != nil {
				t.Fatal(err)
			}
			return claims
		}
	}
	t.Fatalf("no plan in the log:\n%s", k.Log())
	return 0
}

func counter(t *testing.T, page, name string) int {
	m := regexp.MustCompile(`(?m)^` + name + `(?:\{[^}]*\})? (\S+)$`).FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("the metrics have no %s", name)
	}
	value, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return int(value)
}

// mixed makes n pods in Deployments of different sizes, for the test's pool
// only.
func (f *fixture) mixed(n, deployments int) {
	grace := int64(1)
	for i := range deployments {
		replicas := int32((n + i) / deployments)
		name := fmt.Sprint("app-", i)
		labels := map[string]string{"app": name}
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: f.name, Name: name}}
		d.Spec = appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				NodeSelector: map[string]string{"test": f.name}, TerminationGracePeriodSeconds: &grace,
				Containers: []corev1.Container{{Name: "app", Image: "app", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					"cpu":    *resource.NewMilliQuantity(int64(100+i*i*13%1900), resource.DecimalSI),
					"memory": *resource.NewQuantity(int64(128+i*i*i*7%5900)<<20, resource.BinarySI)}}}}}},
		}
		f.create(d)
	}
}
