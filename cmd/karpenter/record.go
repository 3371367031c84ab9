// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"karpenter/cmd/karpenter/record"
	"karpenter/cmd/karpenter/redact"
)

type recordAsk struct {
	connection
	output
	freeze, redact bool
	limit          int
}

func recordCommand(s surroundings) *cobra.Command {
	var v recordAsk
	c := &cobra.Command{
		Use:   "record",
		Short: "Show past decisions and what was saved since a baseline",
		Long: `Show the record that the leader keeps in the cluster: what nodes have cost, the
decisions with predicted and actual cost, evictions and waits, and what was
saved since a baseline, by cause.

A baseline is the cost of the cluster at one time. You freeze it when you like:
'karpenter record --freeze' prints a ConfigMap, which you apply with kubectl.`,
		Example: `  karpenter record
  karpenter record --limit 100
  karpenter record -o json --redact > record.json
  karpenter record --freeze > baseline.yaml`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return v.run(c.Context(), s) },
	}
	flags := c.Flags()
	v.connection.define(c, flags, s)
	whole(c)
	v.output.define(c, flags)
	flags.BoolVar(&v.freeze, "freeze", false, "print the ConfigMap of a baseline as of now")
	flags.BoolVar(&v.redact, "redact", false, "replace names of NodePools with pseudonyms and leave reasons out, to share the output")
	flags.IntVar(&v.limit, "limit", 20, "how many of the latest decisions to print")
	return c
}

func (v *recordAsk) run(ctx context.Context, s surroundings) error {
	if err := v.check(); err != nil {
		return err
	}
	if v.limit < 0 {
		return usageError{fmt.Errorf("--limit: %d: want a number of decisions", v.limit)}
	}
	from, err := v.source(s)
	if err != nil {
		return err
	}
	r, namespace, err := recordOf(ctx, from, from.Client)
	doneReading(s)
	switch {
	case err != nil:
		return err
	case r.Written.IsZero() && len(r.Trouble) == 0:
		return record.ErrNone
	}
	if v.freeze {
		return freeze(s.stdout, r.Meter, namespace)
	}
	if v.redact {
		withoutNames(&r)
	}
	text := r.Text(v.limit)
	if err := v.write(s, r, pages{
		text:     func(w io.Writer) error { _, err := io.WriteString(w, text); return err },
		markdown: func(w io.Writer) error { _, err := fmt.Fprintf(w, "```\n%s```\n", text); return err },
	}); err != nil {
		return err
	}
	if r.Savings == nil {
		v.next(s, "karpenter record --freeze > baseline.yaml", "karpenter ui")
	} else {
		v.next(s, "karpenter ui")
	}
	return nil
}

// withoutNames replaces the names in the report. Reasons, which can name labels and taints, are left out.
func withoutNames(r *record.Report) {
	names := &redact.Redactor{}
	groups := func(all []record.GroupEntry) {
		for i := range all {
			all[i].Pool = names.Name(all[i].Pool)
		}
	}
	for i := range r.Decisions {
		d := &r.Decisions[i]
		d.Reasons = []record.Reason{}
		groups(d.Launches)
		groups(d.Removes)
		if d.Actual != nil {
			groups(d.Actual.Became)
		}
	}
}

// freeze prints the ConfigMap of a baseline.
func freeze(w io.Writer, m record.Meter, namespace string) error {
	b, err := record.Freeze(m)
	if err != nil {
		return err
	}
	object, err := b.ConfigMap(namespace)
	if err != nil {
		return err
	}
	text, err := yaml.Marshal(object)
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// recordOf reads the record of the cluster with the reader, and returns the namespace
// it is in.
func recordOf(ctx context.Context, from *source, reader client.Reader) (record.Report, string, error) {
	namespace, err := from.Home(ctx)
	if err != nil {
		return record.Report{}, "", err
	}
	r, err := record.Load(ctx, reader, namespace, from.now)
	return r, namespace, err
}
