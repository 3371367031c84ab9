// SPDX-License-Identifier: Apache-2.0

package observability

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	"karpenter/e2e/harness"
)

// observer is Prometheus, which scrapes the program every two seconds, and asks
// every second what deploy/observability/alerts.yaml says.
type observer struct {
	*testing.T
	*harness.Server
}

// series is what an expression had the value of, and when.
type series struct {
	Metric map[string]string
	Values []sample
}

// sample is a value at a time.
type sample struct {
	at    time.Time
	value float64
}

// UnmarshalJSON reads [seconds, "value"].
func (s *sample) UnmarshalJSON(text []byte) error {
	var pair [2]json.RawMessage
	var seconds float64
	var value string
	for _, err := range []error{json.Unmarshal(text, &pair), json.Unmarshal(pair[0], &seconds), json.Unmarshal(pair[1], &value)} {
		if err != nil {
			return err
		}
	}
	var err error
	s.at = time.UnixMilli(int64(seconds * 1000))
	s.value, err = strconv.ParseFloat(value, 64)
	return err
}

// observe starts Prometheus. The targets are host:port.
func observe(t *testing.T, rehearsal string, targets ...string) *observer {
	t.Helper()
	alerts, err := filepath.Abs("../../deploy/observability/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return &observer{t, harness.StartPrometheus(t, fmt.Sprintf(`
global: {scrape_interval: 2s, scrape_timeout: 2s, evaluation_interval: 1s}
rule_files: [%s, %s]
scrape_configs:
  - job_name: karpenter
    static_configs: [{targets: [%s]}]
`, alerts, rehearsal, strings.Join(targets, ", ")))}
}

// ask returns the series of an expression over a time, second by second.
func (o *observer) ask(expr string, from, to time.Time) []series {
	o.Helper()
	query := url.Values{"query": {expr}, "step": {"1"}, "start": {seconds(from)}, "end": {seconds(to)}}
	request, err := http.NewRequestWithContext(o.Context(), http.MethodGet, o.URL+"/api/v1/query_range?"+query.Encode(), nil)
	if err != nil {
		o.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		o.Fatal(err)
	}
	defer answer.Body.Close()
	var out struct {
		Error string
		Data  struct{ Result []series }
	}
	if err := json.NewDecoder(answer.Body).Decode(&out); err != nil || out.Error != "" {
		o.Fatalf("Prometheus on %s: %s, %s %v", expr, answer.Status, out.Error, err)
	}
	return out.Data.Result
}

// now returns the series of an expression as they are.
func (o *observer) now(expr string) []series {
	o.Helper()
	at := time.Now()
	return o.ask(expr, at, at)
}

// until waits until an expression has series, and returns them.
func (o *observer) until(expr string) []series {
	o.Helper()
	var out []series
	if err := o.poll(func() bool { out = o.now(expr); return len(out) > 0 }); err != nil {
		o.Fatalf("%s has no series: %v", expr, err)
	}
	return out
}

// untilNone waits until an expression has no series.
func (o *observer) untilNone(expr string) {
	o.Helper()
	var left []series
	if err := o.poll(func() bool { left = o.now(expr); return len(left) == 0 }); err != nil {
		o.Fatalf("%s has series still: %v: %v", expr, left, err)
	}
}

func (o *observer) poll(condition func() bool) error {
	return wait.PollUntilContextTimeout(o.Context(), 250*time.Millisecond, patience, true,
		func(context.Context) (bool, error) { return condition(), nil })
}

func seconds(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64) }

// String is the series' labels.
func (s series) String() string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(s.Metric)) {
		out = append(out, name+"="+s.Metric[name])
	}
	return "{" + strings.Join(out, " ") + "}"
}

// bounds returns the least and the greatest of the values that are numbers, and
// whether there are any.
func (s series) bounds() (least, greatest float64, ok bool) {
	least, greatest = math.Inf(1), math.Inf(-1)
	for _, v := range s.Values {
		if !math.IsNaN(v.value) {
			least, greatest = min(least, v.value), max(greatest, v.value)
		}
	}
	return least, greatest, least <= greatest
}

// rules is a file of rules.
type rules struct {
	Groups []struct {
		Name  string `json:"name"`
		Rules []rule `json:"rules"`
	} `json:"groups"`
}

type rule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// rehearsal writes the alerts as they are rehearsed: at once, but for that of a
// program that does not answer, which happens on a busy machine; with the label
// rehearsal; and in those expressions that are about hours, seconds. It returns the
// path of the file, and the names of the alerts.
func rehearsal(t *testing.T, shorter map[string][2]string) (path string, names []string) {
	t.Helper()
	text, err := os.ReadFile("../../deploy/observability/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file rules
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		t.Fatal(err)
	}
	for g := range file.Groups {
		group := &file.Groups[g]
		group.Name += " rehearsed"
		for r := range group.Rules {
			rule := &group.Rules[r]
			names = append(names, rule.Alert)
			if rule.For = ""; rule.Alert == noLeader {
				rule.For = "20s"
			}
			rule.Labels["rehearsal"] = "yes"
			if s, ok := shorter[rule.Alert]; ok {
				if strings.Count(rule.Expr, s[0]) != 1 {
					t.Fatalf("%s: %q is not once in %s", rule.Alert, s[0], rule.Expr)
				}
				rule.Expr = strings.Replace(rule.Expr, s[0], s[1], 1)
			}
		}
	}
	out, err := yaml.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "rehearsal.yaml")
	if err := os.WriteFile(path, out, 0o600); err != nil {
		t.Fatal(err)
	}
	return path, names
}
