// SPDX-License-Identifier: Apache-2.0

package observability_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
)

// alerts returns the expressions of the alerts, each in one line.
func alerts(t *testing.T) map[string]string {
	t.Helper()
	groups, errs := rulefmt.ParseFile("alerts.yaml", false)
	if len(errs) > 0 {
		t.Fatalf("Prometheus does not load alerts.yaml: %v", errs)
	}
	out := map[string]string{}
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			if r.Annotations["summary"] == "" || r.Annotations["description"] == "" || r.Labels["severity"] == "" {
				t.Errorf("%s does not say what is wrong, what to do, or how bad it is", r.Alert)
			}
			out[r.Alert] = strings.Join(strings.Fields(r.Expr), " ")
		}
	}
	return out
}

// queries returns the expressions of the dashboard as Grafana would send them.
func queries(t *testing.T) map[string]string {
	t.Helper()
	out := panels(t)
	for name, expr := range out {
		out[name] = strings.ReplaceAll(expr, "$__rate_interval", "5m")
	}
	return out
}

// panels returns the expressions of the dashboard, by panel.
func panels(t *testing.T) map[string]string {
	t.Helper()
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ RefID, Expr string }
		}
	}
	text, err := os.ReadFile("dashboard.json")
	if err == nil {
		err = json.Unmarshal(text, &dashboard)
	}
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			out[p.Title+" "+target.RefID] = target.Expr
		}
	}
	if len(out) < 10 {
		t.Fatalf("only %d queries: dashboard.json is not understood", len(out))
	}
	return out
}

// served returns the metrics of docs/metrics.md with their labels.
func served(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{
		"leader_election_master_status": "name", // controller-runtime's
		"process_cpu_seconds_total":     "",
		"process_resident_memory_bytes": "",
		"ALERTS":                        "alertname, alertstate", // of Prometheus itself
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z0-9_]+)` \\| ([a-z]+) \\| ([^|]*) \\|").FindAllStringSubmatch(string(text), -1) {
		out[m[1]] = m[3]
		if m[2] == "histogram" {
			out[m[1]+"_bucket"] = m[3] + ", le"
		}
	}
	return out
}

// TestMetricsAreServed shows that everything alerts and dashboard read is a
// metric of ours, and has the labels it is chosen by.
func TestMetricsAreServed(t *testing.T) {
	have := served(t)
	all := queries(t)
	for name, expr := range alerts(t) {
		all[name] = expr
	}
	for name, expr := range all {
		tree, err := parser.ParseExpr(expr)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		parser.Inspect(tree, func(node parser.Node, _ []parser.Node) error {
			v, ok := node.(*parser.VectorSelector)
			if !ok {
				return nil
			}
			known, ok := have[v.Name]
			if !ok {
				t.Errorf("%s reads %s, which is not served", name, v.Name)
			}
			for _, m := range v.LabelMatchers {
				if m.Name != labels.MetricName && !strings.Contains(", "+known+",", ", "+m.Name+",") {
					t.Errorf("%s chooses %s by %s, which it has not", name, v.Name, m.Name)
				}
			}
			return nil
		})
	}
}

// TestAlerts runs each alert's expression in Prometheus' engine over series
// that must wake somebody, and over series that must not.
func TestAlerts(t *testing.T) {
	tests := map[string]struct {
		load, want string // want is the alert's series at 30m
		quiet      string
	}{
		"KarpenterPodsWithoutPlace": {
			`karpenter_scheduler_unschedulable_pods_count{controller="provisioner"} 3x60`, `{controller="provisioner"} 3`,
			`karpenter_scheduler_unschedulable_pods_count{controller="provisioner"} 0x60`},
		"KarpenterPodsWaiting": {
			`karpenter_pods_provisioning_unbound_time_seconds{namespace="a",name="b"} 0+60x60`, `{namespace="a"} 1`,
			`karpenter_pods_provisioning_unbound_time_seconds{namespace="a",name="b"} 30x60`},
		"KarpenterLaunchFailures": {
			`karpenter_cloudprovider_errors_total{provider="aws",error="E",method="Create"} 0+1x60`, `{provider="aws",error="E"} 15`,
			`karpenter_cloudprovider_errors_total{provider="aws",error="E",method="Get"} 0+1x60`},
		"KarpenterNodeClaimsStuckTerminating": {
			`operator_nodeclaim_termination_current_time_seconds{karpenter_sh_nodepool="p",name="c"} 3000+60x60`, `{karpenter_sh_nodepool="p"} 1`,
			`operator_nodeclaim_termination_current_time_seconds{karpenter_sh_nodepool="p",name="c"} 0+60x60`},
		"KarpenterDriftBlockedByBudget": {
			"karpenter_nodepools_drifted_nodes{nodepool=\"p\"} 2x60\n  karpenter_nodepools_allowed_disruptions{nodepool=\"p\",reason=\"drifted\"} 0x60", `{nodepool="p"} 2`,
			"karpenter_nodepools_drifted_nodes{nodepool=\"p\"} 2x60\n  karpenter_nodepools_allowed_disruptions{nodepool=\"p\",reason=\"drifted\"} 1x60"},
		"KarpenterRolloutHalted": {
			`karpenter_nodepools_rollout_halted{nodepool="p"} 1x60`, `{nodepool="p"} 1`,
			`karpenter_nodepools_rollout_halted{nodepool="p"} 0x60`},
		"KarpenterCostRises": {
			`karpenter_nodepools_cost_total{nodepool="p"} 10x1440 20x60`, `{} 20`,
			`karpenter_nodepools_cost_total{nodepool="p"} 10x1440 12x60`},
		"KarpenterInterruptionQueueFails": {
			`aws_sdk_go_request_total{service="SQS",action="ReceiveMessage",code="403"} 0+1x60`, `{action="ReceiveMessage",code="403"} 15`,
			`aws_sdk_go_request_total{service="SQS",action="ReceiveMessage",code="200"} 0+1x60`},
		"KarpenterInterruptionsLate": {
			"karpenter_interruption_message_queue_duration_seconds_bucket{le=\"60\"} 0x60\n  karpenter_interruption_message_queue_duration_seconds_bucket{le=\"120\"} 0+1x60\n  karpenter_interruption_message_queue_duration_seconds_bucket{le=\"+Inf\"} 0+1x60", `{} 114`,
			"karpenter_interruption_message_queue_duration_seconds_bucket{le=\"60\"} 0+1x60\n  karpenter_interruption_message_queue_duration_seconds_bucket{le=\"+Inf\"} 0+1x60"},
		"KarpenterCatalogueDoubted": {
			`karpenter_cloudprovider_instance_types_doubted{of="type"} 4x60`, `{of="type"} 4`,
			`karpenter_cloudprovider_instance_types_doubted{of="type"} 0x60`},
		"KarpenterStateNotSynced": {
			`karpenter_cluster_state_unsynced_time_seconds 0+60x60`, `{} 1800`,
			`karpenter_cluster_state_unsynced_time_seconds 0x60`},
		"KarpenterWatchDown": {
			`karpenter_cluster_state_watch_down_time_seconds{kind="NodePool",optional="false",pod="a"} 0+60x60`, `{kind="NodePool"} 1800`,
			`karpenter_cluster_state_watch_down_time_seconds{kind="PodGroup",optional="true",pod="a"} 0+60x60`},
		"KarpenterOptionalWatchDown": {
			`karpenter_cluster_state_watch_down_time_seconds{kind="PodGroup",optional="true",pod="a"} 0+60x60`, `{kind="PodGroup"} 1800`,
			`karpenter_cluster_state_watch_down_time_seconds{kind="NodePool",optional="false",pod="a"} 0+60x60`},
		"KarpenterNoLeader": {
			"karpenter_build_info 1x60\n  leader_election_master_status{name=\"l\"} 0x60", `{} 0`,
			"karpenter_build_info 1x60\n  leader_election_master_status{name=\"l\",pod=\"a\"} 0x60\n  leader_election_master_status{name=\"l\",pod=\"b\"} 1x60"},
	}
	engine := promqltest.NewTestEngine(t, false, 0, 100_000)
	for name, expr := range alerts(t) {
		test, ok := tests[name]
		if !ok {
			t.Errorf("%s has no test", name)
			continue
		}
		at := 30 * time.Minute
		if name == "KarpenterCostRises" {
			at = 24*time.Hour + 30*time.Minute
		}
		eval := "eval instant at " + at.String() + " " + expr + "\n"
		eval = strings.Replace(eval, "0m0s", "0m", 1)
		promqltest.RunTest(t, "load 1m\n  "+test.load+"\n\n"+eval+"  "+test.want+"\n\nclear\nload 1m\n  "+test.quiet+"\n\n"+eval, engine)
	}
}

// TestDocument shows that docs/dashboard.md is of this dashboard.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile("../../docs/dashboard.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, expr := range panels(t) {
		if !strings.Contains(string(text), "`"+strings.ReplaceAll(expr, "|", `\|`)+"`") {
			t.Errorf("docs/dashboard.md has not got the query of %s: go test ./e2e/observability -args -update", name)
		}
	}
}
