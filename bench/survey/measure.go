// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"karpenter/bench/judge"
	"karpenter/bench/meter"
	"karpenter/bench/ours"
	"karpenter/bench/upstream"
	"karpenter/bench/wild"
	"karpenter/bench/workload"
)

// Names of the engines.
const (
	Ours     = "ours"
	Upstream = "upstream"
)

// Measurement is what one engine did with one problem.
type Measurement struct {
	wild.Case
	Engine string `json:"engine"`

	Pods      int `json:"pods"`      // pending, or in a disruption family those that run
	Scheduled int `json:"scheduled"` // pods with a place afterwards

	// FirstCPU is the CPU time in seconds of the first decision, in which nothing
	// compiled is remembered, and WarmCPU that of the same decision repeated. It is
	// 0 for upstream, which remembers nothing, and if the first decision took more
	// than half of the limit.
	// In a disruption family FirstCPU is of the first decision, WarmCPU of the
	// slowest later one, and RestCPU of all until there is nothing left to disrupt.
	FirstCPU  float64 `json:"firstCPU"`
	WarmCPU   float64 `json:"warmCPU"`
	RestCPU   float64 `json:"restCPU,omitempty"`
	Decisions int     `json:"decisions"`
	Limit     float64 `json:"limit"`     // CPU seconds one decision can take
	Seconds   float64 `json:"seconds"`   // elapsed, of the first decision
	PeakBytes uint64  `json:"peakBytes"` // resident memory during the first decision, with the objects of the problem

	StartBytes uint64 `json:"startBytes"` // resident memory just before it

	NewNodes int      `json:"newNodes"` // launched, or in a disruption family those left
	Price    float64  `json:"price"`    // dollars per hour, of them
	Bound    float64  `json:"bound"`    // dollars per hour that no plan can undercut; 0 = none is known
	Status   Status   `json:"status"`
	Note     string   `json:"note,omitempty"` // details of the status
	Faults   []string `json:"faults,omitempty"`
}

// Status is how a measurement ended.
type Status string

// The statuses.
const (
	OK       Status = "ok"
	Late     Status = "no plan in time"
	Large    Status = "too much memory"
	Invalid  Status = "invalid plan"
	Crashed  Status = "crashed"
	Unwarm   Status = "no second plan in time" // the first one is fine
	Restless Status = "not at rest in time"    // the first decision is fine
	Skipped  Status = "skipped"                // a smaller problem reached a limit
)

// Planned reports whether there is a first plan to judge the engine by.
func (m *Measurement) Planned() bool {
	return m.Status == OK || m.Status == Unwarm || m.Status == Restless || m.Status == Invalid
}

// Gap returns how far the price can be from the optimum, as a fraction of the
// bound, and false if no bound is known.
func (m *Measurement) Gap() (float64, bool) {
	if m.Bound <= 0 || !m.Planned() {
		return 0, false
	}
	return m.Price/m.Bound - 1, true
}

// Limits of one decision.
type Limits struct {
	CPU    time.Duration
	Memory uint64 // resident, bytes
}

// child measures in this process, and prints the measurement even when a limit
// ends it.
type child struct {
	mu     sync.Mutex // held while the measurement is printed by the watcher
	m      Measurement
	out    io.Writer
	limits Limits
}

// Child measures one engine on one problem in this process and prints the
// Measurement to out. When a decision reaches a limit, the process ends.
func Child(c wild.Case, engine string, limits Limits, out io.Writer) error {
	k := &child{m: Measurement{Case: c, Engine: engine, Limit: limits.CPU.Seconds()}, out: out, limits: limits}
	w, err := wild.Draw(c)
	if err != nil {
		return err
	}
	k.m.Pods = w.Pods
	if wild.Disruption(c.Family) {
		err = k.rest(w)
	} else {
		err = k.place(w)
	}
	if err != nil {
		return err
	}
	return k.print()
}

// Write writes the situation of a problem into a file that "karpenter plan
// --snapshot" reads.
func Write(c wild.Case, file string) error {
	w, err := wild.Draw(c)
	if err != nil {
		return err
	}
	e, err := ours.New(w)
	if err != nil {
		return err
	}
	e.News(w)
	return e.WriteScenario(file)
}

func (k *child) print() error { return json.NewEncoder(k.out).Encode(&k.m) }

// engine is either of the two.
type engine interface {
	News(*workload.Workload)
	Decide() error
	Plan() *judge.Plan
}

// place measures a decision about pending pods, and its repetition.
func (k *child) place(w *workload.Workload) error {
	e, err := k.take(w)
	if err != nil {
		return err
	}
	e.News(w)
	cpu, elapsed, err := k.timed(Late, e.Decide)
	if err != nil {
		return err
	}
	k.m.FirstCPU, k.m.Seconds, k.m.PeakBytes, k.m.Decisions = cpu, elapsed, meter.Peak(), 1
	k.verdict(judge.New(w).Judge(e.Plan()))
	if o, ok := e.(*ours.Engine); ok {
		k.m.Bound = o.Bound()
	}
	if k.m.Engine == Upstream || k.m.FirstCPU > k.limits.CPU.Seconds()/2 {
		return nil // upstream remembers nothing, and the repetition would take as long
	}
	e.News(w)
	status := k.m.Status
	if k.m.WarmCPU, _, err = k.timed(Unwarm, e.Decide); err != nil {
		return err
	}
	k.m.Status, k.m.Decisions = status, 2
	return nil
}

func (k *child) take(w *workload.Workload) (engine, error) {
	if k.m.Engine == Upstream {
		return upstream.New(w)
	}
	return ours.New(w)
}

func (k *child) verdict(v judge.Verdict) {
	k.m.Scheduled, k.m.NewNodes, k.m.Price, k.m.Faults, k.m.Status = v.Scheduled, v.Nodes, v.Price, v.Faults, OK
	if v.Count > 0 {
		k.m.Status, k.m.Note = Invalid, fmt.Sprintf("%d faults", v.Count)
	}
}

// timed runs a decision under the limits. If it reaches one of them, the
// process prints the measurement as it is with the status, and ends.
func (k *child) timed(late Status, decide func() error) (cpu, elapsed float64, err error) {
	debug.FreeOSMemory()
	resident := meter.ResetPeak()
	if k.m.Decisions == 0 {
		k.m.StartBytes = resident
	}
	before, start, done := meter.CPU(), time.Now(), make(chan struct{})
	go k.watch(late, before, done)
	err = decide()
	close(done)
	k.mu.Lock() // waits for the watcher if it is printing
	defer k.mu.Unlock()
	return (meter.CPU() - before).Seconds(), time.Since(start).Seconds(), err
}

// watch ends the process when the decision under way reaches a limit.
func (k *child) watch(late Status, before time.Duration, done <-chan struct{}) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		switch {
		case meter.CPU()-before > k.limits.CPU:
			k.stop(late, fmt.Sprintf("stopped after %v of CPU time", k.limits.CPU))
		case meter.Resident() > k.limits.Memory:
			k.stop(Large, fmt.Sprintf("stopped at %d MiB", k.limits.Memory>>20))
		}
	}
}

func (k *child) stop(status Status, note string) {
	k.mu.Lock()
	if k.m.Status != Invalid {
		k.m.Status = status
	}
	k.m.Note = note
	if err := k.print(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(0)
}
