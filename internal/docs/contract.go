// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ContractFolder holds the numbered cases, one page per chapter.
const ContractFolder = "docs/contract"

// Chapter is one page of the contract.
type Chapter struct {
	Page  string // path of the page
	Title string
	Cases []string // such as "20/36", in the order of the page
}

// Citation is one place that names a case.
type Citation struct {
	Case string // such as "20/36"
	File string // relative to the project's folder, with slashes
	Line int    // from 1
	Test string // the test function around it, "" if there is none
}

// Tested reports whether the citation is in a test or in test data.
func (c Citation) Tested() bool {
	return strings.HasSuffix(c.File, "_test.go") || strings.Contains("/"+c.File, "/testdata/")
}

var (
	caseHeading = regexp.MustCompile(`^### (\d\d/\d+)$`)
	citation    = regexp.MustCompile(`\bspec[ _](\d\d)/(\d+)((?:(?:,| and| to) (?:spec )?\d\d/\d+\b)*)`)
	further     = regexp.MustCompile(`(,| and| to) (?:spec )?(\d\d)/(\d+)`)
)

// Contract returns the chapters of the contract below root, in order of their
// numbers. It returns an error if a chapter does not number its cases from 1.
func Contract(root string) ([]Chapter, error) {
	pages, err := Pages(filepath.Join(root, ContractFolder))
	if err != nil {
		return nil, err
	}
	var out []Chapter
	for _, p := range pages {
		if p.Path == "README.md" {
			continue
		}
		title, _, _ := strings.Cut(p.Text, "\n")
		c := Chapter{Page: path.Join(ContractFolder, p.Path), Title: strings.TrimPrefix(title, "# ")}
		for line := range strings.Lines(p.Text) {
			if m := caseHeading.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
				c.Cases = append(c.Cases, m[1])
				if want := fmt.Sprintf("%s/%d", p.Path[:2], len(c.Cases)); m[1] != want {
					return nil, fmt.Errorf("%s: case %s is where %s is expected", c.Page, m[1], want)
				}
			}
		}
		out = append(out, c)
	}
	return out, nil
}

// Citations returns all places below root that name cases, in order of path and
// line, without the contract itself and without folders that are built or hidden.
func Citations(root string) ([]Citation, error) {
	var out []Citation
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		relative = filepath.ToSlash(relative)
		if entry.IsDir() {
			if name != root && (entry.Name() == "bin" || strings.HasPrefix(entry.Name(), ".")) || relative == ContractFolder {
				return filepath.SkipDir
			}
			return nil
		}
		if !entry.Type().IsRegular() || !readable(entry.Name()) {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		out = append(out, citationsOf(relative, text)...)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("find the cases that are named below %s: %w", root, err)
	}
	return out, nil
}

func readable(name string) bool {
	return slices.Contains([]string{".go", ".txt", ".md", ".yaml", ".txtar", ".script", ""}, path.Ext(name))
}

func citationsOf(file string, text []byte) []Citation {
	if !bytes.Contains(text, []byte("spec")) {
		return nil
	}
	found := citation.FindAllSubmatchIndex(text, -1)
	if len(found) == 0 {
		return nil
	}
	tests := testsOf(file, text)
	var out []Citation
	for _, at := range found {
		line := 1 + strings.Count(string(text[:at[0]]), "\n")
		for _, id := range casesOf(string(text[at[0]:at[1]])) {
			out = append(out, Citation{Case: id, File: file, Line: line, Test: tests(line)})
		}
	}
	return out
}

// casesOf returns the cases of one citation: lists and ranges, such as
// "spec 25/28, 25/30 to 25/32".
func casesOf(text string) []string {
	m := citation.FindStringSubmatch(text)
	chapter, last := m[1], number(m[2])
	out := []string{m[1] + "/" + m[2]}
	for _, next := range further.FindAllStringSubmatch(m[3], -1) {
		n := number(next[3])
		if next[1] == " to" && next[2] == chapter {
			for i := last + 1; i < n; i++ {
				out = append(out, fmt.Sprintf("%s/%d", chapter, i))
			}
		}
		chapter, last = next[2], n
		out = append(out, next[2]+"/"+next[3])
	}
	return out
}

func number(digits string) int {
	n, _ := strconv.Atoi(digits) // the pattern allows nothing else
	return n
}

// testsOf returns a function that names the test at a line of a Go file, its doc
// comment included.
func testsOf(file string, text []byte) func(line int) string {
	fset := token.NewFileSet()
	var parsed *ast.File
	if strings.HasSuffix(file, "_test.go") {
		parsed, _ = parser.ParseFile(fset, file, text, parser.ParseComments) // go vet reports files that do not parse
	}
	return func(line int) string {
		if parsed == nil {
			return ""
		}
		for _, d := range parsed.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(f.Name.Name, "Test") {
				continue
			}
			start := f.Pos()
			if f.Doc != nil {
				start = f.Doc.Pos()
			}
			if fset.Position(start).Line <= line && line <= fset.Position(f.End()).Line {
				return f.Name.Name
			}
		}
		return ""
	}
}

// WithTests returns the page of a chapter with a line of links below each case
// that names the tests for it. Lines of an earlier run are replaced.
func WithTests(text string, citations []Citation) string {
	links := map[string][]string{}
	for _, c := range citations {
		if !c.Tested() {
			continue
		}
		name := c.Test
		if name == "" {
			name = path.Join(path.Base(path.Dir(c.File)), path.Base(c.File))
		}
		link := fmt.Sprintf("[%s](../../%s)", name, c.File)
		if !slices.Contains(links[c.Case], link) {
			links[c.Case] = append(links[c.Case], link)
		}
	}
	var out strings.Builder
	at := ""
	flush := func() {
		if at != "" {
			all := strings.Join(links[at], ", ")
			if all == "" {
				all = "no test yet"
			}
			fmt.Fprintf(&out, "Tests: %s\n\n", all)
			at = ""
		}
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			flush()
		}
		if m := caseHeading.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			at = m[1]
		}
		if strings.HasPrefix(line, "Tests: ") {
			continue
		}
		if line == "\n" && strings.HasSuffix(out.String(), "\n\n") {
			continue
		}
		out.WriteString(line)
	}
	if !strings.HasSuffix(out.String(), "\n\n") {
		out.WriteString("\n")
	}
	flush()
	return strings.TrimRight(out.String(), "\n") + "\n"
}
