// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/e2e/harness"
)

// TestPlanComesTrue asks karpenter plan what a changed NodePool would lead to,
// applies it, waits until the cluster is at rest, and compares: nodes launched
// for pods that wait, then a roll-out by drift, one node after the other, then
// consolidation to spot. What asks may do nothing but ask.
func TestPlanComesTrue(t *testing.T) {
	c := begin(t)
	server := c.StartAWS(t, "--cluster-name", cluster)
	s := &planned{
		scene: &scene{t, c, server, strings.ToLower(t.Name()), time.Now()},
		pods:  map[types.UID]bool{}, claims: map[types.UID]bool{}, dir: t.TempDir(),
	}
	s.view = c.Watch(t, s.look)
	s.world()
	pool := s.write("nodepool.yaml", s.pool(`"0"`, "[on-demand]", "[amd64]"))
	s.kubectl("apply", "-f", pool)
	s.identify()
	c.StartController(t, append(server.Environment(),
		"CLOUD_PROVIDER=aws", "CLUSTER_NAME="+cluster, "SYSTEM_NAMESPACE="+s.name,
		"FEATURE_GATES=SpotToSpotConsolidation=true")...)
	s.waits()
	s.readOnly()
	for _, change := range []struct{ what, file, manifest, reason string }{
		{"a limit that lets pods have nodes", "limits.yaml", s.pool("100", "[on-demand]", "[amd64]"), ""},
		// Pods that drift has moved are not moved to save for an hour.
		{"spot, too", "spot.yaml", s.pool("100", "[on-demand, spot]", "[amd64]"), "Underutilized"},
		{"arm64 instead of amd64", "arm64.yaml", s.pool("100", "[on-demand, spot]", "[arm64]"), "Drifted"},
	} {
		s.change(change.what, s.write(change.file, change.manifest), change.reason)
	}
	s.scale(0)
	s.kubectl("delete", "deployment", "cache", "-n", s.name)
	s.view.Until("nodes are gone", patience, func() string { return strings.Join(s.names(), ", ") })
	s.delete()
	s.view.Until("nothing is left in AWS", patience, func() string { return strings.Join(s.left(), ", ") })
}

const podsOfPlan = 11

// planned is a scene whose plans are compared with what happens.
type planned struct {
	*scene
	dir    string
	view   *harness.View
	config string             // kubeconfig of who may only read
	pods   map[types.UID]bool // that ever were
	claims map[types.UID]bool
}

// report is what the test reads of karpenter plan --output json.
type report struct {
	WouldChange                     bool
	Notes                           []string
	Before, After                   total
	AtRest                          atRest
	Launches                        []launched
	Commands                        []struct{ Reason string }
	Evictions                       int
	LaunchCostPerHour, BoundPerHour float64
	Pending                         []struct{ Verdict string }
	Stays                           []struct {
		Node    string
		Reasons []struct{ Cause, Why string }
	}
}

type total struct {
	Nodes, Pending int
	CostPerHour    float64
}

type atRest struct {
	total
	Rounds, Launched, Removed, Evictions int
}

type launched struct{ NodePool, InstanceType, Zone, CapacityType string }

// look keeps account of pods and claims.
func (s *planned) look(v *harness.View) {
	for _, p := range v.Pods(s.name) {
		s.pods[p.UID] = true
	}
	for _, c := range v.Claims() {
		if c.Labels[v1.NodePoolLabelKey] == s.name {
			s.claims[c.UID] = true
		}
	}
}

// world makes the EC2NodeClass, and two Deployments. Their pods are alike but for their
// names: which of them the scheduler puts on the node that is ready first must not decide
// whether the others fit on the rest.
func (s *planned) world() {
	const requests = "{cpu: 700m, memory: 3Gi}"
	deployment := func(name string, replicas int, requests string) string {
		return fmt.Sprintf(`
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %s, namespace: %s}
spec:
  replicas: %d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      terminationGracePeriodSeconds: 1
      nodeSelector: {karpenter.sh/nodepool: %[2]s}
      containers: [{name: c, image: c, resources: {requests: %[4]s}}]`, name, s.name, replicas, requests)
	}
	s.Apply(s.T, fmt.Sprintf(`
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: %[1]s}
spec:
  role: KarpenterNodeRole-prod
  amiSelectorTerms: [{alias: al2023@latest}]
  subnetSelectorTerms: [{tags: {kubernetes.io/role/elb: "1"}}] # they assign public addresses
  securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: prod}}]
---
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}`, s.name)+deployment("web", 7, requests)+deployment("cache", 4, requests))
}

// pool is the NodePool as its repository has it.
func (s *planned) pool(cpus, capacityTypes, architectures string) string {
	return fmt.Sprintf(`apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: %s
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: %[1]s}
      requirements:
        - {key: karpenter.sh/capacity-type, operator: In, values: %[3]s}
        - {key: kubernetes.io/arch, operator: In, values: %[4]s}
        - {key: karpenter.k8s.aws/instance-category, operator: In, values: [c, m, r]}
        - {key: karpenter.k8s.aws/instance-generation, operator: Gt, values: ["4"]}
        - {key: karpenter.k8s.aws/instance-cpu, operator: Lt, values: ["5"]}
  disruption:
    consolidateAfter: 0s
    budgets: [{nodes: "1"}]
  limits:
    cpu: %[2]s
`, s.name, cpus, capacityTypes, architectures)
}

func (s *planned) write(name, text string) string {
	s.Helper()
	path := filepath.Join(s.dir, name)
	must(s.T, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func (s *planned) kubectl(args ...string) {
	s.Helper()
	run := exec.CommandContext(s.Context(), "../../bin/kubectl", append([]string{"--kubeconfig", s.Kubeconfig}, args...)...)
	if out, err := run.CombinedOutput(); err != nil {
		s.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// identify writes a kubeconfig of an account that may read and change nothing.
func (s *planned) identify() {
	s.Apply(s.T, fmt.Sprintf(`
apiVersion: v1
kind: ServiceAccount
metadata: {name: planner, namespace: %[1]s}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %[1]s}
rules: [{apiGroups: ["*"], resources: ["*"], verbs: [get, list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %[1]s}
subjects: [{kind: ServiceAccount, name: planner, namespace: %[1]s}]
`, s.name))
	s.config = harness.ExecKubeconfig(s.T, s.Cluster, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: "planner"}})
}

// ask runs bin/karpenter as someone who may only read.
func (s *planned) ask(args ...string) (stdout string, code int) {
	s.Helper()
	if !slices.Contains(args, "--snapshot") {
		args = append(args, "--karpenter-namespace", s.name, "--kubeconfig", s.config)
	}
	run := exec.CommandContext(s.Context(), "../../bin/karpenter", args...)
	var out, errs bytes.Buffer
	run.Stdout, run.Stderr = &out, &errs
	err := run.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.Fatal(err)
	}
	if code := run.ProcessState.ExitCode(); code != 0 && out.Len() == 0 {
		s.Logf("karpenter %s: exit code %d: %s", args[0], code, errs.String())
	}
	return out.String(), run.ProcessState.ExitCode()
}

func (s *planned) plan(args ...string) (r report, code int) {
	s.Helper()
	out, code := s.ask(append([]string{"plan", "--output", "json"}, args...)...)
	if out != "" {
		must(s.T, json.Unmarshal([]byte(out), &r))
	}
	return r, code
}

// waits waits until the pool is ready and all pods wait without success.
func (s *planned) waits() {
	s.Helper()
	s.view.Until("pods wait", patience, func() string {
		pool := s.view.Pool(s.name)
		if !conditions.IsTrue(pool, v1.ReadyCondition) {
			return "the NodePool is not ready"
		}
		r, code := s.plan("--exit-code")
		if code != 0 || r.Before.Pending != podsOfPlan || r.After.Pending != podsOfPlan {
			return fmt.Sprintf("exit code %d, %+v", code, r)
		}
		for _, p := range r.Pending {
			if !strings.Contains(p.Verdict, "limit") {
				return p.Verdict
			}
		}
		return ""
	})
	if _, code := s.plan("--max-pending", "0"); code != 1 {
		s.Errorf("a gate for pods that wait: exit code %d", code)
	}
}

// readOnly plans at rest, from the cluster and from a file, and nothing comes of
// it.
func (s *planned) readOnly() {
	s.Helper()
	state := func() map[string]string {
		out := map[string]string{}
		for _, list := range []client.ObjectList{&corev1.PodList{}, &corev1.NodeList{}, &v1.NodePoolList{}, &v1.NodeClaimList{}} {
			must(s.T, s.Client.List(s.Context(), list))
			data, err := json.Marshal(list)
			must(s.T, err)
			var all struct {
				Items []struct {
					Metadata struct{ Namespace, Name, UID string }
					Spec     any
				}
			}
			must(s.T, json.Unmarshal(data, &all))
			for _, o := range all.Items {
				out[fmt.Sprintf("%T %+v", list, o.Metadata)] = fmt.Sprint(o.Spec)
			}
		}
		return out
	}
	was := state()
	limits := s.write("more.yaml", s.pool("100", "[on-demand]", "[amd64]"))
	dump, _ := s.ask("snapshot")
	file := s.write("snapshot.txt", dump)
	offline, code := s.plan("--snapshot", file, "-f", limits, "--to-rest", "--exit-code")
	live, again := s.plan("-f", limits, "--to-rest", "--exit-code")
	if diff := gocmp.Diff(offline, live, gocmp.AllowUnexported(atRest{})); diff != "" || code != 3 || again != 3 {
		s.Errorf("exit codes %d of a snapshot, %d live, want 3; the plans differ (-file +live):\n%s", code, again, diff)
	}
	if diff := gocmp.Diff(was, state()); diff != "" {
		s.Errorf("a plan has changed something:\n%s", diff)
	}
}

// happened is what the cluster is, and what it took.
type happened struct {
	Nodes               int
	Cost                float64
	Launched, Evictions int
}

func (s *planned) now() happened {
	s.Helper()
	h := happened{Launched: len(s.claims), Evictions: len(s.pods)}
	bill := s.bill()
	for _, n := range s.nodes(s.view) {
		h.Nodes++
		instance, besides := bill.of(&n)
		h.Cost += instance + besides
	}
	return h
}

func offering(n *corev1.Node) string {
	return strings.Join([]string{n.Labels[corev1.LabelInstanceTypeStable], n.Labels[corev1.LabelTopologyZone], n.Labels[v1.CapacityTypeLabelKey]}, " ")
}

// bill tells what the account pays per hour for each instance, and for its volumes
// and its address, by the instance's ID.
type bill map[string][2]float64

func (b bill) of(n *corev1.Node) (instance, besides float64) {
	at := b[n.Spec.ProviderID[strings.LastIndex(n.Spec.ProviderID, "/")+1:]]
	return at[0], at[1]
}

func (s *planned) bill() bill {
	s.Helper()
	answer, err := http.Get(s.server.URL + "/_awssim/bill")
	must(s.T, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must(s.T, err)
	out := bill{}
	for line := range strings.Lines(string(text)) {
		var id string
		var instance, besides float64
		_, err := fmt.Sscan(line, &id, &instance, &besides)
		must(s.T, err)
		out[id] = [2]float64{instance, besides}
	}
	return out
}

// besides is what each node costs besides its instance: all have one class.
func (s *planned) besides() float64 {
	s.Helper()
	bill := s.bill()
	for _, n := range s.nodes(s.view) {
		if _, besides := bill.of(&n); besides > 0 {
			return besides
		}
	}
	s.Fatal("no node costs more than its instance, although all have volumes")
	return 0
}

// prices tells what the account says an hour costs, by offering.
func (s *planned) prices() map[string]float64 {
	s.Helper()
	answer, err := http.Get(s.server.URL + "/_awssim/prices")
	must(s.T, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must(s.T, err)
	out := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		var instanceType, zone, capacityType string
		var dollars float64
		_, err := fmt.Sscan(line, &instanceType, &zone, &capacityType, &dollars)
		must(s.T, err)
		out[instanceType+" "+zone+" "+capacityType] = dollars
	}
	return out
}

func (s *planned) names() []string {
	var out []string
	for _, n := range s.nodes(s.view) {
		out = append(out, n.Name)
	}
	return out
}

// change tells what the manifest would lead to, applies it, and compares.
func (s *planned) change(what, manifest, reason string) {
	s.Helper()
	text, _ := s.ask("plan", "-f", manifest, "--to-rest")
	told, code := s.plan("-f", manifest, "--to-rest", "--exit-code")
	if code != 3 || told.AtRest.Rounds == 0 {
		s.Fatalf("%s: exit code %d, want 3:\n%s", what, code, text)
	}
	if reason != "" && (len(told.Commands) == 0 || told.Commands[0].Reason != reason) {
		s.Errorf("%s: want nodes to go as %s:\n%s", what, reason, text)
	}
	before, prices := s.now(), s.prices()
	began := time.Now()
	s.kubectl("apply", "-f", manifest)
	var nodes []string
	s.view.Until("at rest after "+what, 4*patience, func() string {
		if missing := s.running(s.view, podsOfPlan)(); missing != "" {
			return missing
		}
		if observed := s.view.Pool(s.name); !conditions.IsTrue(observed, v1.ReadyCondition) || len(s.claims) == before.Launched {
			return "it has not begun"
		}
		nodes = s.names()
		r, code := s.plan("-f", manifest, "--exit-code")
		if code != 0 || r.Before.Pending > 0 || len(r.Notes) > 0 || r.Before.Nodes != r.After.Nodes || len(nodes) != r.Before.Nodes {
			return fmt.Sprintf("exit code %d, notes %v, before %+v, after %+v", code, r.Notes, r.Before, r.After)
		}
		for _, stay := range r.Stays {
			for _, because := range stay.Reasons {
				if because.Cause != "no saving" && because.Cause != "no place" && because.Why != "pods on it were moved within the last hour" {
					return fmt.Sprintf("node %s stays: %s: %s", stay.Node, because.Cause, because.Why)
				}
			}
		}
		return ""
	})
	after := s.now()
	s.Logf("%s\n\n%s\n%s", what, text, s.table(told, before, after, time.Since(began)))
	s.compare(what, told, before, after)
	var cost float64
	for _, l := range told.Launches {
		cost += prices[l.InstanceType+" "+l.Zone+" "+l.CapacityType] + s.besides()
	}
	if math.Abs(cost-told.LaunchCostPerHour) > 1e-6 {
		s.Errorf("%s: the nodes to be launched were told to cost $%v/h, by the bill it is $%v/h", what, told.LaunchCostPerHour, cost)
	}
}

// compare holds what was told against what came about.
func (s *planned) compare(what string, told report, before, after happened) {
	s.Helper()
	evictions := after.Evictions - max(before.Evictions, podsOfPlan)
	if told.AtRest.Nodes != after.Nodes || math.Abs(told.AtRest.CostPerHour-after.Cost) > 1e-6 ||
		told.AtRest.Launched != after.Launched-before.Launched || told.AtRest.Evictions != evictions {
		s.Errorf("%s: it came otherwise", what)
	}
	if told.Before.Nodes != before.Nodes || math.Abs(told.Before.CostPerHour-before.Cost) > 1e-6 {
		s.Errorf("%s: there were %d nodes for $%v/h, it told %d for $%v/h", what, before.Nodes, before.Cost, told.Before.Nodes, told.Before.CostPerHour)
	}
	if after.Cost < told.BoundPerHour-1e-6 {
		s.Errorf("%s: the nodes cost $%v/h, less than the bound $%v/h", what, after.Cost, told.BoundPerHour)
	}
}

func (s *planned) table(told report, before, after happened, took time.Duration) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\tTOLD\tHAPPENED\n")
	for _, row := range []struct {
		name string
		told any
		is   any
	}{
		{"nodes before", told.Before.Nodes, before.Nodes},
		{"$/h before", fmt.Sprintf("%.4f", told.Before.CostPerHour), fmt.Sprintf("%.4f", before.Cost)},
		{"nodes at rest", told.AtRest.Nodes, after.Nodes},
		{"$/h at rest", fmt.Sprintf("%.4f", told.AtRest.CostPerHour), fmt.Sprintf("%.4f", after.Cost)},
		{"launched", told.AtRest.Launched, after.Launched - before.Launched},
		{"evicted pods", told.AtRest.Evictions, after.Evictions - max(before.Evictions, podsOfPlan)},
	} {
		fmt.Fprintf(w, "%s\t%v\t%v\n", row.name, row.told, row.is)
	}
	_ = w.Flush() // into memory
	fmt.Fprintf(&b, "it took %.0f s\n", took.Seconds())
	nodes := s.nodes(s.view)
	slices.SortFunc(nodes, func(x, y corev1.Node) int { return cmp.Compare(x.Name, y.Name) })
	for _, n := range nodes {
		fmt.Fprintf(&b, "node %s  %s\n", n.Name, offering(&n))
	}
	return b.String()
}
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	return l.Addr().String()
}
