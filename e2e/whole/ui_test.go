// SPDX-License-Identifier: Apache-2.0

package whole

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"karpenter/e2e/harness"
)

// TestUI serves the page of a live cluster to a user who has only what the chart's viewer
// may. The page follows the cluster, has the record, and plans with another NodePool.
// A user without rights is told which are missing.
func TestUI(t *testing.T) {
	f := setUp(t, 0)
	f.StartController(t, "SYSTEM_NAMESPACE="+f.name)
	f.pool(nil)
	viewer, stranger := f.user("viewer", viewerRules(t)), f.user("stranger", nil)
	arguments := func(kubeconfig string) []string {
		return []string{"--kubeconfig", kubeconfig, "--karpenter-namespace", f.name}
	}
	var said string
	if !harness.Eventually(t, func(context.Context) bool {
		out, err := exec.CommandContext(t.Context(), "../../bin/karpenter", append([]string{"plan"}, arguments(viewer)...)...).CombinedOutput()
		said = string(out)
		return err == nil && strings.Contains(said, "from scratch")
	}) {
		t.Fatalf("the leader has published nothing: %s", said)
	}
	out, err := exec.CommandContext(t.Context(), "../../bin/karpenter", append([]string{"ui"}, arguments(stranger)...)...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), f.name+":stranger\" cannot ") || !strings.Contains(string(out), "--clusterrole=karpenter-viewer") || strings.Contains(string(out), "http://") {
		t.Errorf("a stranger gets %v\n%s", err, out)
	}

	page := api{t, harness.StartUI(t, arguments(viewer)...).URL + "/api/v1/"}
	var first struct {
		Source, Trouble string
		Revision        int
	}
	page.get("overview", &first)
	if first.Source != "cluster" || first.Trouble != "" || first.Revision < 1 {
		t.Errorf("the overview says %+v", first)
	}
	changed := page.changes()
	f.deployment(3, "1", "1Gi")
	f.lost("lost", "test-zone-ax")
	var last string
	page.until(changed, "there is a node with the pods, and the bill and the pending pod", func() bool {
		var nodes struct {
			Nodes []struct {
				NodePool, State string
				Pods            int
				CostPerHour     float64
			}
		}
		var bill struct {
			ByNamespace []struct {
				Name         string
				Pods         int
				CostPerMonth float64
			}
		}
		var pending struct {
			NoPlace []struct {
				Pods    []string
				Verdict string
			}
		}
		page.get("nodes", &nodes)
		page.get("bill", &bill)
		page.get("pending", &pending)
		last = fmt.Sprintf("%+v %+v %+v", nodes, bill, pending)
		pods := 0
		for _, n := range nodes.Nodes {
			if n.NodePool == f.name && n.State == "ready" && n.CostPerHour > 0 {
				pods += n.Pods
			}
		}
		billed, told := false, false
		for _, row := range bill.ByNamespace {
			billed = billed || row.Name == f.name && row.Pods == 3 && row.CostPerMonth > 0
		}
		for _, g := range pending.NoPlace {
			told = told || slices.Contains(g.Pods, f.name+"/lost") && strings.Contains(g.Verdict, "did you mean test-zone-a?")
		}
		return pods >= 3 && billed && told
	}, &last)
	page.until(changed, "the record has the launch, with what came of it", func() bool {
		var decisions struct {
			Record []struct {
				Kind      string
				Predicted struct{ LaunchedPerHour float64 }
				Actual    *struct {
					LaunchedPerHour float64
					Ready           int
				}
			}
		}
		page.get("decisions", &decisions)
		last = fmt.Sprintf("%+v", decisions)
		for _, d := range decisions.Record {
			if a := d.Actual; d.Kind == "Provision" && a != nil && a.Ready > 0 && a.LaunchedPerHour > 0 && a.LaunchedPerHour == d.Predicted.LaunchedPerHour {
				return true
			}
		}
		return false
	}, &last)
	page.whatIf(f.name)
}

// viewerRules returns what the chart gives the ClusterRole karpenter-viewer.
func viewerRules(t *testing.T) []rbacv1.PolicyRule {
	t.Helper()
	text, err := os.ReadFile("../../charts/karpenter/templates/clusterrole-viewer.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, namespaced, _ := strings.Cut(string(text), "\nrules:\n")
	namespaced, _, _ = strings.Cut(namespaced, "  {{-")
	_, whole, _ := strings.Cut(string(text), "{{- define \"karpenter.viewer.cluster\" }}\n")
	whole, _, _ = strings.Cut(whole, "{{- end }}")
	var out []rbacv1.PolicyRule
	for _, list := range []string{namespaced, whole} {
		var rules []rbacv1.PolicyRule
		if err := yaml.UnmarshalStrict([]byte(list), &rules); err != nil {
			t.Fatal(err)
		}
		if len(rules) < 4 {
			t.Fatalf("the chart has %d rules in\n%s", len(rules), list)
		}
		for _, r := range rules {
			if slices.ContainsFunc(r.Verbs, func(v string) bool { return v != "get" && v != "list" && v != "watch" }) {
				t.Errorf("a viewer may %v", r.Verbs)
			}
		}
		out = append(out, rules...)
	}
	return out
}

// user makes a service account of the test with a ClusterRole of the rules, and returns its kubeconfig.
func (f *fixture) user(name string, rules []rbacv1.PolicyRule) string {
	f.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: f.name, Name: name}}
	f.create(account)
	if len(rules) > 0 {
		meta := metav1.ObjectMeta{Name: f.name + "-" + name}
		f.create(&rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules})
		f.create(&rbacv1.ClusterRoleBinding{
			ObjectMeta: meta,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: f.name, Name: name}},
		})
	}
	return harness.ExecKubeconfig(f.T, f.Cluster, account)
}

// api is the JSON API of a page.
type api struct {
	*testing.T
	url string
}

// ask sends a request and reads the answer, which must be JSON.
func (a api) ask(method, path, body string, into any) {
	a.Helper()
	r, err := http.NewRequestWithContext(a.Context(), method, a.url+path, strings.NewReader(body))
	if err != nil {
		a.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/yaml")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		a.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		a.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil || answer.StatusCode != http.StatusOK {
		a.Fatalf("%s %s: %s %v: %s", method, path, answer.Status, err, text)
	}
}

func (a api) get(path string, into any) {
	a.Helper()
	a.ask(http.MethodGet, path, "", into)
}

// changes follows the stream of events: it returns what gets a value for each change.
func (a api) changes() <-chan struct{} {
	a.Helper()
	r, err := http.NewRequestWithContext(a.Context(), http.MethodGet, a.url+"events", nil)
	if err != nil {
		a.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		a.Fatal(err)
	}
	out := make(chan struct{})
	go func() {
		defer answer.Body.Close()
		defer close(out)
		for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
			if !strings.HasPrefix(lines.Text(), "data: ") {
				continue
			}
			select {
			case out <- struct{}{}:
			case <-a.Context().Done():
				return
			}
		}
	}()
	return out
}

// until waits for changes until the condition holds.
func (a api) until(changed <-chan struct{}, what string, holds func() bool, last *string) {
	a.Helper()
	ctx, cancel := context.WithTimeout(a.Context(), patience)
	defer cancel()
	for !holds() {
		select {
		case _, open := <-changed:
			if !open {
				a.Fatalf("the stream of events ended")
			}
		case <-ctx.Done():
			a.Fatalf("not within %s: %s; last: %s", patience, what, *last)
		}
	}
}

// whatIf plans with the NodePool limited to no CPU, and with a manifest that has a fault.
func (a api) whatIf(pool string) {
	a.Helper()
	var all struct{ NodePools []struct{ Name, YAML string } }
	a.get("nodepools", &all)
	i := slices.IndexFunc(all.NodePools, func(p struct{ Name, YAML string }) bool { return p.Name == pool })
	if i < 0 || !strings.Contains(all.NodePools[i].YAML, "kind: NodePool") {
		a.Fatalf("the NodePools are %+v", all)
	}
	var report struct {
		Changes []struct {
			NodePool, Change string
			Fields           []string
		}
	}
	a.ask(http.MethodPost, "plan", strings.Replace(all.NodePools[i].YAML, "\nspec:\n", "\nspec:\n  limits: {cpu: 0}\n", 1), &report)
	if len(report.Changes) != 1 || report.Changes[0].NodePool != pool || report.Changes[0].Change != "changed" || !strings.Contains(fmt.Sprint(report.Changes[0].Fields), "cpu") {
		a.Errorf("with a limit: %+v", report)
	}
}
