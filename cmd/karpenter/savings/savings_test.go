// SPDX-License-Identifier: Apache-2.0

package savings

import (
	"bytes"
	"compress/gzip"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"karpenter/model"
	"karpenter/solve"
)

func options() Options {
	return Options{SpotDiscount: 0.6, Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Place: func(s *model.Snapshot, p model.Policy) *model.Plan {
		return new(solve.Planner).Place(s, p)
	}}
}

// nodeGroups is a cluster of two node groups and a control plane.
func nodeGroups(t *testing.T) *Cluster {
	t.Helper()
	f, err := os.Open("../../../docs/savings/nodegroups.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c := &Cluster{}
	if err := c.Read(f, scheme.Scheme); err != nil {
		t.Fatal(err)
	}
	return c
}

func report(t *testing.T, c *Cluster, o Options) Report {
	t.Helper()
	r, err := Of(c, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range r.Plans {
		bought, nodes := 0.0, 0
		for _, b := range p.Buy {
			bought, nodes = bought+b.Cost, nodes+b.Count
		}
		if p.Bound > p.Cost+1e-9 || nodes != p.Nodes || bought-p.Cost > 1e-6 || p.Cost-bought > 1e-6 {
			t.Errorf("plan %s: the figures do not fit: %+v", p.Name, p)
		}
	}
	return r
}

// TestSavingsOfNodeGroups: the present cost is that of the price list, each kind
// of plan is at most as expensive as the one before, and all pods have a place.
func TestSavingsOfNodeGroups(t *testing.T) {
	r := report(t, nodeGroups(t), options())
	const want = 6*0.192 + 2*0.504 // m5.xlarge and r5.2xlarge
	if d := r.Now.Cost - want; d > 1e-9 || d < -1e-9 || r.Now.Nodes != 8 || r.Now.Pods != 14 || r.Now.NodeGroup != 2 {
		t.Errorf("now %+v, want $%v/h", r.Now, want)
	}
	if len(r.Plans) != 3 {
		t.Fatalf("%d plans", len(r.Plans))
	}
	cost := r.Now.Cost
	for _, p := range r.Plans {
		if p.Cost > cost || p.Cost == 0 || p.Unplaced > 0 {
			t.Errorf("plan %s costs $%v/h after $%v/h, %d pods without a place", p.Name, p.Cost, cost, p.Unplaced)
		}
		cost = p.Cost
	}
	if best := r.Best(); best == nil || best.Name != "with Spot and Arm" {
		t.Errorf("best is %+v", best)
	}
	var text strings.Builder
	if err := r.Text(&text, 80); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"shop/db", "batch/report-1", "shop/bare", "shop/careless-1", "1 node of the control plane", "workload=data"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("lacks %q:\n%s", want, text.String())
		}
	}
	for _, line := range strings.Split(text.String(), "\n") {
		if len([]rune(line)) > 80 {
			t.Errorf("more than 80 columns: %s", line)
		}
	}
}

// TestSavingsRespectPods: who must not use Spot or Arm, or must stay in a zone or
// with a taint, does so in every plan.
func TestSavingsRespectPods(t *testing.T) {
	c := nodeGroups(t)
	for _, p := range running(c.Pods, nodesByName(c)) {
		for _, k := range kinds() {
			got := p.waiting(k).Spec.NodeSelector
			owner := p.OwnerReferences
			safe := len(owner) > 0 && owner[0].Kind == "ReplicaSet"
			if (got["karpenter.sh/capacity-type"] == "on-demand") != (k.spot && !safe) {
				t.Errorf("%s %s: selector %v", k.name, p.Name, got)
			}
			if (got[corev1.LabelArchStable] == "amd64") == k.arm {
				t.Errorf("%s %s: selector %v", k.name, p.Name, got)
			}
			if strings.HasPrefix(p.Name, "db-") != (got[corev1.LabelTopologyZone] == "us-east-1a") || len(p.waiting(k).Spec.Volumes) > 0 {
				t.Errorf("%s %s: selector %v", k.name, p.Name, got)
			}
		}
	}
}

func nodesByName(c *Cluster) map[string]*node {
	on, _ := (&Report{}).nodes(c)
	return on
}

// TestSavingsWithoutRoom: pods that no node can take are counted, and no plan
// that leaves them out is the best.
func TestSavingsWithoutRoom(t *testing.T) {
	c := nodeGroups(t)
	for _, p := range c.Pods {
		if p.Name == "web-0" {
			p.Spec.NodeSelector = map[string]string{"team": "gone"}
		}
	}
	r := report(t, c, options())
	for _, p := range r.Plans {
		if p.Unplaced != 1 {
			t.Errorf("plan %s leaves out %d", p.Name, p.Unplaced)
		}
	}
	if r.Best() != nil {
		t.Errorf("best is %+v", r.Best())
	}
}

// TestSavingsElsewhere: of another region the prices stand in, of another cloud
// they are asked for.
func TestSavingsElsewhere(t *testing.T) {
	c := nodeGroups(t)
	for _, n := range c.Nodes {
		n.Labels[corev1.LabelTopologyRegion] = "eu-west-1"
		n.Labels[corev1.LabelTopologyZone] = "eu-west-1a"
	}
	if r := report(t, c, options()); r.PriceRegion != "us-east-1" || !strings.Contains(strings.Join(r.Notes, " "), "prices of eu-west-1 are not embedded") || r.Plans[0].Unplaced > 0 {
		t.Errorf("%+v", r)
	}
	for _, n := range c.Nodes {
		n.Labels[corev1.LabelInstanceTypeStable] = "e2-standard-4"
	}
	if _, err := Of(c, options()); err == nil || !strings.Contains(err.Error(), "--price e2-standard-4=DOLLARS") {
		t.Errorf("error is %v", err)
	}
	o := options()
	o.Prices = map[string]float64{"e2-standard-4": 0.134}
	if r := report(t, c, o); r.Now.Cost < 8*0.134-1e-9 || r.Plans[0].Cost == 0 || r.Plans[0].Cost > r.Now.Cost {
		t.Errorf("%+v", r)
	}
	alone := &Cluster{Nodes: c.Nodes}
	if _, err := Of(alone, options()); err == nil || !strings.Contains(err.Error(), "and no pods") {
		t.Errorf("without pods the error is %v", err)
	}
	if _, err := Of(&Cluster{}, options()); err == nil || !strings.Contains(err.Error(), "found no nodes") {
		t.Errorf("error is %v", err)
	}
}

// TestReadRedirected: what PowerShell writes to a file is UTF-16, and other programs begin UTF-8 with a mark, end lines
// with a carriage return, or compress.
func TestReadRedirected(t *testing.T) {
	text, err := os.ReadFile("../../../docs/savings/nodegroups.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, encoding := range map[string]encoding.Encoding{
		"UTF-16": unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), "UTF-8": unicode.UTF8, "UTF-8 with a mark": unicode.UTF8BOM,
	} {
		encoded, err := encoding.NewEncoder().Bytes(text)
		if err != nil {
			t.Fatal(err)
		}
		var compressed bytes.Buffer
		w := gzip.NewWriter(&compressed)
		if _, err := w.Write(encoded); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		for how, file := range map[string][]byte{"plain": encoded, "gzip": compressed.Bytes(), "lines of Windows": bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))} {
			var c Cluster
			if err := c.Read(bytes.NewReader(file), scheme.Scheme); err != nil || len(c.Nodes) == 0 {
				t.Errorf("%s, %s: %d nodes, %v", name, how, len(c.Nodes), err)
			}
		}
		var c Cluster
		if err := c.Read(bytes.NewReader(compressed.Bytes()[:compressed.Len()/2]), scheme.Scheme); err == nil {
			t.Errorf("%s: half of a compressed file is taken for a whole one", name)
		}
	}
}

// TestReadObjects: lists, items without a kind, arrays, YAML and other kinds are read.
func TestReadObjects(t *testing.T) {
	for text, want := range map[string]int{
		`{"kind":"NodeList","apiVersion":"v1","items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]}`: 2,
		"apiVersion: v1\nkind: Node\nmetadata: {name: a}\n---\n---\nkind: ConfigMap\napiVersion: v1\n":        1,
		`{"kind":"List","apiVersion":"v1","items":[]}`:                                                        0,
		`[{"kind":"Node","apiVersion":"v1","metadata":{"name":"a"}}]`:                                         1,
		`{"kind":"List","apiVersion":"v1","items":[null,{"kind":"Node","apiVersion":"v1"}]}null`:              1,
		"": 0,
	} {
		c := &Cluster{}
		if err := c.Read(strings.NewReader(text), scheme.Scheme); err != nil || len(c.Nodes) != want {
			t.Errorf("%s: %d nodes, %v", text, len(c.Nodes), err)
		}
	}
	for text, want := range map[string]string{
		`{"metadata":{}}`: "document 1: no kind in it",
		`{"kind":"List","apiVersion":"v1","items":[{"kind":"Node","apiVersion":"v1","spec":7}]}`: "document 1: item 1: Node: ",
		`[1]`: "document 1: ",
		`{`:   "document 1: ",
	} {
		if err := (&Cluster{}).Read(strings.NewReader(text), scheme.Scheme); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
