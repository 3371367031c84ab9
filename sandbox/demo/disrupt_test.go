// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"karpenter/sandbox/fleet"
)

func TestPercentile(t *testing.T) {
	s := &samples{}
	if got := s.percentile(95); got != 0 {
		t.Errorf("of none: %d", got)
	}
	for i := range 100 {
		s.add(int64(100 - i))
	}
	for p, want := range map[int]int64{1: 1, 50: 50, 95: 95, 100: 100} {
		if got := s.percentile(p); got != want {
			t.Errorf("percentile %d is %d, want %d", p, got, want)
		}
	}
	few := &samples{all: []int64{7, 3, 5}}
	if got := few.percentile(95); got != 7 {
		t.Errorf("of three: %d, want the largest", got)
	}
}

// TestAtRest: rest begins again with every change of an instance or a pod.
func TestAtRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		done := atRest(3, time.Minute)
		step := func(v fleet.View, after time.Duration, want string) {
			t.Helper()
			time.Sleep(after)
			if got := done(&v); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		}
		going := runs(3)
		going.Machines[0].State = fleet.Removing
		fewer := runs(3)
		fewer.Machines[0].Pods = 2
		step(runs(2), time.Hour, "2 of 3 pods run, 0 start, 0 wait")
		step(runs(3), time.Second, "something happened 1s ago")
		step(runs(3), 50*time.Second, "something happened 51s ago")
		step(going, 8*time.Second, "1 of 1 nodes come or go")
		step(fewer, 8*time.Second, "something happened 0s ago")
		step(fewer, 59*time.Second, "something happened 59s ago")
		step(fewer, time.Second, "")
	})
}

func TestReplaced(t *testing.T) {
	p := &part{old: map[string]bool{"c1": true}}
	v := runs(1)
	if got := p.replaced(&v); got != "1 of 1 nodes are the old ones" {
		t.Error(got)
	}
	v.Machines[0].Name = "c2"
	if got := p.replaced(&v); got != "" {
		t.Error(got)
	}
}

// TestMistakesOfDisruption are found before a cluster is started.
func TestMistakesOfDisruption(t *testing.T) {
	for _, c := range []struct {
		change func(*Disruption)
		want   string
	}{
		{func(d *Disruption) { d.Parts = []string{"drift", "float"} }, `no part "float"; there are consolidate, `},
		{func(d *Disruption) { d.Left = 501 }, "of 500 pods 501 cannot be left"},
		{func(d *Disruption) { d.Drifted = 0 }, "each part needs something to run"},
		{func(d *Disruption) { d.Within = time.Minute }, "cannot end with 1m0s of rest"},
	} {
		d := DefaultDisruption()
		if err := d.Validate(); err != nil {
			t.Fatal(err)
		}
		c.change(&d)
		if err := Disrupt(t.Context(), Options{Disruption: d}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}

func TestFigures(t *testing.T) {
	consolidated := &figures{
		Part: "consolidate", Budget: "10%", Pods: 120, PodsLeft: 80, GrownSeconds: 12, Nodes: 6, NodesLeft: 4, Seconds: 61.25,
		Ordered: happenedIn(&fleet.Account{
			Launched: 1, Removed: 3, Evicted: 25, MostWaiting: 9, LongestWait: 1500 * time.Millisecond, MostDisrupted: 1, Allowed: 1,
		}),
		Before: &worth{Nodes: 6, Cost: 12, Bound: 10}, After: &worth{Nodes: 4, Cost: 8, Bound: 8}, MemoryP95: 100 << 20, MemoryPeak: 120 << 20,
		CPUSeconds: 10, CPUOrdered: 4,
	}
	emptied := &figures{Part: "empty", Budget: "100%", Failed: "too late", Before: &worth{Nodes: 6, Cost: 12, Bound: 10}}
	var out strings.Builder
	if err := writeFigures(&out, []*figures{consolidated, emptied}); err != nil {
		t.Fatal(err)
	}
	squeezed := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"| | consolidate | empty |", "| until the last change | 61.2 s | 0.0 s |", "| pods evicted | 25 | 0 |", "| … and for at most | 1.5 s |",
		"| nodes disrupted at once (allowed) | 1 (1) |", "| $/h, then | 12.000, 8.000 | 12.000 |", "| above the least | 20.00 %, 0.00 % | 20.00 % |",
		"| controller's memory, p95 | 100 MiB |", "| its CPU time, after the order | 10.0 s, 4.0 s |", "| failed | | too late |",
	} {
		if !strings.Contains(squeezed, want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	path := filepath.Join(t.TempDir(), "figures.json")
	if err := keepFigures(path, []*figures{consolidated}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), `"Evicted": 25`) {
		t.Errorf("%v: %s", err, text)
	}
}

// TestParts: each has steps, and says under which budget it is played.
func TestParts(t *testing.T) {
	d := DefaultDisruption()
	for name, want := range map[string]string{
		"consolidate": "10% 1000 700", "consolidate-unlimited": "100% 1000 700", "empty": "100% 500 0", "drift": "10% 200 200",
	} {
		p := d.part(name)
		if got := fmt.Sprint(p.figures.Budget, " ", p.figures.Pods, " ", p.figures.PodsLeft); got != want || len(p.steps) != 3 {
			t.Errorf("%s: %s, %d steps; want %s", name, got, len(p.steps), want)
		}
	}
}
