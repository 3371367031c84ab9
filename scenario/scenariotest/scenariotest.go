// SPDX-License-Identifier: Apache-2.0

// Package scenariotest runs cases written as text against a planner.
//
// A file of cases is a sequence of blocks in the manner of
// cockroachdb/datadriven. The lines of a block are in the language of package
// scenario; what is below ---- is expected and regenerated with -rewrite:
//
//	# comments
//	common
//	include small.txt
//	pool general
//	----
//
//	# spec 20/27: a small pod gets the smallest type
//	decide now=2026-01-01T12:00:00Z
//	pods web-1 cpu=100m
//	----
//	launch general m.small …
//
// A common block is put in front of every decide block below it, up to the
// next common block. The options of a decide block are those of the decide
// line of the language.
package scenariotest

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"karpenter/model"
	"karpenter/scenario"
)

// Decide makes a plan for a situation.
type Decide func(*model.Snapshot, model.Policy) *model.Plan

// Run runs every case file dir/*.txt. Files they include are looked up in
// dir/include.
//
// Each situation is also printed and read back, and must lead to the same
// plan: no case exists that a bug dump could not hold.
func Run(t *testing.T, dir string, decide Decide) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no case files in %s: %v", dir, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			r := runner{decide: decide, files: os.DirFS(filepath.Join(dir, "include"))}
			datadriven.RunTest(t, file, r.block)
		})
	}
}

// runner is the state between the blocks of one file.
type runner struct {
	decide Decide
	files  fs.FS
	common string
}

func (r *runner) block(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "common":
		r.common = d.Input
		if _, err := scenario.Read(strings.NewReader(r.common), r.files); err != nil {
			return located(err)
		}
		return ""
	case "decide":
		head, want := r.head(t, d)
		return r.plan(t, d.Pos, strings.Join([]string{r.common, d.Input, head}, "\n"), want)
	}
	t.Fatalf("%s: a block begins with common or decide, not %s", d.Pos, d.Cmd)
	return ""
}

// demands are what a block wants of its plan.
type demands struct {
	placed bool
	cost   model.Price // at most; 0 = any

	takes, as string // nodes that commands take away, and why, sorted; "none"; "" = any
	buys      int    // launches of all commands; -1 = any
}

// head makes a decide line of the options that are none of demands.
func (r *runner) head(t *testing.T, d *datadriven.TestData) (string, demands) {
	line, want := "decide", demands{buys: -1}
	for _, arg := range d.CmdArgs {
		switch {
		case arg.Key == "placed":
			want.placed = true
		case arg.Key == "cost" && len(arg.Vals) == 1:
			price, err := scenario.ParsePrice(arg.Vals[0])
			if err != nil {
				t.Fatalf("%s: %v", d.Pos, err)
			}
			want.cost = price
		case arg.Key == "takes":
			want.takes = strings.Join(arg.Vals, ",")
		case arg.Key == "as":
			want.as = strings.Join(arg.Vals, ",")
		case arg.Key == "buys" && len(arg.Vals) == 1:
			n, err := strconv.Atoi(arg.Vals[0])
			if err != nil {
				t.Fatalf("%s: %v", d.Pos, err)
			}
			want.buys = n
		default:
			line += " " + arg.String()
		}
	}
	return line, want
}

// check holds a plan against the laws and what its block wants.
func check(s *model.Snapshot, plan *model.Plan, want demands) []string {
	broken := Broken(s, plan)
	if want.placed && len(plan.Verdicts) > 0 {
		broken = append(broken, "pods stay pending although the case wants all placed")
	}
	if want.cost > 0 && plan.Cost > want.cost {
		broken = append(broken, "the plan costs $"+scenario.FormatPrice(plan.Cost)+", the case wants at most $"+scenario.FormatPrice(want.cost))
	}
	return append(broken, want.commands(plan)...)
}

// commands says what the commands do that the block does not want.
func (want demands) commands(plan *model.Plan) []string {
	var nodes, reasons, broken []string
	buys := 0
	for _, c := range plan.Commands {
		for _, n := range c.Nodes {
			nodes = append(nodes, n.Node)
		}
		reasons = append(reasons, string(c.Reason))
		buys += len(c.Launches)
	}
	list := func(names []string) string {
		slices.Sort(names)
		return cmp.Or(strings.Join(slices.Compact(names), ","), "none")
	}
	if got := list(nodes); want.takes != "" && got != want.takes {
		broken = append(broken, "the plan takes away "+got+", the case wants "+want.takes)
	}
	if got := list(reasons); want.as != "" && got != want.as {
		broken = append(broken, "nodes go as "+got+", the case wants "+want.as)
	}
	if want.buys >= 0 && buys != want.buys {
		broken = append(broken, fmt.Sprintf("commands launch %d nodes, the case wants %d", buys, want.buys))
	}
	return broken
}

func (r *runner) plan(t *testing.T, pos, text string, want demands) string {
	situation, err := scenario.Read(strings.NewReader(text), r.files)
	if err != nil {
		return located(err)
	}
	plan := r.decide(situation.Snapshot, situation.Policy)
	got := scenario.Text(situation.Snapshot, plan)
	for _, law := range check(situation.Snapshot, plan, want) {
		t.Errorf("%s: %s\n%s", pos, law, got)
	}
	var dump strings.Builder
	if err := situation.Print(&dump); err != nil {
		t.Errorf("print: %v", err)
		return got
	}
	again, err := scenario.Read(strings.NewReader(dump.String()), nil)
	if err != nil {
		t.Errorf("the dump does not read back: %v\n%s", err, dump.String())
		return got
	}
	if replayed := scenario.Text(again.Snapshot, r.decide(again.Snapshot, again.Policy)); replayed != got {
		t.Errorf("the dump leads to another plan:\n%s\nwith\n%s", replayed, dump.String())
	}
	return got
}

// located prints a mistake without the line, which counts the common block.
func located(err error) string {
	var e *scenario.Error
	if errors.As(err, &e) && e.File == "" {
		return "error: " + e.Msg
	}
	return "error: " + err.Error()
}
