// SPDX-License-Identifier: Apache-2.0

package savings

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes/scheme"
)

var update = flag.Bool("update", false, "replace the reports in testdata")

// foreign reads a dump of a cluster that was not made by the tools of this project:
// what kubectl get nodes,pods,deployments,daemonsets,pdb,namespaces -A -o json prints.
func foreign(t *testing.T, name string) *Cluster {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name+".json"))
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

// TestSavingsOfOtherClusters compares the reports about clusters of node groups, Spot,
// upstream Karpenter, another cloud, and machines without a cloud with those in
// testdata.
func TestSavingsOfOtherClusters(t *testing.T) {
	for _, c := range []struct {
		name   string
		prices map[string]float64
	}{
		{"eks-managed-groups", nil},
		{"eks-spot-mixed", nil},
		{"eks-karpenter", nil},
		{"gke", map[string]float64{"e2-standard-4": 0.147, "n2-standard-8": 0.428}},
		{"odd", nil},
		{"eks-old-labels", nil}, // a node of Kubernetes 1.16, as another project's tests have it
	} {
		t.Run(c.name, func(t *testing.T) {
			o := options()
			o.Prices = c.prices
			r := report(t, foreign(t, c.name), o)
			for format, write := range map[string]func(*strings.Builder) error{
				"txt": func(b *strings.Builder) error { return r.Text(b, 80) },
				"md":  func(b *strings.Builder) error { return r.Markdown(b) },
			} {
				var b strings.Builder
				if err := write(&b); err != nil {
					t.Fatal(err)
				}
				for i, line := range strings.Split(b.String(), "\n") {
					if n := len([]rune(line)); format == "txt" && n > 80 {
						t.Errorf("line %d has %d columns: %s", i+1, n, line)
					}
				}
				path := filepath.Join("testdata", c.name+"."+format)
				if *update {
					if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(path)
				if err != nil || string(want) != b.String() {
					t.Errorf("the report differs from %s (%v); if it is meant to, run: go test ./cmd/karpenter/savings -update\n%s", path, err, b.String())
				}
			}
			text, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			var back Report
			if err := json.Unmarshal(text, &back); err != nil || back.Now.Cost != r.Now.Cost || len(back.Plans) != len(r.Plans) {
				t.Errorf("JSON: %v: %s", err, text)
			}
		})
	}
}

// TestSavingsDemandsOfCapacity: pods of Spot node groups are priced on demand in the
// line that reports it, and run on Spot in the others; nothing is left out.
func TestSavingsDemandsOfCapacity(t *testing.T) {
	for _, name := range []string{"eks-spot-mixed", "eks-karpenter"} {
		r := report(t, foreign(t, name), options())
		for _, p := range r.Plans {
			spot := 0
			for _, b := range p.Buy {
				if b.CapacityType == "spot" {
					spot += b.Count
				}
			}
			if p.Unplaced > 0 || (spot > 0) != (p.Name != "on demand") {
				t.Errorf("%s, plan %s: %d pods without a place, %d Spot nodes", name, p.Name, p.Unplaced, spot)
			}
		}
	}
}

// TestSavingsWithoutPrices: a cluster of which no price is known gets the flags to
// give.
func TestSavingsWithoutPrices(t *testing.T) {
	_, err := Of(foreign(t, "gke"), options())
	for _, want := range []string{"7 nodes", `"gce"`, "--price e2-standard-4=DOLLARS --price n2-standard-8=DOLLARS"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %q in it", err, want)
		}
	}
}

// TestSavingsOddObjects: what cannot be compared or priced is reported, and is
// in no figure.
func TestSavingsOddObjects(t *testing.T) {
	r := report(t, foreign(t, "odd"), options())
	// 5 of norequests, 2 of limits-only, 9 of app, 2 of kafka, debug, legacy and huge-1
	if r.Now.Pods != 21 || r.Now.Nodes != 5 {
		t.Errorf("%d pods on %d nodes, want 21 on 5: without terminating, mirror, failed and Windows pods", r.Now.Pods, r.Now.Nodes)
	}
	if r.Now.Unpriced["16cpu-62Gi"] != 3 || r.Now.Unpriced["unknown"] != 1 {
		t.Errorf("unpriced: %v", r.Now.Unpriced)
	}
	var text strings.Builder
	if err := r.Text(&text, 80); err != nil {
		t.Fatal(err)
	}
	said := strings.Join(strings.Fields(text.String()), " ")
	for _, want := range []string{
		"1 node of the control plane", "1 node of a virtual kubelet", "1 node with Windows",
		"4 nodes of unknown price (16cpu-62Gi, unknown) not in the cost", "1 pod on nodes that do not exist",
		"1 pod that no plan has a place for: prod/huge-1",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("the report does not say %q:\n%s", want, text.String())
		}
	}
	o := options()
	o.Prices = map[string]float64{"16cpu-62Gi": 0.7, "unknown": 0.3}
	if priced := report(t, foreign(t, "odd"), o); len(priced.Now.Unpriced) > 0 || priced.Now.Cost < 2.59 {
		t.Errorf("with prices given: %+v", priced.Now)
	}
}
