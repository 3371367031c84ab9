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
	"karpenter/cloud/azure"
	azureclient "karpenter/cloud/azure/client"
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

// unreachable makes a manager of a cluster that no one talks to.
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
			azureclient.NewMetrics(s.Registry, s.Clock)
			azure.NewMetrics(s.Registry)
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

This page lists all metrics of the controller, who can read them, and how to have fewer.

A test writes the table from what the process registers, with all feature gates and the AWS provider. The
column before the last marks metrics that upstream Karpenter does not have. All metrics of upstream exist.

Metrics of nodes have the labels ` + "`node_name`, `phase`, `managed`" + ` and the well-known labels of nodes, including those of the provider. The name is the part after the
slash, with ` + "`_` for `-`: `nodepool`, `zone`, `instance_type`, `capacity_type`" + ` and so on. If a node does not have a label, the metric
leaves it out. Amounts of zero have no series, except what pods request.

## How many series there are

| series | with 1,000 nodes and 10,000 pods | left out by |
|---|--:|---|
| of single pods, nodes and status conditions | about 52,000 | ` + "`settings.disableClusterStateObservability: true`" + ` |
| of instance types and offerings | about 23,000 | the same, or [Prometheus](troubleshooting.md#too-many-metrics) |

The first group has 14 series for each node, 10 for the conditions of each NodeClaim, and 8 for those of each Node. Older names of the conditions of NodeClaims add 10 more. Each
pod that is not pending has one (` + "`kube/meter/scale_test.go`" + `). Gathering them takes about a quarter of a second of one core.

The setting leaves out ` + "`karpenter_nodes_*`" + ` (except counts of created and removed nodes), ` + "`karpenter_cluster_utilization_percent`" + `,
` + "`karpenter_pods_state`" + ` and the waiting times of pods, ` + "`karpenter_nodepools_limit`" + ` and ` + "`_usage`, `operator_*`" + `
and ` + "`karpenter_cloudprovider_instance_type_*`" + `. It keeps the cost of each NodePool.

The controller also has the metrics of controller-runtime (` + "`controller_runtime_*`, `workqueue_*`, `rest_client_requests_total`, `leader_election_master_status`" + `)
and of the Go runtime.

## Who may read them

By default, every client that reaches the port can read the metrics over plain HTTP. With ` + "`controller.metrics.secure: true`" + `
in the values of the chart, the port serves metrics and profiles over TLS only, to clients with a token that the API server allows to ` + "`get` the path" + `. The chart creates a ClusterRole for this,
with ` + "`nonResourceURLs: [/metrics]`" + `. Its name begins with the release, such as ` + "`karpenter-metrics`" + `:

    kubectl create clusterrolebinding prometheus-karpenter --clusterrole karpenter-metrics --serviceaccount monitoring:prometheus

A request without a valid token gets 401. A request that is not allowed gets 403, and the answer names the rule that would allow it. In this mode, the chart lets
the controller create TokenReviews and SubjectAccessReviews, and its ServiceMonitor sends the token of Prometheus.

The certificate is in ` + "`tls.crt`" + ` and ` + "`tls.key`" + ` in the folder ` + "`controller.metrics.certDir`" + `,
for example a mounted secret of cert-manager. The controller reads it again when the files change. Without a directory, the controller signs a certificate
itself. Prometheus cannot verify it, and needs ` + "`insecureSkipVerify`" + `, which the ServiceMonitor then sets.

The controller gathers metrics for one request at a time. It sends the same answer to all requests within one second, or within
20 times the duration of gathering, up to 30 seconds. At most 10 requests wait, and others get 503.

## All of them

| name | type | labels | | meaning |
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
