// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"karpenter/cmd/karpenter/plan"
	"karpenter/model"
	"karpenter/scenario"
	"karpenter/solve"
)

// planFlags are what plan is asked.
type planFlags struct {
	connection
	output
	watching
	snapshot         string
	manifests        []string // files and folders
	deletions        []string // as given
	deleted          []string // names of NodePools
	exitCode, toRest bool
	gates            plan.Gates
}

func (p *planFlags) define(c *cobra.Command, s surroundings) {
	flags := c.Flags()
	p.connection.define(c, flags, s)
	whole(c)
	p.watching.define(flags)
	p.output.define(c, flags)
	flags.StringVar(&p.snapshot, "snapshot", "", "plan for the situation in a file that 'karpenter snapshot' printed instead of a cluster; - is standard input")
	flags.StringArrayVarP(&p.manifests, "filename", "f", nil, "file or folder of NodePool manifests to plan with; - is standard input; can be repeated")
	flags.StringArrayVar(&p.deletions, "delete", nil, "plan without a NodePool, as nodepool/NAME; can be repeated")
	flags.BoolVar(&p.exitCode, "exit-code", false, fmt.Sprintf("exit with %d if a node would be launched or removed", exitChanges))
	flags.BoolVar(&p.toRest, "to-rest", false, "also follow one decision after the other until nothing changes; takes as long as all of them")
	flags.Float64Var(&p.gates.Cost, "max-cost", plan.NoGate, "fail if the nodes would cost more dollars per hour than this; negative means no limit")
	flags.IntVar(&p.gates.Evictions, "max-evictions", plan.NoGate, "fail if more pods than this would be evicted; negative means no limit")
	flags.IntVar(&p.gates.Pending, "max-pending", plan.NoGate, "fail if more pods than this would stay pending; negative means no limit")
	complete(c, "delete", p.nodePools(s))
}

func planCommand(s surroundings) *cobra.Command {
	var p planFlags
	c := &cobra.Command{
		Use:   "plan",
		Short: "Show which nodes Karpenter would launch and remove",
		Long: `Show what the next decision does to the cluster: nodes, dollars, evictions; also
if the NodePools were others. Nothing is changed.`,
		Example: `  karpenter plan
  karpenter plan -f nodepools/ --max-cost 25
  karpenter plan --delete nodepool/general -o markdown`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return p.watching.run(c.Context(), s, p.run) },
	}
	p.define(c, s)
	return c
}

// check refuses flags that cannot be used.
func (p *planFlags) check() error {
	p.deleted = nil
	for _, d := range p.deletions {
		kind, pool, _ := strings.Cut(d, "/")
		if strings.TrimSuffix(kind, "s") != "nodepool" || pool == "" {
			return usageError{fmt.Errorf("--delete: %q: want nodepool/NAME", d)}
		}
		p.deleted = append(p.deleted, pool)
	}
	if p.snapshot == "-" && slices.Contains(p.manifests, "-") {
		return usageError{errors.New("--snapshot - and -f -: only one of them can be standard input")}
	}
	return p.output.check()
}

// run says what the controller would do now. It changes nothing.
func (p *planFlags) run(ctx context.Context, s surroundings) error {
	if err := p.check(); err != nil {
		return err
	}
	manifests, err := p.read(s)
	if err != nil {
		return err
	}
	situation, _, err := p.situationFrom(ctx, p.snapshot, "--snapshot", s)
	if err != nil {
		return err
	}
	planning(s)
	report, err := p.report(situation, manifests)
	doneReading(s)
	if err != nil {
		return err
	}
	as := func(style plan.Style) func(io.Writer) error {
		return func(w io.Writer) error { return report.Write(w, style) }
	}
	text := as(plan.Style{Width: p.columns(s), Whole: p.format == wideFormat})
	if err := p.write(s, report, pages{text: text, markdown: as(plan.Style{Markdown: true})}); err != nil {
		return err
	}
	if err := p.gates.Check(report); err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	if p.exitCode && report.WouldChange {
		return codeError{exitChanges}
	}
	p.next(s, hintsAfter(report)...)
	return nil
}

// hintsAfter names what to look at after the report.
func hintsAfter(r plan.Report) []string {
	switch {
	case len(r.Pending) > 0 && len(r.Pending[0].Pods) > 0:
		namespace, name, _ := strings.Cut(r.Pending[0].Pods[0], "/")
		return []string{fmt.Sprintf("karpenter explain pod %s -n %s", name, namespace)}
	case len(r.Commands) > 0:
		return []string{"karpenter explain node " + r.Commands[0].Nodes[0].Name, "karpenter plan --to-rest"}
	case len(r.Stays) > 0:
		return []string{"karpenter explain node " + r.Stays[0].Node}
	}
	return []string{"karpenter status"}
}

// report plans with the manifests, if there are any.
func (p *planFlags) report(s scenario.Situation, m *plan.Manifests) (plan.Report, error) {
	if len(p.manifests) == 0 && len(p.deleted) == 0 {
		return plan.Of(s.Snapshot, p.decider(s.Policy)), nil
	}
	return plan.With(s.Snapshot, m, p.deleted, p.decider(s.Policy))
}

// read reads the manifests of all files, folders and standard input.
func (p *planFlags) read(s surroundings) (*plan.Manifests, error) {
	return readManifests("-f", p.manifests, s)
}

// readManifests reads the manifests of all files, folders and standard input that the flag
// names.
func readManifests(flag string, names []string, s surroundings) (*plan.Manifests, error) {
	m := &plan.Manifests{}
	for _, name := range names {
		if name == "-" {
			if err := m.Read("standard input", s.stdin); err != nil {
				return nil, err
			}
			continue
		}
		files, err := manifestFiles(name)
		if err != nil {
			return nil, usageError{fmt.Errorf("%s: %w", flag, err)}
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", flag, err)
			}
			if err := m.Read(file, bytes.NewReader(text)); err != nil {
				return nil, err
			}
		}
	}
	if len(names) > 0 && len(m.Pools) == 0 {
		return nil, fmt.Errorf("%s: there is no NodePool in %s", flag, strings.Join(names, ", "))
	}
	return m, nil
}

// manifestFiles returns the file itself or, of a folder, all below it whose names
// end as those of manifests do.
func manifestFiles(name string) ([]string, error) {
	var out []string
	err := filepath.WalkDir(name, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && (path == name || slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path))) {
			out = append(out, path)
		}
		return err
	})
	return out, err
}

func (p *planFlags) decider(policy model.Policy) plan.Decider {
	planner := &solve.Planner{}
	return plan.Decider{
		Decide: func(s *model.Snapshot) *model.Plan { return planner.Decide(s, policy) },
		Place:  func(s *model.Snapshot) *model.Plan { return planner.Place(s, policy) },
		ToRest: p.toRest,
	}
}
