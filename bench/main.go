// SPDX-License-Identifier: Apache-2.0

// Command bench runs this project's engine and upstream's side by side and
// proves what they decide. See docs/benchmarks.md.
//
// Every (workload, engine) runs in a process of its own, which is this program
// called again with "run WORKLOAD ENGINE [CPU-PROFILE [ALLOCATION-PROFILE]]"; its
// result comes back as JSON. With "table" it prints the results it finds in the
// file. With "costs" it plans at several prices per node. With "wild" it draws problems and measures both engines on them.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime/pprof"
	"slices"
	"time"

	"karpenter/bench/workload"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// settings are the command's flags.
type settings struct {
	short  bool
	only   *regexp.Regexp
	engine string
	out    string
	list   bool
}

func parse(args []string) (*settings, []string, error) {
	s := &settings{}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.BoolVar(&s.short, "short", false, "only the workloads that take little time")
	only := flags.String("only", "", "only workloads whose name matches this expression")
	flags.StringVar(&s.engine, "engine", "", "only this engine: ours or upstream")
	flags.StringVar(&s.out, "out", "results.json", "file the results are written to; nothing is written when empty")
	flags.BoolVar(&s.list, "list", false, "list the workloads")
	if err := flags.Parse(args); err != nil {
		return nil, nil, err
	}
	var err error
	s.only, err = regexp.Compile(*only)
	return s, flags.Args(), err
}

func run(args []string) error {
	if len(args) > 0 && args[0] == "wild" {
		return runWild(args[1:])
	}
	if len(args) > 0 && args[0] == "costs" {
		return runCosts(args[1:])
	}
	if len(args) == 2 && args[0] == "wild-child" {
		return wildChild(args[1])
	}
	s, rest, err := parse(args)
	if err != nil {
		return err
	}
	switch {
	case len(rest) >= 3 && rest[0] == "run":
		return child(rest[1], rest[2], rest[3:])
	case len(rest) == 1 && rest[0] == "table":
		return s.print()
	case s.list:
		return list()
	case len(rest) > 0:
		return fmt.Errorf("unknown command %q", rest[0])
	}
	return s.all()
}

// save writes the results, keeping from the file what was not measured now.
func save(file string, now []*Result) error {
	if file == "" {
		return nil
	}
	old := []*Result{}
	if text, err := os.ReadFile(file); err == nil {
		if err := json.Unmarshal(text, &old); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	find := func(name, engine string) *Result {
		is := func(r *Result) bool { return r.Workload == name && r.Engine == engine }
		for _, list := range [][]*Result{now, old} {
			if i := slices.IndexFunc(list, is); i >= 0 {
				return list[i]
			}
		}
		return nil
	}
	all := []*Result{}
	for _, name := range names() {
		ours, theirs := find(name, engineOurs), find(name, engineUpstream)
		if ours != nil {
			all = append(all, ours)
		}
		if theirs != nil {
			theirs.compare(ours)
			all = append(all, theirs)
		}
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

// print prints the file as a table.
func (s *settings) print() error {
	text, err := os.ReadFile(s.out)
	if err != nil {
		return err
	}
	var results []*Result
	if err := json.Unmarshal(text, &results); err != nil {
		return fmt.Errorf("%s: %w", s.out, err)
	}
	t := newTable(os.Stdout)
	var ours *Result
	for _, r := range results {
		if r.Engine == engineOurs {
			ours = r
		} else if ours != nil && ours.Workload != r.Workload {
			ours = nil
		}
		t.row(r, ours)
	}
	return t.faults()
}

func list() error {
	for _, name := range names() {
		w, err := load(name)
		if err != nil {
			return err
		}
		fmt.Printf("%-28s %s\n", name, w.About)
	}
	return nil
}

// child measures one engine on one workload and prints the result. More
// arguments name files for a CPU and a heap profile of the runs.
func child(name, engine string, profiles []string) error {
	var profile io.Writer
	if len(profiles) > 0 {
		f, err := os.Create(profiles[0])
		if err != nil {
			return err
		}
		defer f.Close()
		profile = f
	}
	r, err := measure(name, engine, profile)
	if err != nil {
		return err
	}
	if len(profiles) > 1 {
		f, err := os.Create(profiles[1])
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.Lookup("allocs").WriteTo(f, 0); err != nil {
			return err
		}
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

// all measures both engines on every workload asked for. The table and the
// file grow with every result.
func (s *settings) all() error {
	t := newTable(os.Stdout)
	var out []*Result
	for _, name := range names() {
		if !s.only.MatchString(name) || (s.short && !workload.Short(name)) {
			continue
		}
		var ours *Result
		for _, engine := range engines() {
			if s.engine != "" && s.engine != engine {
				continue
			}
			r, err := spawn(name, engine)
			if err != nil {
				return err
			}
			if engine == engineOurs {
				ours = r
			} else {
				r.compare(ours)
			}
			t.row(r, ours)
			out = append(out, r)
			if err := save(s.out, out); err != nil {
				return err
			}
		}
	}
	return t.faults()
}

// compare takes over the bound proved by our engine, which holds for every
// plan for the same pods.
func (r *Result) compare(ours *Result) {
	r.Bound, r.Gap = 0, 0
	if ours == nil || ours.Bound == 0 || ours.Scheduled != ours.Pods || r.Scheduled != r.Pods {
		return
	}
	r.Bound, r.Gap = ours.Bound, r.PricePerHour/ours.Bound-1
}

// patience is how long a process may take, with what it does before and after
// the decisions.
func patience(engine string) time.Duration {
	if engine == engineOurs {
		return 3 * time.Minute
	}
	return workload.Uncapped + 5*time.Minute
}

// spawn measures in a process of its own.
func spawn(name, engine string) (*Result, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience(engine))
	defer cancel()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, self, "run", name, engine)
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	switch err := cmd.Run(); {
	case ctx.Err() != nil:
		w, err := load(name)
		if err != nil {
			return nil, err
		}
		return &Result{Workload: name, Engine: engine, Pods: w.Pods, Status: fmt.Sprintf("no plan within %s", patience(engine))}, nil
	case err != nil:
		return nil, fmt.Errorf("%s %s: %w", name, engine, err)
	}
	r := &Result{}
	if err := json.Unmarshal(out.Bytes(), r); err != nil {
		return nil, fmt.Errorf("%s %s: %w", name, engine, err)
	}
	return r, nil
}
