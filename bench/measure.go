// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"karpenter/bench/judge"
	"karpenter/bench/meter"
	"karpenter/bench/ours"
	"karpenter/bench/upstream"
	"karpenter/bench/workload"
)

// Names of the engines.
const (
	engineOurs     = "ours"
	engineUpstream = "upstream"
)

// engines returns the engines in the order they run.
func engines() []string { return []string{engineOurs, engineUpstream} }

// Result is one row of results.json.
type Result struct {
	Workload      string  `json:"workload"`
	Engine        string  `json:"engine"`
	Pods          int     `json:"pods"`
	Scheduled     int     `json:"scheduled"`
	Nodes         int     `json:"nodes"`         // new ones
	PricePerHour  float64 `json:"pricePerHour"`  // dollars, of the new nodes
	Bound         float64 `json:"bound"`         // dollars per hour no plan for all pods can beat; 0 = none is known
	Gap           float64 `json:"gap"`           // (pricePerHour - bound) / bound; 0 without a bound
	Seconds       float64 `json:"seconds"`       // median over runs
	AllocBytes    uint64  `json:"allocBytes"`    // by one decision
	PeakRSSBytes  uint64  `json:"peakRSSBytes"`  // of the process during its first decision, with all it holds
	StartRSSBytes uint64  `json:"startRSSBytes"` // of the process just before that
	CPUSeconds    float64 `json:"cpuSeconds"`    // of the median run, over all cores, with garbage collection
	Runs          int     `json:"runs"`

	Status string   `json:"status"` // "ok", or what did not go as it should
	Faults []string `json:"faults,omitempty"`
}

// engine is one of the two.
type engine interface {
	News(*workload.Workload)
	Plan() *judge.Plan
}

// Runs are repeated until there are maxRuns of them or this much time has
// been spent.
const (
	maxRuns  = 5
	runsTime = 6 * time.Second
)

// measure runs one engine on one workload, in this process. The runs' CPU
// profile goes to profile unless that is nil.
func measure(name, which string, profile io.Writer) (*Result, error) {
	w, err := load(name)
	if err != nil {
		return nil, err
	}
	r := &Result{Workload: name, Engine: which, Pods: w.Pods, Status: "ok"}
	e, decide, err := take(w, which)
	if err != nil {
		return nil, err
	}
	if o, ok := e.(*ours.Engine); ok {
		if missing := o.Unsupported(w); len(missing) > 0 {
			r.Status = "refused: " + strings.Join(missing, ", ")
			return r, nil
		}
	}
	if err := r.time(w, e, decide, profile); err != nil {
		return nil, err
	}
	plan := e.Plan()
	switch e := e.(type) {
	case *ours.Engine:
		r.Bound = e.Bound()
	case *upstream.Engine:
		if e.Late() {
			r.Status = fmt.Sprintf("stopped after %s", w.UpstreamCap)
		}
	}
	v := judge.New(w).Judge(plan)
	r.Scheduled, r.Nodes, r.PricePerHour, r.Faults = v.Scheduled, v.Nodes, v.Price, v.Faults
	if r.Bound > 0 {
		r.Gap = r.PricePerHour/r.Bound - 1
	}
	if v.Count > 0 {
		r.Status = fmt.Sprintf("%d faults", v.Count)
	}
	return r, nil
}

func take(w *workload.Workload, which string) (engine, func() error, error) {
	if which == engineUpstream {
		e, err := upstream.New(w)
		return e, e.Decide, err
	}
	e, err := ours.New(w)
	return e, e.Decide, err
}

// sample is one run.
type sample struct {
	seconds, cpu float64
	alloc        uint64
}

// time runs the decision until the median is known. Memory is that of the
// first run.
func (r *Result) time(w *workload.Workload, e engine, decide func() error, profile io.Writer) error {
	if profile != nil {
		if err := pprof.StartCPUProfile(profile); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	var samples []sample
	for began := time.Now(); len(samples) < maxRuns && (len(samples) == 0 || time.Since(began) < runsTime); {
		e.News(w)
		debug.FreeOSMemory()
		if len(samples) == 0 {
			r.StartRSSBytes = meter.ResetPeak()
		}
		s, err := once(decide)
		if err != nil {
			return err
		}
		if samples = append(samples, s); len(samples) == 1 {
			r.PeakRSSBytes = meter.Peak()
		}
	}
	slices.SortFunc(samples, func(a, b sample) int { return int(1e9 * (a.seconds - b.seconds)) })
	median := samples[len(samples)/2]
	r.Seconds, r.CPUSeconds, r.AllocBytes, r.Runs = median.seconds, median.cpu, median.alloc, len(samples)
	return nil
}

func once(decide func() error) (sample, error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, start := meter.CPU(), time.Now()
	err := decide()
	s := sample{seconds: time.Since(start).Seconds(), cpu: (meter.CPU() - cpu).Seconds()}
	runtime.ReadMemStats(&after)
	s.alloc = after.TotalAlloc - before.TotalAlloc
	return s, err
}
