// SPDX-License-Identifier: Apache-2.0

package observability

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	update = flag.Bool("update", false, "write docs/dashboard.md")
	record = flag.String("record", "", "write what the dashboard shows to this file: by expression, the labels of each series and its [seconds, value]")
)

// panel is what of a panel of a dashboard is asked of Prometheus.
type panel struct {
	Title, Description, Type string
	FieldConfig              struct{ Defaults struct{ Unit string } }
	Targets                  []struct{ Expr, LegendFormat string }
	Panels                   []panel // of a row that is shut
}

// blank are the expressions of the dashboard that show nothing in this test, and why.
func blank() map[string]string { return map[string]string{} }

// panels returns those of the dashboard, without its rows.
func panels(t *testing.T) []panel {
	t.Helper()
	text, err := os.ReadFile("../../deploy/observability/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var all panel
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	var out []panel
	for _, p := range all.Panels {
		out = append(append(out, p.Panels...), p)
	}
	return slices.DeleteFunc(out, func(p panel) bool { return p.Type == "row" })
}

// show asks Prometheus what the dashboard asks it, over the time of the test, and
// writes down what it answers.
func show(o *observer, from, to time.Time) {
	o.Helper()
	table, all, n := &strings.Builder{}, map[string][]curve{}, 0
	for _, p := range panels(o.T) {
		for _, target := range p.Targets {
			n++
			answer := o.ask(strings.ReplaceAll(target.Expr, "$__rate_interval", "15s"), from, to)
			all[target.Expr] = points(answer)
			shown := shownBy(answer, target.LegendFormat)
			why, known := blank()[target.Expr]
			switch {
			case len(shown) == 0 && !known:
				o.Errorf("panel %q shows nothing of %s", p.Title, target.Expr)
			case len(shown) > 0 && known:
				o.Errorf("panel %q shows %v, though %s", p.Title, shown, why)
			case known:
				shown = []string{"nothing: " + why}
			}
			fmt.Fprintf(table, "| %s | `%s` | %s | %s |\n", p.Title, strings.ReplaceAll(target.Expr, "|", `\|`),
				p.FieldConfig.Defaults.Unit, strings.Join(shown, "<br>"))
		}
	}
	if n < 20 {
		o.Errorf("%d expressions; the dashboard is not understood", n)
	}
	if *record != "" {
		text, err := json.Marshal(all)
		if err == nil {
			err = os.WriteFile(*record, text, 0o644)
		}
		if err != nil {
			o.Fatal(err)
		}
	}
	if *update {
		text := fmt.Sprintf(document, to.Sub(from).Round(time.Minute), table)
		if err := os.WriteFile("../../docs/dashboard.md", []byte(text), 0o644); err != nil {
			o.Fatal(err)
		}
	}
}

// shownBy returns a line for each series: what the legend says, and between what its
// values were.
func shownBy(answer []series, legend string) []string {
	var out []string
	for _, s := range answer {
		least, greatest, ok := s.bounds()
		if !ok {
			continue
		}
		name := regexp.MustCompile(`{{\s*(\w+)\s*}}`).ReplaceAllStringFunc(legend, func(l string) string {
			return s.Metric[strings.Trim(l, "{ }")]
		})
		if legend == "" && len(s.Metric) > 0 {
			name = s.String()
		}
		value := number(least)
		if greatest > least {
			value += " to " + number(greatest)
		}
		out = append(out, strings.Join(append(strings.Fields(name), value), " "))
	}
	slices.Sort(out)
	return out
}

// curve is a series as it is recorded.
type curve struct {
	Metric map[string]string
	Values [][2]float64 // seconds and value, without what is no number
}

func points(answer []series) []curve {
	out := make([]curve, len(answer))
	for i, s := range answer {
		out[i].Metric = s.Metric
		for _, v := range s.Values {
			if !math.IsNaN(v.value) {
				out[i].Values = append(out[i].Values, [2]float64{float64(v.at.UnixMilli()) / 1000, v.value})
			}
		}
	}
	return out
}

func number(v float64) string { return fmt.Sprintf("%.4g", v) }

// document is docs/dashboard.md, of the length of the run and the table.
const document = `# The dashboard

` + "`deploy/observability/dashboard.json`" + ` is for Grafana: import it, and choose the Prometheus that scrapes Karpenter. It needs
no other data. The first row says whether something is wrong, the second which alerts of
` + "`deploy/observability/alerts.yaml`" + ` fire or soon will; what follows says what, and since when.

![the dashboard](dashboard.png)

The picture is of a run of ` + "`e2e/observability`" + `, which gets the program into the situations that the alerts are for; alerts
both fire and wait there, as they are rehearsed without waiting. It is drawn with Grafana's components, not by a Grafana: ` + "`deploy/observability/picture`" + ` says how.

Prometheus' increase() knows nothing of what was there when a counter was seen first, so that the first node of a new pool and zone would not be
counted. Panels of counters that come up later than the program add it: it is what a counter begins with that was not there an hour before.

## Panel by panel

The same test writes this table (` + "`go test ./e2e/observability -args -update`" + `): what Prometheus answers to what the dashboard asks, over a
run of %v. The last column has the values of each series in that time, by what the legend says.

| panel | expression | unit | values |
|---|---|---|---|
%s`

// lint holds promtool to what the program serves and to the rules. What it says
// against metrics is known.
func lint(t *testing.T, metrics string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "../../bin/promtool", "check", "rules", "../../deploy/observability/alerts.yaml").CombinedOutput(); err != nil {
		t.Errorf("promtool check rules: %v\n%s", err, out)
	}
	answer, err := http.Get("http://" + metrics + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	page, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	check := exec.CommandContext(t.Context(), "../../bin/promtool", "check", "metrics")
	check.Stdin = bytes.NewReader(page)
	out, err := check.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 3) { // 3 = it has remarks
		t.Fatalf("promtool check metrics: %v\n%s", err, out)
	}
	var remarks []string
	for line := range strings.Lines(string(out)) {
		if name, _, _ := strings.Cut(strings.TrimSpace(line), " "); name != "" && name != whilePending {
			remarks = append(remarks, name)
		}
	}
	slices.Sort(remarks)
	if known := misnamed(); !slices.Equal(remarks, known) {
		t.Errorf("promtool check metrics is about %v, want %v:\n%s", remarks, known, out)
	}
}

// whilePending is misnamed, too, and there only while there are pods to decide about.
const whilePending = "karpenter_scheduler_pending_pods_by_effective_zone_count"

// misnamed are the metrics that promtool would name otherwise, sorted: gauges that
// end in _count or _total, as dashboards for upstream Karpenter have them.
func misnamed() []string {
	return []string{
		"karpenter_cluster_state_node_count",
		"karpenter_nodepools_cost_total",
		"karpenter_scheduler_ignored_pods_count",
		"karpenter_scheduler_unschedulable_pods_count",
		"operator_ec2nodeclass_status_condition_count",
		"operator_node_status_condition_count",
		"operator_nodeclaim_status_condition_count",
		"operator_nodepool_status_condition_count",
		"operator_status_condition_count",
	}
}
