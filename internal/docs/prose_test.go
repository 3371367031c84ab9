// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"karpenter/internal/docs"
)

const backlog = "internal/docs/testdata/backlog.txt"

// TestProse checks the style of the documents, of what the commands print, and of
// events. Texts that are older than this test are listed with the number of their
// findings in testdata/backlog.txt; no number may rise. With -update the
// test writes the numbers of today: only commit lower ones.
func TestProse(t *testing.T) {
	style, err := docs.NewStyle(read(t, "internal/docs/testdata/words.txt"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]docs.Finding{}
	for path, p := range pages(t) {
		if f := style.Prose(p); len(f) > 0 {
			found[path] = f
		}
	}
	for folder, f := range programTexts(t, style) {
		found[folder] = f
	}
	if *update {
		write(t, found)
		return
	}
	allowed := map[string]int{}
	for line := range strings.Lines(read(t, backlog)) {
		number, path, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.Atoi(number); err == nil {
			allowed[path] = n
		}
	}
	total, most := 0, 0
	for path, f := range found {
		total += len(f)
		if len(f) <= allowed[path] {
			continue
		}
		t.Errorf("%s has %d findings, want at most %d:", path, len(f), allowed[path])
		for _, one := range f {
			t.Errorf("%s:%d: %s %.90q: %s", path, one.Line, one.Rule, one.Text, one.Hint)
		}
	}
	for _, n := range allowed {
		most += n
	}
	t.Logf("%d findings, %d in the backlog", total, most)
}

func write(t *testing.T, found map[string][]docs.Finding) {
	t.Helper()
	var out strings.Builder
	out.WriteString("# How many findings of TestProse each text may have. Lower the numbers, never raise them.\n")
	for _, path := range slices.Sorted(maps.Keys(found)) {
		fmt.Fprintf(&out, "%d %s\n", len(found[path]), path)
	}
	if err := os.WriteFile(filepath.Join(root, backlog), []byte(out.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// programTexts checks the strings of the program that people read, by folder:
// those with a space in them, which names of fields and metrics do not have.
func programTexts(t *testing.T, style *docs.Style) map[string][]docs.Finding {
	t.Helper()
	out := map[string][]docs.Finding{}
	fset, count := token.NewFileSet(), 0
	for _, room := range []string{"api", "cloud", "cmd", "control", "kube", "solve"} {
		err := filepath.WalkDir(filepath.Join(root, room), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			f, err := parser.ParseFile(fset, path, nil, 0)
			if err != nil {
				return err
			}
			folder, err := filepath.Rel(root, filepath.Dir(path))
			ast.Inspect(f, func(n ast.Node) bool {
				literal, ok := n.(*ast.BasicLit)
				if !ok || literal.Kind != token.STRING {
					return true
				}
				text, err := strconv.Unquote(literal.Value)
				if err != nil || !strings.Contains(text, " ") {
					return true
				}
				count++
				for _, one := range style.Words(text) {
					one.Line = fset.Position(literal.Pos()).Line
					one.Rule = filepath.Base(path) + ", word"
					out[filepath.ToSlash(folder)] = append(out[filepath.ToSlash(folder)], one)
				}
				return true
			})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if count < 1000 {
		t.Fatalf("only %d strings", count)
	}
	return out
}

// TestStyleFindsFaults checks the rules on a small page.
func TestStyleFindsFaults(t *testing.T) {
	style, err := docs.NewStyle("# a comment\nnobody\tno one\ntaken away\tremoved\n")
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("word ", 36) + "end."
	text := "# Title\n\nNobody is here. `nobody` and [a link](nobody.md) are not prose.\n\n" +
		"What the node costs is its price.\n\nWhat does a node cost?\n\n```\nnobody\n```\n\n* A node is\n  taken away.\n* " + long + "\n"
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "page.md"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	all, err := docs.Pages(folder)
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	var got []string
	for _, f := range style.Prose(all[0]) {
		got = append(got, fmt.Sprintf("%d %s %.12s", f.Line, f.Rule, f.Text))
	}
	want := []string{"3 word Nobody", "14 word taken away", "5 question What the nod", "13 long sentence word word wo"}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
