// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"

	"github.com/spf13/cobra"
	"karpenter/cmd/karpenter/status"
	"karpenter/model"
	"karpenter/scenario"
	"karpenter/solve"
)

type checking struct {
	connection
	output
	watching
	strict bool
}

func statusCommand(s surroundings) *cobra.Command {
	var k checking
	c := &cobra.Command{
		Use:   "status",
		Short: "Check the installation, with a remedy for what is wrong",
		Long: fmt.Sprintf(`Check the installation: CRDs, leader, offerings, NodePools, node classes,
launches, drift, pending pods, warnings and more, with a remedy for what is
wrong.

The exit code is 0 if nothing failed, else %d; with --strict, warnings count,
too.`, exitFailure),
		Example: "  karpenter status\n  karpenter status --watch\n  karpenter status --strict -o json",
		Args:    noArguments,
		RunE:    func(c *cobra.Command, _ []string) error { return k.watching.run(c.Context(), s, k.run) },
	}
	k.connection.define(c, c.Flags(), s)
	whole(c)
	k.output.define(c, c.Flags())
	k.watching.define(c.Flags())
	c.Flags().BoolVar(&k.strict, "strict", false, "fail on warnings")
	return c
}

func (k *checking) run(ctx context.Context, s surroundings) error {
	if err := k.check(); err != nil {
		return err
	}
	from, err := k.source(s)
	if err != nil {
		return err
	}
	version, err := from.version()
	if err != nil {
		return err
	}
	facts := status.Read(ctx, from.Reader, from.now, version, func(s scenario.Situation) *model.Plan {
		return new(solve.Planner).Place(s.Snapshot, s.Policy)
	})
	doneReading(s)
	report := status.Report{Cluster: from.title, Checks: status.Checks(facts)}
	style := status.Style{Width: cmp.Or(k.columns(s), math.MaxInt), Colour: s.colour()}
	err = k.write(s, report, pages{func(w io.Writer) error { return report.Write(w, style) }, report.Markdown, true})
	if err != nil {
		return err
	}
	k.next(s, "karpenter plan", "karpenter explain cluster")
	if report.Count(status.Failure) > 0 || k.strict && report.Count(status.Warning) > 0 {
		return codeError{exitFailure}
	}
	return nil
}
