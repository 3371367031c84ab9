// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"karpenter/sandbox/fleet"
	"karpenter/sandbox/process"
)

// figures are the results of one part of Disrupt.
type figures struct {
	Part   string
	Budget string
	Failed string `json:",omitempty"`

	Pods, PodsLeft int     // asked for at first, and after the order
	GrownSeconds   float64 // from the first pods to all running
	Nodes          int     // when the order was given
	NodesLeft      int     // when all was at rest again
	Seconds        float64 // from the order to the last change

	Growing happened // until the order
	Ordered happened // from then on

	Before *worth `json:",omitempty"` // when the order was given
	After  *worth `json:",omitempty"` // at rest again

	MemoryP95  int64 // bytes resident, of samples taken every second
	MemoryPeak int64
	CPUSeconds float64 // of the controller, since its start
	CPUOrdered float64 // since the order
	Crashes    int
}

// happened is a fleet.Account in a form to be kept.
type happened struct {
	Launched, Removed  int
	Evicted, Lost      int // pods
	MostWaiting        int // pods at once
	LongestWaitSeconds float64
	MostDisrupted      int // nodes at once
	Allowed            int // at that time
}

func happenedIn(a *fleet.Account) happened {
	return happened{
		Launched: a.Launched, Removed: a.Removed, Evicted: a.Evicted, Lost: a.Lost, MostWaiting: a.MostWaiting,
		LongestWaitSeconds: a.LongestWait.Seconds(), MostDisrupted: a.MostDisrupted, Allowed: a.Allowed,
	}
}

// worth is the price of all nodes, as reported by the controller's program. Dollars are per
// hour.
type worth struct {
	Nodes int     `json:"nodes"`
	Cost  float64 `json:"costPerHour"`
	Fresh struct {
		Nodes   int     `json:"nodes"`
		Cost    float64 `json:"costPerHour"`
		Pending int     `json:"pending"`
	} `json:"fresh"`
	Bound float64 `json:"boundPerHour"`
	Kept  int     `json:"kept"`
}

// gap is how far the cost is above the bound, and "unknown" without a bound.
func (w *worth) gap() string {
	if w.Bound <= 0 {
		return "unknown"
	}
	return percent(w.Cost/w.Bound - 1)
}

// askWorth keeps the situation the controller is in as a file of that name in the cluster's folder, and asks about it.
func (st *stage) askWorth(ctx context.Context, name string) (*worth, error) {
	situation, err := st.session.Ask(ctx, append([]string{"snapshot"}, st.session.AskArguments()...)...)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(filepath.Dir(st.session.Kubeconfig()), name)
	if err := os.WriteFile(file, situation, 0o600); err != nil {
		return nil, err
	}
	said, err := st.session.Ask(ctx, "explain", "cluster", "--file", file, "--output", "json")
	if err != nil {
		return nil, err
	}
	w := &worth{}
	if err := json.Unmarshal(said, w); err != nil {
		return nil, fmt.Errorf("read what explain cluster says: %w", err)
	}
	return w, nil
}

// samples are sizes in bytes. It is safe for concurrent use.
type samples struct {
	mu  sync.Mutex
	all []int64
}

// sampleMemory notes the process's resident memory every second until ctx is done.
func sampleMemory(ctx context.Context, p *process.Process) *samples {
	s := &samples{}
	go func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			if used, err := p.Usage(); err == nil {
				s.add(used.Memory)
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	return s
}

func (s *samples) add(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, bytes)
}

// percentile returns the least sample that at least p of a hundred do not exceed; 0 when there are none.
func (s *samples) percentile(p int) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s.all))
	return sorted[(len(sorted)*p+99)/100-1]
}

// writeFigures prints all parts as one table, in Markdown.
func writeFigures(w io.Writer, all []*figures) error {
	table := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	line := func(name string, value func(*figures) string) {
		cells := []string{name}
		for _, f := range all {
			cells = append(cells, value(f))
		}
		fmt.Fprintf(table, "| %s\t|\n", strings.Join(cells, "\t| "))
	}
	fmt.Fprint(w, "\n")
	line("", func(f *figures) string { return f.Part })
	line("---", func(*figures) string { return "--:" })
	line("budget", func(f *figures) string { return f.Budget })
	line("pods, then", func(f *figures) string { return fmt.Sprintf("%d, %d", f.Pods, f.PodsLeft) })
	line("nodes, then", func(f *figures) string { return fmt.Sprintf("%d, %d", f.Nodes, f.NodesLeft) })
	line("scale-out, all running after", func(f *figures) string { return fmt.Sprintf("%.1f s", f.GrownSeconds) })
	line("until the last change", func(f *figures) string { return fmt.Sprintf("%.1f s", f.Seconds) })
	line("nodes launched, removed", func(f *figures) string { return fmt.Sprintf("%d, %d", f.Ordered.Launched, f.Ordered.Removed) })
	line("pods evicted", func(f *figures) string { return fmt.Sprint(f.Ordered.Evicted) })
	line("pods lost with their node", func(f *figures) string { return fmt.Sprint(f.Ordered.Lost) })
	line("pods without a node, at most", func(f *figures) string { return fmt.Sprint(f.Ordered.MostWaiting) })
	line("… and for at most", func(f *figures) string { return fmt.Sprintf("%.1f s", f.Ordered.LongestWaitSeconds) })
	line("nodes disrupted at once (allowed)", func(f *figures) string {
		return fmt.Sprintf("%d (%d)", f.Ordered.MostDisrupted, f.Ordered.Allowed)
	})
	line("$/h, then", func(f *figures) string { return pair(f, func(w *worth) string { return fmt.Sprintf("%.3f", w.Cost) }) })
	line("… of a fresh plan", func(f *figures) string {
		return pair(f, func(w *worth) string { return fmt.Sprintf("%.3f", w.Fresh.Cost) })
	})
	line("… at least", func(f *figures) string { return pair(f, func(w *worth) string { return fmt.Sprintf("%.3f", w.Bound) }) })
	line("above the least", func(f *figures) string { return pair(f, func(w *worth) string { return w.gap() }) })
	line("controller's memory, p95", func(f *figures) string { return fmt.Sprintf("%d MiB", f.MemoryP95>>20) })
	line("… at most", func(f *figures) string { return fmt.Sprintf("%d MiB", f.MemoryPeak>>20) })
	line("its CPU time, after the order", func(f *figures) string { return fmt.Sprintf("%.1f s, %.1f s", f.CPUSeconds, f.CPUOrdered) })
	line("failed", func(f *figures) string { return strings.ReplaceAll(f.Failed, "\n", "; ") })
	return table.Flush()
}

// pair is what there is to say before and after the order; nothing where there are no nodes.
func pair(f *figures, say func(*worth) string) string {
	var said []string
	for _, w := range []*worth{f.Before, f.After} {
		if w != nil && w.Bound > 0 {
			said = append(said, say(w))
		}
	}
	return strings.Join(said, ", ")
}

func percent(fraction float64) string {
	if math.Abs(fraction) < 0.00005 {
		fraction = 0 // no minus before a zero
	}
	return fmt.Sprintf("%.2f %%", 100*fraction)
}

// keepFigures writes figures to a file as JSON, unless path is empty.
func keepFigures(path string, all any) error {
	if path == "" {
		return nil
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
