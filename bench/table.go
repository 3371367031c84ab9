// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
)

// table prints results as Markdown, a row at a time.
type table struct {
	out    io.Writer
	faulty []string
}

func newTable(out io.Writer) *table {
	fmt.Fprintln(out, "| workload | engine | pods | scheduled | nodes | $/h | bound | gap | seconds | CPU s | allocated | peak RSS | × time | × CPU | × price | remark |")
	fmt.Fprintln(out, "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|")
	return &table{out: out}
}

// row prints one result; ratios are to our result on the same workload.
func (t *table) row(r, ours *Result) {
	bound, gap, speed, work, price, remark := "", "", "", "", "", r.Status
	if r.Bound > 0 {
		bound, gap = fmt.Sprintf("%.3f", r.Bound), fmt.Sprintf("%.2f %%", 100*r.Gap)
	}
	if ours != nil && r != ours && ours.Runs > 0 && r.Scheduled == ours.Scheduled {
		speed, work = fmt.Sprintf("%.1f", r.Seconds/ours.Seconds), fmt.Sprintf("%.1f", r.CPUSeconds/ours.CPUSeconds)
		if ours.PricePerHour > 0 {
			price = fmt.Sprintf("%.3f", r.PricePerHour/ours.PricePerHour)
		}
	}
	if r.Status == "ok" {
		remark = ""
		if left := r.Pods - r.Scheduled; left > 0 {
			remark = fmt.Sprintf("%d pods left", left)
		}
	}
	if r.Runs == 0 { // nothing was measured
		fmt.Fprintf(t.out, "| %s | %s | %d | | | | | | | | | | | | | %s |\n", r.Workload, r.Engine, r.Pods, remark)
		return
	}
	fmt.Fprintf(t.out, "| %s | %s | %d | %d | %d | %.3f | %s | %s | %s | %.2f | %s | %s | %s | %s | %s | %s |\n",
		r.Workload, r.Engine, r.Pods, r.Scheduled, r.Nodes, r.PricePerHour, bound, gap,
		seconds(r.Seconds), r.CPUSeconds, bytesOf(r.AllocBytes), bytesOf(r.PeakRSSBytes), speed, work, price, remark)
	for _, f := range r.Faults {
		t.faulty = append(t.faulty, r.Workload+" "+r.Engine+": "+f)
	}
}

// faults returns an error that names what is wrong with the plans printed.
func (t *table) faults() error {
	for _, f := range t.faulty {
		fmt.Fprintln(t.out, "fault:", f)
	}
	if len(t.faulty) > 0 {
		return fmt.Errorf("%d faults in plans", len(t.faulty))
	}
	return nil
}

func seconds(s float64) string {
	if s < 0.1 {
		return fmt.Sprintf("%.2g", s)
	}
	return fmt.Sprintf("%.2f", s)
}

func bytesOf(n uint64) string {
	switch {
	case n >= 10<<30:
		return fmt.Sprintf("%d GiB", n>>30)
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	}
	return fmt.Sprintf("%d MiB", n>>20)
}
