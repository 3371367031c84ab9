// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"karpenter/sandbox/session"
)

// load is what the controller needed in one phase.
type load struct {
	Phase             string
	Seconds           float64
	Nodes, NodesAfter int
	Pods, PodsAfter   int

	MemoryP95, MemoryMost int64 // bytes resident, of samples taken every second
	CPUSeconds            float64
	Restarts              int // of the controller: CPU and requests are those since the last

	Requests   map[string]float64 // to the API server, by method
	CloudCalls map[string]float64 `json:",omitempty"` // by operation
	Series     int                // on the metrics page at its end
	PageBytes  int                // its size

	Live  int64              `json:",omitempty"` // bytes of the heap that are in use when garbage has been collected
	Took  map[string]float64 `json:",omitempty"` // seconds, by what
	Plans map[string]plans   `json:",omitempty"` // by what they decide

	Machine1, Machine2 float64 // load average of the last minute at the phase's begin and end: also others' work
}

// CPU is in seconds per minute.
func (l *load) cpu() float64 { return l.perMinute(l.CPUSeconds) }

func (l *load) perMinute(n float64) float64 { return n / l.Seconds * 60 }

func (l *load) line() string {
	return fmt.Sprintf("%s: %.0f s, %d nodes, memory p95 %d MiB, most %d MiB, CPU %.1f s a minute, %.0f requests a minute, load %.1f to %.1f",
		l.Phase, l.Seconds, l.NodesAfter, l.MemoryP95>>20, l.MemoryMost>>20, l.cpu(), l.perMinute(sum(l.Requests)), l.Machine1, l.Machine2)
}

// plans are decisions, and how long they took together.
type plans struct {
	Count   int
	Seconds float64
}

func plansIn(m *session.Metrics) map[string]plans {
	out := map[string]plans{}
	for what, name := range map[string]string{
		"pods": "karpenter_scheduler_scheduling_duration_seconds", "nodes": "karpenter_voluntary_disruption_decision_evaluation_duration_seconds",
	} {
		count, seconds := m.Observed(name)
		out[what] = plans{count, seconds}
	}
	return out
}

func plansSince(before, after map[string]plans) map[string]plans {
	out := map[string]plans{}
	for what, p := range after {
		if n := p.Count - before[what].Count; n > 0 {
			out[what] = plans{n, p.Seconds - before[what].Seconds}
		}
	}
	return out
}

func sum(of map[string]float64) float64 {
	total := 0.0
	for _, n := range of {
		total += n
	}
	return total
}

// meter is a phase that goes on.
type meter struct {
	load
	began    time.Time
	cpu      time.Duration
	requests map[string]float64
	calls    map[string]float64
	plans    map[string]plans
	memory   int // samples before
	crashes  int // before
}

func startMeter(ctx context.Context, st *stage, name string) (*meter, error) {
	m := &meter{load: load{Phase: name}, began: time.Now(), memory: st.memory.len(), crashes: st.crashes()}
	used, err := st.session.Controller().Usage()
	if err != nil {
		return nil, err
	}
	m.cpu = used.CPU
	metrics, err := st.session.Metrics(ctx)
	if err != nil {
		return nil, err
	}
	m.requests, m.plans = metrics.Requests("method"), plansIn(metrics)
	if m.calls, err = cloudCalls(ctx, st.session.SimulatorURL()); err != nil {
		return nil, err
	}
	if m.Nodes, m.Pods, err = st.count(ctx); err != nil {
		return nil, err
	}
	m.Machine1, err = loadAverage()
	return m, err
}

// read returns what was needed since the begin.
func (m *meter) read(ctx context.Context, st *stage) (*load, error) {
	l := m.load
	if l.Restarts = st.crashes() - m.crashes; l.Restarts > 0 {
		m.cpu, m.requests, m.plans = 0, nil, nil
	}
	l.Seconds = time.Since(m.began).Seconds()
	used, err := st.session.Controller().Usage()
	if err != nil {
		return nil, err
	}
	l.CPUSeconds = (used.CPU - m.cpu).Seconds()
	metrics, err := st.session.Metrics(ctx)
	if err != nil {
		return nil, err
	}
	l.Requests = since(m.requests, metrics.Requests("method"))
	l.Plans = plansSince(m.plans, plansIn(metrics))
	l.PageBytes = len(metrics.Page)
	for line := range strings.Lines(string(metrics.Page)) {
		if !strings.HasPrefix(line, "#") {
			l.Series++
		}
	}
	calls, err := cloudCalls(ctx, st.session.SimulatorURL())
	if err != nil {
		return nil, err
	}
	l.CloudCalls = since(m.calls, calls)
	memory := st.memory.from(m.memory)
	l.MemoryP95, l.MemoryMost = memory.percentile(95), memory.percentile(100)
	if l.NodesAfter, l.PodsAfter, err = st.count(ctx); err != nil {
		return nil, err
	}
	l.Machine2, err = loadAverage()
	return &l, err
}

// viewed counts instances, and pods that run.
func (st *stage) viewed(context.Context) (nodes, pods int, err error) {
	view := st.source.View()
	all := view.Totals()
	return len(view.Machines), all.Running, nil
}

// since is what has been added, without what has not.
func since(before, after map[string]float64) map[string]float64 {
	out := map[string]float64{}
	for name, n := range after {
		if n != before[name] {
			out[name] = n - before[name]
		}
	}
	return out
}

// cloudCalls asks the simulated AWS at the URL how often each operation was called; "" is none.
func cloudCalls(ctx context.Context, url string) (map[string]float64, error) {
	if url == "" {
		return nil, nil
	}
	page, err := session.Read(ctx, url+"/_awssim/calls")
	if err != nil {
		return nil, err
	}
	out := map[string]float64{}
	if err := json.Unmarshal(page, &out); err != nil {
		return nil, fmt.Errorf("read the calls of the simulated AWS: %w", err)
	}
	return out, nil
}

// loadAverage returns how many threads of the computer wanted to run in the last minute, zero where the system does not
// say.
func loadAverage() (float64, error) {
	text, err := os.ReadFile("/proc/loadavg")
	if os.IsNotExist(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(text), " ")
	return strconv.ParseFloat(first, 64)
}

// writeLoads prints all phases as one table, in Markdown.
func writeLoads(w io.Writer, all []*load) error {
	table := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	row := func(cells ...string) { fmt.Fprintf(table, "| %s\t|\n", strings.Join(cells, "\t| ")) }
	fmt.Fprint(w, "\n")
	row("phase", "lasts", "nodes", "pods", "memory p95, most", "CPU a minute", "API requests a minute", "AWS calls a minute", "series", "load", "restarts")
	row("---", "--:", "--:", "--:", "--:", "--:", "--:", "--:", "--:", "--:", "--:")
	for _, l := range all {
		row(l.Phase, fmt.Sprintf("%.0f s", l.Seconds), fmt.Sprintf("%d → %d", l.Nodes, l.NodesAfter), fmt.Sprintf("%d → %d", l.Pods, l.PodsAfter),
			fmt.Sprintf("%d, %d MiB", l.MemoryP95>>20, l.MemoryMost>>20), fmt.Sprintf("%.1f s", l.cpu()),
			fmt.Sprintf("%.0f", l.perMinute(sum(l.Requests))), fmt.Sprintf("%.0f", l.perMinute(sum(l.CloudCalls))),
			fmt.Sprint(l.Series), fmt.Sprintf("%.1f, %.1f", l.Machine1, l.Machine2), fmt.Sprint(l.Restarts))
	}
	return table.Flush()
}

// len is how many samples there are.
func (s *samples) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all)
}

// from are the samples after the first n.
func (s *samples) from(n int) *samples {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &samples{all: append([]int64(nil), s.all[n:]...)}
}
