// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"karpenter/sandbox/fleet"
	"karpenter/sandbox/process"
	"karpenter/sandbox/session"
)

// writeSummary prints how long everything took, what was launched and for how much, and how near pools came to their limits.
func writeSummary(w io.Writer, results []result, view *fleet.View) {
	fmt.Fprint(w, "\nsummary\n")
	last := -1
	for _, r := range slices.SortedStableFunc(slices.Values(results), func(a, b result) int {
		return cmp.Or(cmp.Compare(a.step, b.step), cmp.Compare(a.took, b.took))
	}) {
		if r.step != last {
			fmt.Fprintf(w, "  %s\n", r.name)
		}
		last = r.step
		fmt.Fprintf(w, "    %8s  %s\n", seconds(r.took), r.what)
	}
	fmt.Fprint(w, "  nodes launched\n")
	for _, p := range view.Bought {
		fmt.Fprintf(w, "    %8d  %s %s at $%.4f/h\n", p.Count, p.Type, p.CapacityType, p.Price)
	}
	fmt.Fprintf(w, "    at most $%.3f/h at a time, $%.4f spent\n", view.PeakPrice, view.Spent)
	for _, p := range view.Pools {
		if len(p.Limits) == 0 {
			continue
		}
		fmt.Fprintf(w, "  pool %s never had more than\n", p.Name)
		for _, name := range slices.Sorted(maps.Keys(p.Limits)) {
			limit, peak := p.Limits[name], p.Peak[name]
			fmt.Fprintf(w, "    %8s  %s, its limit is %s\n", peak.String(), name, limit.String())
		}
	}
}

// writeController prints what the controller has cost.
func writeController(w io.Writer, controller *process.Process) {
	fmt.Fprint(w, "  the controller\n")
	used, err := controller.Usage()
	if err != nil {
		fmt.Fprintf(w, "    %v\n", err)
		return
	}
	fmt.Fprintf(w, "    %8s  of memory at most\n", fmt.Sprintf("%dMi", used.PeakMemory>>20))
	fmt.Fprintf(w, "    %8s  of CPU time\n", seconds(used.CPU))
	fmt.Fprintf(w, "    %8d  crashes\n", controller.Failures())
}

// writeRequests prints how many requests the API server had of the controller, and returns an error if it was not
// allowed some of them.
func writeRequests(ctx context.Context, w io.Writer, s *session.Session) error {
	metrics, err := s.Metrics(ctx)
	if err != nil {
		return err
	}
	byStatus := metrics.Requests("code")
	refused := byStatus[strconv.Itoa(http.StatusForbidden)]
	fmt.Fprintf(w, "    %8.0f  requests to the API server, %.0f of them rejected for missing permissions\n", sum(byStatus), refused)
	if refused > 0 {
		return fmt.Errorf("the API server rejected %.0f requests of the controller; see %s", refused, s.ControllerLog())
	}
	return nil
}
