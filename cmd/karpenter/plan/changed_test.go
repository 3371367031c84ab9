// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"karpenter/cmd/karpenter/plan"
	"karpenter/scenario"
)

// TestChanged plans situations with manifests: "situation" takes lines of the
// scenario language, "plan" manifests, in which general stands for those of
// docs/plan/general.yaml, each with words of it replaced:
//
//	plan [delete=POOL]
//	general: amd64 -> arm64
//
// In situations, $general is the hash of general's template.
func TestChanged(t *testing.T) {
	text, err := os.ReadFile("../../../docs/plan/general.yaml")
	if err != nil {
		t.Fatal(err)
	}
	hash := read(t, "../../../docs/plan/general.yaml").Pools[0].Pool.Hash()
	var situation scenario.Situation
	datadriven.RunTest(t, "testdata/changed", func(t *testing.T, d *datadriven.TestData) string {
		if d.Cmd == "situation" {
			var err error
			input := strings.ReplaceAll(d.Input, "$general", hash)
			if situation, err = scenario.Read(strings.NewReader(input), os.DirFS("../../../docs/plan")); err != nil {
				d.Fatalf(t, "%v", err)
			}
			return ""
		}
		var deleted []string
		for _, arg := range d.CmdArgs {
			deleted = append(deleted, arg.Vals...)
		}
		m := &plan.Manifests{}
		if err := m.Read("pools.yaml", strings.NewReader(written(d.Input, string(text)))); err != nil {
			return fmt.Sprintln(err)
		}
		r, err := plan.With(situation.Snapshot, m, deleted, decider(situation.Policy))
		if err != nil {
			return fmt.Sprintln(err)
		}
		var out strings.Builder
		if err := r.Text(&out); err != nil {
			d.Fatalf(t, "%v", err)
		}
		_, rest, _ := strings.Cut(out.String(), "\n\n")
		return strings.ReplaceAll(rest, "\n\n", "\n")
	})
}

// written returns the manifests that the lines stand for.
func written(input, general string) string {
	var out []string
	for line := range strings.SplitSeq(input, "\n") {
		edits, ok := strings.CutPrefix(line, "general:")
		if !ok {
			return input
		}
		manifest := general
		for edit := range strings.SplitSeq(edits, ";") {
			if was, is, ok := strings.Cut(edit, " -> "); ok {
				manifest = strings.ReplaceAll(manifest, strings.TrimSpace(was), strings.ReplaceAll(strings.TrimSpace(is), "\\n", "\n"))
			}
		}
		out = append(out, manifest)
	}
	return strings.Join(out, "---\n")
}

// TestPlanWithUnchangedManifests: manifests that say what is there change nothing.
func TestPlanWithUnchangedManifests(t *testing.T) {
	f, err := os.Open("../../../docs/plan/fleet.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, err := scenario.Read(f, os.DirFS("../../../docs/plan"))
	if err != nil {
		t.Fatal(err)
	}
	changed, err := plan.With(s.Snapshot, read(t, "../../../docs/plan/general.yaml"), nil, decider(s.Policy))
	if err != nil {
		t.Fatal(err)
	}
	is := plan.Of(s.Snapshot, decider(s.Policy))
	if diff := cmp.Diff(is, changed, cmpopts.IgnoreFields(plan.Report{}, "Changes", "Unchanged")); diff != "" {
		t.Errorf("the plan is another (-without +with):\n%s", diff)
	}
	if diff := cmp.Diff(is.After, *changed.Unchanged); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]plan.Change{{Pool: "general", Kind: "same"}}, changed.Changes); diff != "" {
		t.Error(diff)
	}
}

func read(t *testing.T, file string) *plan.Manifests {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m := &plan.Manifests{}
	if err := m.Read(file, f); err != nil {
		t.Fatal(err)
	}
	return m
}
