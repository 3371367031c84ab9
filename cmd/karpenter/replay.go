// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"karpenter/cmd/karpenter/replay"
)

type replayFlags struct {
	output
	manifests []string // files and folders
}

func replayCommand(s surroundings) *cobra.Command {
	var v replayFlags
	c := &cobra.Command{
		Use:   "replay FILE",
		Short: "Run a recording again with other NodePools",
		Long: `Run what 'karpenter top --record FILE' recorded again, in virtual time: pods are
created and end when they did, and Karpenter decides about nodes. Print what
that costs and moves, beside what was recorded. With NodePools in --with, the
recording runs a second time with them in place of those of their names.
Nothing is changed.`,
		Example: `  karpenter replay cluster.recording
  karpenter replay cluster.recording --with nodepool.yaml
  karpenter replay cluster.recording --with nodepools/ -o json`,
		Args: exactlyOne("FILE"),
		RunE: func(c *cobra.Command, args []string) error { return v.run(c.Context(), s, args[0]) },
	}
	flags := c.Flags()
	v.output.define(c, flags)
	flags.StringArrayVar(&v.manifests, "with", nil, "file or folder of NodePool manifests to replay with; - is standard input; can be repeated")
	return c
}

// exactlyOne refuses any other number of words behind a command than one.
func exactlyOne(name string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("%s is missing\nRun '%s --help' for usage.", name, c.CommandPath())
		}
		return atMost(1)(c, args)
	}
}

func (v *replayFlags) run(_ context.Context, s surroundings, file string) error {
	if err := v.check(); err != nil {
		return err
	}
	manifests, err := readManifests("--with", v.manifests, s)
	if err != nil {
		return err
	}
	objects, err := objectScheme()
	if err != nil {
		return err
	}
	r, err := readRecording(file, objects)
	if err != nil {
		return err
	}
	planning(s)
	report, err := replay.Replay(r, manifests)
	doneReading(s)
	if err != nil {
		return fmt.Errorf("replay %s: %w", file, err)
	}
	if err := v.write(s, report, pages{
		text:     func(w io.Writer) error { _, err := io.WriteString(w, report.Text()); return err },
		markdown: func(w io.Writer) error { _, err := io.WriteString(w, report.Markdown()); return err },
	}); err != nil {
		return err
	}
	if report.Changed == nil {
		v.next(s, "karpenter replay "+file+" --with nodepool.yaml")
	} else {
		v.next(s, "karpenter plan -f "+strings.Join(v.manifests, " -f "))
	}
	return nil
}
