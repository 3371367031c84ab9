// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/e2e/harness"
)

// monitors is the kind ServiceMonitor, without its schema.
const monitors = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: servicemonitors.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  names: {kind: ServiceMonitor, plural: servicemonitors}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// TestServiceMonitor has Prometheus find the program by the chart's ServiceMonitor: a
// target for each replica, at the port where the program serves its metrics, in the
// open and over TLS.
func TestServiceMonitor(t *testing.T) {
	i := &installation{T: t, Cluster: surroundings.shared.Cluster(t)}
	i.Apply(t, monitors)
	t.Cleanup(func() {
		i.remove("apiextensions.k8s.io/v1", "CustomResourceDefinition", "servicemonitors.monitoring.coreos.com")
	})
	i.served("monitoring.coreos.com/v1", "ServiceMonitor")
	for _, scheme := range []string{"http", "https"} {
		t.Run(scheme, func(t *testing.T) { monitored(t, scheme) })
	}
}

func monitored(t *testing.T, scheme string) {
	i := begin(t)
	port := freePort(t)
	i.install("--set", "settings.cloudProvider=kwok", "--set", "serviceMonitor.enabled=true",
		"--set", fmt.Sprint("controller.metrics.secure=", scheme == "https"),
		"--set", fmt.Sprint("controller.metrics.port=", port), "--set", fmt.Sprint("controller.healthProbe.port=", freePort(t)))
	program := i.start(i.pod(), withoutStreams)
	i.leads("")
	prometheus := harness.StartPrometheus(t, i.scrape())
	want := fmt.Sprintf("%s://127.0.0.1:%d/metrics", scheme, port)
	var found []target
	err := wait.PollUntilContextTimeout(t.Context(), 250*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		found = targets(t, prometheus.URL)
		well := map[string]bool{}
		for _, x := range found {
			if x.ScrapeURL == want && x.Health == "up" {
				well[x.Labels["pod"]] = true
			}
		}
		return len(found) == 2 && len(well) == 2, nil
	})
	if err != nil {
		t.Errorf("want 2 targets %s that are up; there are %+v", want, found)
	}
	program.Stop()
	i.uninstall()
}

// served waits until the API server serves the kinds.
func (i *installation) served(apiVersion string, kinds ...string) {
	i.Helper()
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(apiVersion)
		list.SetKind(kind + "List")
		err := wait.PollUntilContextTimeout(i.Context(), 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
			return i.Client.List(ctx, list) == nil, nil
		})
		if err != nil {
			i.Fatalf("%s is not served: %v", kind, err)
		}
	}
}

// scrape is Prometheus' configuration as the ServiceMonitor asks for it: pods behind
// the services with its labels in its namespaces, at the port with the name of
// its endpoint. Pods of this cluster are at loopback addresses.
func (i *installation) scrape() string {
	i.Helper()
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("monitoring.coreos.com/v1")
	object.SetKind("ServiceMonitor")
	if err := i.Client.Get(i.Context(), client.ObjectKey{Namespace: namespace, Name: "karpenter"}, object); err != nil {
		i.Fatal(err)
	}
	var monitor struct {
		Spec struct {
			NamespaceSelector struct{ MatchNames []string }
			Selector          struct{ MatchLabels map[string]string }
			Endpoints         []struct {
				Port, Path, Scheme, BearerTokenFile string
				TLSConfig                           struct{ InsecureSkipVerify bool }
			}
		}
	}
	text, err := object.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(text, &monitor)
	}
	s := monitor.Spec
	if err != nil || len(s.Endpoints) != 1 || len(s.Selector.MatchLabels) == 0 || len(s.NamespaceSelector.MatchNames) == 0 {
		i.Fatalf("the ServiceMonitor is not understood: %v\n%s", err, text)
	}
	var keep strings.Builder
	for name, value := range s.Selector.MatchLabels {
		label := regexp.MustCompile(`\W`).ReplaceAllString(name, "_")
		fmt.Fprintf(&keep, "\n      - {action: keep, source_labels: [__meta_kubernetes_service_label_%s], regex: %q}", label, regexp.QuoteMeta(value))
	}
	endpoint := s.Endpoints[0]
	access := ""
	if endpoint.BearerTokenFile != "" {
		access = "\n    authorization: {credentials_file: " + i.allowed() + "}"
	}
	return fmt.Sprintf(`
global: {scrape_interval: 2s, scrape_timeout: 2s}
scrape_configs:
  - job_name: karpenter
    metrics_path: %s
    scheme: %s
    tls_config: {insecure_skip_verify: %t}%s
    kubernetes_sd_configs:
      - {role: endpointslice, kubeconfig_file: %s, namespaces: {names: [%s]}}
    relabel_configs:%s
      - {action: keep, source_labels: [__meta_kubernetes_endpointslice_port_name], regex: %s}
      - {source_labels: [__meta_kubernetes_pod_name], target_label: pod}
      - {source_labels: [__address__], regex: '.*:(\d+)', target_label: __address__, replacement: '127.0.0.1:$1'}
`, endpoint.Path, cmp.Or(endpoint.Scheme, "http"), endpoint.TLSConfig.InsecureSkipVerify, access,
		i.Kubeconfig, strings.Join(s.NamespaceSelector.MatchNames, ", "), keep.String(), endpoint.Port)
}

// allowed returns a file with the token of a service account that the chart's
// ClusterRole lets read metrics, as Prometheus' pod has one.
func (i *installation) allowed() string {
	i.Helper()
	path := filepath.Join(i.TempDir(), "token")
	if err := os.WriteFile(path, []byte(i.token("prometheus")), 0o600); err != nil {
		i.Fatal(err)
	}
	i.create(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "prometheus"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "karpenter-metrics"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "prometheus"}},
	})
	i.Cleanup(func() { i.remove("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "prometheus") })
	return path
}

// target is what Prometheus says of one.
type target struct {
	Labels            map[string]string
	ScrapeURL, Health string
	LastError         string
}

func targets(t *testing.T, prometheus string) []target {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, prometheus+"/api/v1/targets?state=active", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var out struct {
		Data struct{ ActiveTargets []target }
	}
	if err := json.NewDecoder(answer.Body).Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out.Data.ActiveTargets
}
