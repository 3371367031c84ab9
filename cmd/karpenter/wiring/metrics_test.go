// SPDX-License-Identifier: Apache-2.0

package wiring_test

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	apiversion "k8s.io/apimachinery/pkg/version"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	ctrl "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"karpenter/api/scheme"
	"karpenter/cloud/aws/awsfake"
	awsclient "karpenter/cloud/aws/client"
	"karpenter/cmd/karpenter/config"
	"karpenter/cmd/karpenter/wiring"
	"karpenter/kube/manager"
	"karpenter/kube/meter"
)

var rewriteDocs = flag.Bool("rewrite-docs", false, "write docs/metrics.md")

// recording keeps the collectors that are registered with it.
type recording struct {
	*prometheus.Registry
	collectors []prometheus.Collector
}

func (r *recording) Register(c prometheus.Collector) error {
	r.collectors = append(r.collectors, c)
	return r.Registry.Register(c)
}

func (r *recording) MustRegister(cs ...prometheus.Collector) {
	for _, c := range cs {
		if err := r.Register(c); err != nil {
			panic(err)
		}
	}
}

// metric is one line of the table.
type metric struct{ name, kind, labels, help string }

// table returns what is registered, by name.
func (r *recording) table(t *testing.T) map[string]metric {
	t.Helper()
	form := regexp.MustCompile(`^Desc\{fqName: "(.*?)", help: "(.*?)", unit: ".*", constLabels: \{\}, variableLabels: \{(.*)\}\}$`)
	kinds := map[string]string{}
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		kinds[f.GetName()] = strings.ToLower(f.GetType().String())
	}
	out := map[string]metric{}
	for _, c := range r.collectors {
		descs := make(chan *prometheus.Desc, 100)
		c.Describe(descs)
		close(descs)
		for d := range descs {
			m := form.FindStringSubmatch(d.String())
			if m == nil {
				t.Fatalf("cannot read %s", d)
			}
			labels := slices.Sorted(slices.Values(strings.Split(m[3], ",")))
			kind := cmp.Or(kindOf(c), kinds[m[1]], "gauge") // what has no samples yet and is no vector is read at each scrape
			out[m[1]] = metric{m[1], kind, strings.Join(labels, ","), strings.ReplaceAll(m[2], `\"`, `"`)}
		}
	}
	return out
}

func kindOf(c prometheus.Collector) string {
	switch c.(type) {
	case *prometheus.CounterVec:
		return "counter"
	case *prometheus.GaugeVec:
		return "gauge"
	case *prometheus.HistogramVec:
		return "histogram"
	case *prometheus.SummaryVec:
		return "summary"
	}
	return ""
}

// unreachable makes a manager of a cluster that nobody talks to.
func unreachable(t *testing.T) ctrl.Manager {
	t.Helper()
	objects := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{kubescheme.AddToScheme, scheme.AddToScheme} {
		if err := add(objects); err != nil {
			t.Fatal(err)
		}
	}
	again := true
	mgr, err := ctrl.New(&rest.Config{Host: "http://127.0.0.1:1"}, ctrl.Options{
		Scheme: objects, Logger: logr.Discard(), HealthProbeBindAddress: "0", Metrics: server.Options{BindAddress: "0"},
		Controller: ctrlconfig.Controller{SkipNameValidation: &again},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			m := meta.NewDefaultRESTMapper(nil)
			for gvk := range objects.AllKnownTypes() {
				m.Add(gvk, meta.RESTScopeRoot)
			}
			return m, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return mgr
}

// oldCluster tells the version of a cluster.
type oldCluster struct{}

func (oldCluster) ServerVersion() (*apiversion.Info, error) {
	return &apiversion.Info{Major: "1", Minor: "33", GitVersion: "v1.33.0"}, nil
}

// wired returns the metrics of a process that runs everything, on AWS.
func wired(t *testing.T, args ...string) map[string]metric {
	t.Helper()
	account, err := awsfake.New(awsfake.Config{Clock: clock.RealClock{}})
	if err != nil {
		t.Fatal(err)
	}
	reg := &recording{Registry: prometheus.NewPedanticRegistry()}
	if err := wireOn(t, account, reg, args...); err != nil {
		t.Fatal(err)
	}
	return reg.table(t)
}

// wireOn wires a process that runs everything on the account.
func wireOn(t *testing.T, account *awsfake.AWS, reg *recording, args ...string) error {
	t.Helper()
	c, err := config.Parse(append([]string{
		"--cluster-name=cluster", "--interruption-queue=queue",
		"--feature-gates=NodeRepair=true,ReservedCapacity=true,NodeOverlay=true,StaticCapacity=true,CapacityBuffer=true,PodDeletionCostManagement=true",
	}, args...), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	manager.ReadBuild().Publish(reg)
	meter.NewRequests(reg, clock.RealClock{})
	manager.NewWatches(reg, clock.RealClock{})
	return wiring.Wire(t.Context(), wiring.Surroundings{
		Manager: unreachable(t), Config: c, Registry: reg,
		Nominator: func() (client.StatusClient, error) { return nil, nil },
		Provider: func(ctx context.Context, s wiring.Supplies) (wiring.Provider, error) {
			awsclient.NewMetrics(s.Registry, s.Clock)
			return wiring.AWS(ctx, wiring.Amazon{Services: account.Services(), Discovery: oldCluster{}}, s)
		},
	})
}

// upstream returns the table of names that people's dashboards use.
func upstream(t *testing.T) map[string]metric {
	t.Helper()
	text, err := os.ReadFile("testdata/metrics.txt")
	if err != nil {
		t.Fatal(err)
	}
	out, node := map[string]metric{}, ""
	for line := range strings.Lines(string(text)) {
		switch f := strings.Fields(line); {
		case f[0] == "#":
		case f[0] == "NODE":
			node = f[1]
		default:
			m := metric{name: f[0], kind: f[1]}
			if len(f) == 3 {
				labels := strings.ReplaceAll(f[2], "NODE", node)
				m.labels = strings.Join(slices.Sorted(slices.Values(strings.Split(labels, ","))), ",")
			}
			out[m.name] = m
		}
	}
	return out
}

// lacking names what of the table is not served.
func lacking(want, have map[string]metric) []string {
	var out []string
	for name := range want {
		if _, ok := have[name]; !ok {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// TestMetricsTable holds what a process serves against the table of names,
// types and labels, and covers spec 50/10. What is lacking stands in
// docs/metrics.md, which is written from what is served.
func TestMetricsTable(t *testing.T) {
	have, want := wired(t), upstream(t)
	for _, name := range slices.Sorted(maps.Keys(want)) {
		w, h := want[name], have[name]
		if h.name != "" && (h.kind != w.kind || h.labels != w.labels) {
			t.Errorf("%s is a %s of {%s}, want a %s of {%s}", name, h.kind, h.labels, w.kind, w.labels)
		}
	}
	for _, m := range have {
		if m.kind == "gauge" && strings.HasSuffix(m.name, "_total") && !strings.HasSuffix(m.name, "cost_total") {
			t.Errorf("%s is called a total, and is a gauge", m.name)
		}
	}
	if missing := lacking(want, have); len(missing) > 0 {
		t.Errorf("dashboards for upstream would miss %v", missing)
	}
	got := document(have, want)
	path := filepath.Join("..", "..", "..", "docs", "metrics.md")
	if *rewriteDocs {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != got {
		t.Errorf("docs/metrics.md is not what is served (%v): go test ./cmd/karpenter/wiring -run TestMetricsTable -args -rewrite-docs", err)
	}
}

// document returns docs/metrics.md.
func document(have, want map[string]metric) string {
	var out strings.Builder
	out.WriteString(preface)
	for _, name := range slices.Sorted(maps.Keys(have)) {
		m := have[name]
		whose, labels := "", strings.ReplaceAll(m.labels, ",", ", ")
		if strings.Contains(labels, "node_name") {
			labels = "those of nodes"
			if strings.Contains(m.labels, "resource_type") {
				labels += ", resource_type"
			}
		}
		if _, ok := want[name]; !ok {
			whose = "ours"
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s | %s |\n", m.name, m.kind, labels, whose, m.help)
	}
	if missing := lacking(want, have); len(missing) > 0 {
		out.WriteString("\n## Not there\n\nUpstream has these:\n\n")
		for _, name := range missing {
			fmt.Fprintf(&out, "* `%s`\n", name)
		}
	}
	return out.String()
}

const preface = `# Metrics

Written by a test from what the process registers, with all feature gates open
and the AWS provider. With another provider, what is of AWS is not there. The last
column but one says which are not upstream's; none of upstream's is missing.

The labels of nodes are ` + "`node_name`, `phase`, `managed`" + ` and the well-known labels of nodes, by what
follows the slash, with ` + "`_` for `-`: `nodepool`, `zone`, `instance_type`, `capacity_type`" + ` and so on, with those of the
provider. A node that has not got one of them leaves it out, which says the same to Prometheus as an empty one. Amounts of nothing
have no series, but for what pods request of what a node has.

With ` + "`--disable-cluster-state-observability`" + ` (` + "`DISABLE_CLUSTER_STATE_OBSERVABILITY=true`" + `)
the series of single pods, nodes, status conditions, instance types and offerings are not there:
` + "`karpenter_nodes_*`" + ` but for counts of nodes that came and went, ` + "`karpenter_cluster_utilization_percent`" + `,
` + "`karpenter_pods_state`" + ` and the times pods wait, ` + "`karpenter_nodepools_limit`" + ` and ` + "`_usage`, `operator_*`" + `
and ` + "`karpenter_cloudprovider_instance_type_*`" + `. What a pool costs stays: it is one series for each pool.

With 1,000 nodes and 10,000 pods a scrape has some 52,000 samples of that kind: 14 for each
node, 10 for each NodeClaim's and 8 for each Node's conditions, 10 more for the older names of the former, and one for each
pod that does not wait (` + "`kube/meter/scale_test.go`" + `; upstream's rules, which keep amounts of
nothing and count pods among limits, come to about 25 for each node and as many of the rest). Gathering them takes about a quarter of a second of one core.
Another 23,000 are of EC2's instance types and offerings, without any node ([how to drop these only](troubleshooting.md#too-many-metrics)).

There are also the metrics of controller-runtime (` + "`controller_runtime_*`, `workqueue_*`, `rest_client_requests_total`, `leader_election_master_status`" + `)
and of the Go runtime.

## Who may read them

Every client that reaches the port can read the metrics over plain HTTP, unless ` + "`--metrics-secure` (`METRICS_SECURE=true`, `controller.metrics.secure`" + ` in
the chart) is set. Then the port, profiles included, is served over TLS, and who asks must
show a token that the API server lets ` + "`get` the path: a ClusterRole with `nonResourceURLs: [/metrics]`" + `,
such as the one the chart makes and names after the release, ` + "`karpenter-metrics`" + `:

    kubectl create clusterrolebinding prometheus-karpenter --clusterrole karpenter-metrics --serviceaccount monitoring:prometheus

A request without a token, or with an unknown one, gets 401; one that is not allowed gets 403 and is told by which rule it would be. The chart lets
the controller create TokenReviews and SubjectAccessReviews then, and its ServiceMonitor sends Prometheus' own token.

The certificate is that of ` + "`tls.crt` and `tls.key` in `--metrics-cert-dir` (`METRICS_CERT_DIR`, `controller.metrics.certDir`" + `),
such as a mounted secret of cert-manager's; it is read again when the files change. Without a directory the controller signs one
itself at the start, which keeps listeners out and proves nothing to who scrapes: Prometheus needs ` + "`insecureSkipVerify`" + `, which the ServiceMonitor has then.

Metrics are gathered for one request at a time, and the answer is shared with everyone who asks within a second, or within
20 times as long as gathering took. At most 10 requests wait; more get 503.

## All of them

| name | type | labels | | what it says |
|---|---|---|---|---|
`

// TestUnobserved covers spec 50/22.
func TestUnobserved(t *testing.T) {
	all, few := wired(t), wired(t, "--disable-cluster-state-observability")
	for _, name := range lacking(all, few) {
		if !single.MatchString(name) {
			t.Errorf("%s is not about single objects, and not served", name)
		}
	}
	for name := range few {
		if single.MatchString(name) {
			t.Errorf("%s is served", name)
		}
	}
}

// single matches metrics of single pods, nodes, pools, conditions and offerings.
var single = regexp.MustCompile(`^(operator_.*|karpenter_cloudprovider_instance_type_.*|karpenter_(nodes_(allocatable|total_.*|system_overhead|current_.*)|cluster_utilization_percent|nodepools_(limit|usage)|` +
	`pods_(state|startup_.*|bound_duration_seconds|un.*|provisioning_.*|scheduling_decision_duration_seconds)))$`)
