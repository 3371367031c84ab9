// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"karpenter/internal/docs"
)

// TestProse checks the style of the documents, and the words of what the program
// prints.
func TestProse(t *testing.T) {
	style, err := docs.NewStyle(read(t, "internal/docs/testdata/words.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for path, p := range pages(t) {
		for _, f := range style.Prose(p) {
			t.Errorf("%s:%d: %s %.90q: %s", path, f.Line, f.Rule, f.Text, f.Hint)
		}
	}
	programTexts(t, style)
	manifestComments(t, style)
}

// code is a name in backquotes.
var code = regexp.MustCompile("`[^`]*`")

// manifestComments checks the comments of manifests that people apply or read.
func manifestComments(t *testing.T, style *docs.Style) {
	t.Helper()
	count := 0
	for _, room := range []string{"charts", "deploy", "examples"} {
		err := filepath.WalkDir(filepath.Join(root, room), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".yaml" || filepath.Base(filepath.Dir(path)) == "crds" {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for i, line := range strings.Split(string(text), "\n") {
				_, comment, found := strings.Cut(line, "# ")
				if !found {
					continue
				}
				count++
				for _, one := range style.Words(code.ReplaceAllString(comment, "X")) {
					t.Errorf("%s:%d: word %q: %s", path, i+1, one.Text, one.Hint)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if count < 300 {
		t.Fatalf("only %d comments of manifests", count)
	}
}

// programTexts checks the strings of the program that people read: those with a
// space in them, which names of fields and metrics do not have.
func programTexts(t *testing.T, style *docs.Style) {
	t.Helper()
	fset, count := token.NewFileSet(), 0
	for _, room := range []string{"api", "cloud", "cmd", "control", "kube", "release", "sandbox", "sim", "solve", "world"} {
		err := filepath.WalkDir(filepath.Join(root, room), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			f, err := parser.ParseFile(fset, path, nil, 0)
			if err != nil {
				return err
			}
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
					t.Errorf("%s: word %q: %s", fset.Position(literal.Pos()), one.Text, one.Hint)
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if count < 1000 {
		t.Fatalf("only %d strings", count)
	}
}

// TestWordsOfComments checks the words of comments in the packages in which all
// comments follow the style. The first word of a comment can be a name in the
// code, so it is not looked at.
func TestWordsOfComments(t *testing.T) {
	words := read(t, "internal/docs/testdata/comments.txt")
	reworded := []string{"api", "charts", "cloud", "cmd", "control", "kube", "model", "sandbox"}
	commentsIn(t, words, 9000, append(reworded, "e2e", "sim", "solve", "world")...)
	commentsIn(t, read(t, "internal/docs/testdata/comments-more.txt"), 5000, reworded...)
	// In package world and in fleet, a machine is a Node and its NodeClaim, and Azure has machines, too.
	commentsIn(t, "(?:an?|the|its|no|new|whose|of|every|each|all) machines?\tinstance, node; computer\n", 3000,
		"control", "sandbox/demo", "sandbox/made", "sandbox/kubelet", "sim/actors", "sim/laws", "sim/simcloud", "sim/trial", "solve")
}

// assignment is one in the language of a script.
var assignment = regexp.MustCompile(`\w+=\S*`)

// commentsIn holds the comments of packages, and of those below them, against a
// list of words. At least so many comments must be there.
func commentsIn(t *testing.T, words string, least int, rooms ...string) {
	t.Helper()
	style, err := docs.NewStyle(words)
	if err != nil {
		t.Fatal(err)
	}
	fset, count := token.NewFileSet(), 0
	for _, room := range rooms {
		err := filepath.WalkDir(filepath.Join(root, room), func(path string, entry fs.DirEntry, err error) error {
			if entry != nil && entry.IsDir() && strings.HasPrefix(entry.Name(), "azure") {
				return filepath.SkipDir // the provider for AKS has not been reworded
			}
			if err != nil || filepath.Ext(path) != ".go" {
				return err
			}
			f, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for _, group := range f.Comments {
				count++
				_, text, _ := strings.Cut(assignment.ReplaceAllString(group.Text(), "X"), " ")
				for _, one := range style.Words(text) {
					t.Errorf("%s:%d: word %q: %s", path, fset.Position(group.Pos()).Line+one.Line-1, one.Text, one.Hint)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if count < least {
		t.Fatalf("only %d comments", count)
	}
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
