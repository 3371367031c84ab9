// SPDX-License-Identifier: Apache-2.0

// Package console shows what happens to a fleet as lines. The picture on a terminal is that of karpenter top.
package console

import (
	"context"
	"fmt"
	"io"
	"time"

	"karpenter/sandbox/fleet"
	"karpenter/sandbox/timeline"
)

// Lines writes to w what there is, and then one line, with the time of day, for each thing that happens, until ctx is
// done.
func Lines(ctx context.Context, w io.Writer, source Source, notes *Notes) {
	write := func(kind timeline.Kind, text string) {
		fmt.Fprintf(w, "%s %-8s %s\n", time.Now().Format(time.TimeOnly), kind, text)
	}
	first := source.View()
	write(timeline.Now, timeline.Standing(&first))
	follow(ctx, source, notes, func(_ *fleet.View, happened []timeline.Entry) {
		for _, e := range happened {
			write(e.Kind, e.Text)
		}
	})
}
