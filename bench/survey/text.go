// SPDX-License-Identifier: Apache-2.0

package survey

import "fmt"

// String returns the measurement in one line.
func (m *Measurement) String() string {
	out := fmt.Sprintf("%-28s %-8s", m.Name(), m.Engine)
	if m.FirstCPU > 0 {
		out += fmt.Sprintf(" first %8.3f s", m.FirstCPU)
		switch {
		case m.RestCPU > 0:
			out += fmt.Sprintf("  slowest later %8.3f s  to rest %8.3f s in %d", m.WarmCPU, m.RestCPU, m.Decisions)
		case m.WarmCPU > 0:
			out += fmt.Sprintf("  warm %8.3f s", m.WarmCPU)
		}
		out += fmt.Sprintf("  %d of %d pods  %d nodes  $%.3f/h  %d MiB", m.Scheduled, m.Pods, m.NewNodes, m.Price, m.PeakBytes>>20)
	}
	if gap, ok := m.Gap(); ok {
		out += fmt.Sprintf("  gap %.1f%%", 100*gap)
	}
	if m.Status != OK {
		out += fmt.Sprintf("  %s: %s", m.Status, m.Note)
	}
	for _, f := range m.Faults {
		out += "\n  fault: " + f
	}
	return out
}
