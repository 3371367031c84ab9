// SPDX-License-Identifier: Apache-2.0

package observability

import (
	"os"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karpenter/e2e/harness"
)

var shared = harness.NewShared(harness.Options{Kubelets: true, Args: []string{"--pod-stop-delay=1s"}})

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }

const noLeader = "KarpenterNoLeader"

// situation is one that wakes someone.
type situation struct {
	alerts []string
	begin  func(*place)
	// end makes the alerts stop. Nil is for those that look back for longer than
	// this test lasts, or to the end.
	end func(*place)
}

// shorter says what stands in the rehearsal for what takes hours: text of an
// expression, and its replacement. The expressions of all other alerts are those
// of the file.
func shorter() map[string][2]string {
	return map[string][2]string{
		"KarpenterPodsWaiting":                {"> 900", "> 5"},
		"KarpenterNodeClaimsStuckTerminating": {"> 3600", "> 5"},
		"KarpenterStateNotSynced":             {"> 300", "> 5"},
		"KarpenterCostRises":                  {"[1d] offset 1h", "[10m] offset 5s"},
	}
}

// unseen are the alerts that no situation of this test brings about, and why, and
// what of their expressions must have series all the same.
func unseen() map[string][2]string {
	return map[string][2]string{
		"KarpenterWatchDown":         {"a permission would have to be taken away from an administrator; kube/manager shows a watch that is refused", "karpenter_cluster_state_watch_down_time_seconds"},
		"KarpenterOptionalWatchDown": {"the roles of this chart allow every kind; e2e/helm installs an older role", "karpenter_cluster_state_watch_down_time_seconds"},
		"KarpenterCatalogueDoubted":  {"EC2 is asked for instance types twice a day, and it takes two answers to doubt one", "karpenter_cloudprovider_instance_types_doubted"},
	}
}

func situations() []situation {
	stray := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "stray"},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{corev1.LabelInstanceTypeStable: "none"},
			Containers:   []corev1.Container{{Name: "c", Image: "c"}},
		},
	}
	var idler *harness.Controller
	return []situation{
		{[]string{"KarpenterPodsWithoutPlace"}, func(p *place) { p.create(stray) }, func(p *place) { p.remove(stray) }},
		{[]string{"KarpenterNodeClaimsStuckTerminating"}, func(p *place) {
			p.budget(0)
			p.remove(p.claim("web"))
		}, func(p *place) { p.budget(1) }},
		{[]string{"KarpenterDriftBlockedByBudget"}, func(p *place) {
			p.patch(p.view.Pool("frozen"), `{"spec":{"template":{"metadata":{"labels":{"edition":"second"}}}}}`)
		}, nil},
		{[]string{"KarpenterRolloutHalted"}, func(p *place) { p.mistrust("frozen") }, func(p *place) {
			p.patch(p.view.Pool("frozen"), `{"spec":{"template":{"metadata":{"labels":{"edition":"third"}}}}}`)
		}},
		{[]string{"KarpenterPodsWaiting", "KarpenterLaunchFailures"}, func(p *place) {
			p.fate("deny?action=ec2:CreateFleet")
			p.scale("sale", 6)
		}, nil},
		{[]string{"KarpenterCostRises"}, func(p *place) {
			p.fate("stock?type=&zone=us-east-1a&capacity-type=on-demand&left=0")
			p.fate("allow?action=ec2:CreateFleet")
			p.watch.untilNone(`ALERTS{rehearsal="yes", alertname="KarpenterPodsWaiting"}`)
		}, func(p *place) { p.scale("sale", 0) }},
		{[]string{"KarpenterInterruptionsLate"}, func(p *place) { p.announceLate(60, 3*time.Minute) }, nil},
		{[]string{"KarpenterInterruptionQueueFails"}, func(p *place) { p.fate("deny?action=sqs:ReceiveMessage") }, nil},
		{[]string{"KarpenterStateNotSynced"}, func(p *place) { idler = p.idle() }, func(*place) { idler.Kill() }},
		{[]string{noLeader}, func(p *place) { p.program.Kill() }, nil},
	}
}

// TestAlerts runs a cluster that is well, and shows that no alert has anything to
// say; and brings about each situation that alerts are for, and shows that they
// tell. The dashboard must have had something to show in the end.
func TestAlerts(t *testing.T) {
	p := open(t)
	path, names := rehearsal(t, shorter())
	p.watch = observe(t, path, p.metrics, p.idler)
	began := p.watch.until(`karpenter_build_info`)[0].Values[0].at.Add(2 * time.Second) // the rules were asked after that
	p.watch.until(`count_over_time(karpenter_build_info[10m]) > 15`)
	for _, s := range p.watch.ask(`ALERTS{alertname!="`+noLeader+`"} or ALERTS{alertstate="firing"}`, began, time.Now()) {
		t.Errorf("in a cluster that is well: %v", s)
	}
	lint(t, p.metrics)
	for _, s := range situations() {
		p.rehearse(s, began)
		names = slices.DeleteFunc(names, func(n string) bool { return slices.Contains(s.alerts, n) })
	}
	for name, x := range unseen() {
		if !slices.Contains(names, name) {
			t.Errorf("%s is rehearsed, or is no alert", name)
		}
		if len(p.watch.ask(x[1], began, time.Now())) == 0 {
			t.Errorf("%s reads %s, which has no series", name, x[1])
		}
		names = slices.DeleteFunc(names, func(n string) bool { return n == name })
	}
	if len(names) > 0 {
		t.Errorf("no situation for %v", names)
	}
	show(p.watch, began, time.Now())
}

// rehearse brings a situation about, sees that its alerts tell and did not before,
// and that they stop when it ends.
func (p *place) rehearse(s situation, began time.Time) {
	p.Helper()
	for _, name := range s.alerts {
		if active := p.watch.now(`ALERTS{rehearsal="yes", alertstate="firing", alertname="` + name + `"}`); len(active) > 0 {
			p.Errorf("%s before its situation: %v", name, active)
		}
	}
	s.begin(p)
	for _, name := range s.alerts {
		firing := p.watch.until(`ALERTS{rehearsal="yes", alertstate="firing", alertname="` + name + `"}`)
		p.Logf("%4.0f s  %v", time.Since(began).Seconds(), firing)
		if _, ok := shorter()[name]; !ok {
			p.watch.until(`ALERTS{rehearsal="", alertname="` + name + `"}`)
		}
	}
	if s.end == nil {
		return
	}
	s.end(p)
	for _, name := range s.alerts {
		p.watch.untilNone(`ALERTS{rehearsal="yes", alertname="` + name + `"}`)
	}
}
