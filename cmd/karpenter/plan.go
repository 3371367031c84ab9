package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"karpenter/cmd/karpenter/explain"
	"karpenter/cmd/karpenter/plan"
	"karpenter/model"
	"karpenter/scenario"
	"karpenter/solve"
)

// planFlags are what plan is asked.
type planFlags struct {
	questions
	snapshot, output string
	manifests        []string // files and folders
	deleted          []string // names of NodePools
	exitCode, toRest bool
	gates            plan.Gates
}

func (p *planFlags) define(flags *flag.FlagSet) {
	p.questions.define(flags)
	flags.StringVar(&p.snapshot, "snapshot", "", "file that karpenter snapshot has printed, - for standard input; without it a running controller is asked")
	flags.Func("f", "file or folder of NodePool manifests to plan with, - for standard input; may be given several times", func(name string) error {
		p.manifests = append(p.manifests, name)
		return nil
	})
	flags.Func("delete", "nodepool/NAME to plan without; may be given several times", func(name string) error {
		kind, pool, _ := strings.Cut(name, "/")
		if strings.TrimSuffix(kind, "s") != "nodepool" || pool == "" {
			return errors.New("want nodepool/NAME")
		}
		p.deleted = append(p.deleted, pool)
		return nil
	})
	flags.StringVar(&p.output, "output", "text", "text or json")
	flags.BoolVar(&p.exitCode, "exit-code", false, fmt.Sprintf("exit with %d when a node would be launched or taken away", exitChanges))
	flags.BoolVar(&p.toRest, "to-rest", false, "also say where one decision after the other leads; takes as long as all of them")
	flags.Float64Var(&p.gates.Cost, "max-cost", plan.NoGate, "fail when the nodes would cost more dollars per hour than this afterwards")
	flags.IntVar(&p.gates.Evictions, "max-evictions", plan.NoGate, "fail when more pods than this would be evicted")
	flags.IntVar(&p.gates.Pending, "max-pending", plan.NoGate, "fail when more pods than this would stay pending")
}

// planAll says what the controller would do now. It changes nothing.
func planAll(ctx context.Context, s surroundings) error {
	flags := flag.NewFlagSet("plan", flag.ContinueOnError)
	var p planFlags
	p.define(flags)
	if err := parsed(flags, s); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	if p.output != "text" && p.output != "json" {
		return usageError{fmt.Errorf("--output: %q: want text or json", p.output)}
	}
	if p.snapshot == "-" && slices.Contains(p.manifests, "-") {
		return usageError{errors.New("--snapshot - and -f -: only one of them can be standard input")}
	}
	manifests, err := p.read(s)
	if err != nil {
		return err
	}
	situation, err := p.situation(ctx, s)
	if err != nil {
		return err
	}
	report, err := p.report(situation, manifests)
	if err != nil {
		return err
	}
	if err := p.write(s.stdout, report); err != nil {
		return err
	}
	if err := p.gates.Check(report); err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	if p.exitCode && report.WouldChange {
		return changesError{errors.New("plan: nodes would change")}
	}
	return nil
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
	m := &plan.Manifests{}
	for _, name := range p.manifests {
		if name == "-" {
			if err := m.Read("standard input", s.stdin); err != nil {
				return nil, err
			}
			continue
		}
		files, err := manifestFiles(name)
		if err != nil {
			return nil, usageError{fmt.Errorf("-f: %w", err)}
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, fmt.Errorf("-f: %w", err)
			}
			if err := m.Read(file, bytes.NewReader(text)); err != nil {
				return nil, err
			}
		}
	}
	if len(p.manifests) > 0 && len(m.Pools) == 0 {
		return nil, fmt.Errorf("-f: there is no NodePool in %s", strings.Join(p.manifests, ", "))
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

func (p *planFlags) write(w io.Writer, report plan.Report) error {
	if p.output == "text" {
		return report.Text(w)
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(report)
}

// situation reads the file, which may include files beside it, or asks the
// controller when there is none.
func (p *planFlags) situation(ctx context.Context, s surroundings) (scenario.Situation, error) {
	switch p.snapshot {
	case "":
		body, err := p.ask(ctx, explain.SnapshotPath)
		if err != nil {
			return scenario.Situation{}, err
		}
		return scenario.Read(strings.NewReader(string(body)), nil)
	case "-":
		situation, err := scenario.Read(s.stdin, nil)
		if err != nil {
			return situation, fmt.Errorf("standard input: %w", err)
		}
		return situation, nil
	}
	f, err := os.Open(p.snapshot)
	if err != nil {
		return scenario.Situation{}, usageError{fmt.Errorf("--snapshot: %w", err)}
	}
	defer f.Close()
	situation, err := scenario.Read(f, os.DirFS(filepath.Dir(p.snapshot)))
	if err != nil {
		return situation, fmt.Errorf("%s: %w", p.snapshot, err)
	}
	return situation, nil
}
