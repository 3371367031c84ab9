// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"karpenter/internal/docs"
)

const root = "../.."

func pages(t *testing.T) map[string]docs.Page {
	t.Helper()
	all, err := docs.Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]docs.Page{}
	for _, p := range all {
		out[p.Path] = p
	}
	if len(out) < 15 {
		t.Fatalf("only %d documents", len(out))
	}
	return out
}

// prose is the text of a page without its blocks and code, in which links are
// links.
func prose(p docs.Page) string {
	lines := strings.Split(p.Text, "\n")
	for _, b := range p.Blocks {
		for i := range strings.Count(b.Text, "\n") {
			lines[b.Line-1+i] = ""
		}
	}
	return regexp.MustCompile("`[^`\n]*`").ReplaceAllString(strings.Join(lines, "\n"), "")
}

// anchors are the names by which the headings of a page can be linked to, as
// GitHub makes them.
func anchors(p docs.Page) map[string]bool {
	out := map[string]bool{}
	for _, b := range p.Blocks {
		p.Text = strings.ReplaceAll(p.Text, b.Text, "\n")
	}
	for _, m := range regexp.MustCompile(`(?m)^#+ +(.+)$`).FindAllStringSubmatch(p.Text, -1) {
		name := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(m[1]), "")
		out[strings.ReplaceAll(name, " ", "-")] = true
	}
	return out
}

// TestLinksLead follows every relative link of every document, to the heading if
// it names one.
func TestLinksLead(t *testing.T) {
	all := pages(t)
	link := regexp.MustCompile(`\[[^\]]*\]\(([^)\s]+)\)`)
	count := 0
	for path, p := range all {
		for _, m := range link.FindAllStringSubmatch(prose(p), -1) {
			target, err := url.Parse(m[1])
			if err != nil || target.Scheme != "" {
				if err != nil {
					t.Errorf("%s: link %s: %v", path, m[1], err)
				}
				continue
			}
			count++
			to := path
			if target.Path != "" {
				to = filepath.ToSlash(filepath.Join(filepath.Dir(path), target.Path))
			}
			if _, err := os.Stat(filepath.Join(root, to)); err != nil {
				t.Errorf("%s: link %s: %v", path, m[1], err)
				continue
			}
			if target.Fragment != "" && !anchors(all[to])[target.Fragment] {
				t.Errorf("%s: link %s: no such heading in %s", path, m[1], to)
			}
		}
	}
	if count < 60 {
		t.Errorf("only %d links", count)
	}
}

// TestSiteIsWhole has docs/README.md, of which site/conf.py makes the navigation of
// the site, link to every page of docs, in sections of the four kinds.
func TestSiteIsWhole(t *testing.T) {
	all := pages(t)
	index := all["docs/README.md"].Text
	for path := range all {
		name, ours := strings.CutPrefix(path, "docs/")
		if ours && name != "README.md" && !strings.Contains(index, "("+name+")") {
			t.Errorf("docs/README.md has no link to %s", name)
		}
	}
	var sections []string
	for _, m := range regexp.MustCompile(`(?m)^## (.+)$`).FindAllStringSubmatch(index, -1) {
		sections = append(sections, m[1])
	}
	want := []string{"Learn (tutorials)", "Do (how-to guides)", "Understand (explanations)", "Look up (reference)", "Contribute"}
	if !slices.Equal(sections, want) {
		t.Errorf("docs/README.md has the sections %q, want %q", sections, want)
	}
}

// TestTargetsExist looks for the targets of every make command that is shown.
func TestTargetsExist(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z0-9-]+):`).FindAllStringSubmatch(string(makefile), -1) {
		have[m[1]] = true
	}
	count := 0
	for _, p := range pages(t) {
		for _, c := range p.Commands("make") {
			for _, word := range strings.Fields(c.Text)[1:] {
				if strings.ContainsAny(word, "=$'") || !regexp.MustCompile(`^[a-z]`).MatchString(word) {
					break // settings; what follows may be inside quotes
				}
				count++
				if !have[word] {
					t.Errorf("%s:%d: %s: the Makefile has no target %s", c.Page, c.Line, c.Text, word)
				}
			}
		}
	}
	if count < 15 {
		t.Errorf("only %d targets", count)
	}
}

// TestTestsExist looks for the folder, and the test, of every go test command
// that is shown.
func TestTestsExist(t *testing.T) {
	count := 0
	for _, p := range pages(t) {
		for _, c := range p.Commands("go") {
			folder := regexp.MustCompile(`\./[\w/]*`).FindString(c.Text)
			name := regexp.MustCompile(`-run (Test\w+)`).FindStringSubmatch(c.Text)
			if folder == "" {
				continue
			}
			count++
			base := filepath.Join(root, filepath.Dir(p.Path))
			if _, err := os.Stat(filepath.Join(base, folder)); err != nil {
				base = root
			}
			files, err := filepath.Glob(filepath.Join(base, folder, "*_test.go"))
			if err != nil {
				t.Fatal(err)
			}
			found := strings.Contains(c.Text, "...")
			for _, f := range files {
				text, err := os.ReadFile(f)
				found = found || err == nil && (name == nil || strings.Contains(string(text), "func "+name[1]))
			}
			if !found {
				t.Errorf("%s:%d: %s: there is no such test", c.Page, c.Line, c.Text)
			}
		}
	}
	if count < 10 {
		t.Errorf("only %d commands", count)
	}
}
