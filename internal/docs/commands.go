// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"regexp"
	"strings"
)

// Command is one command that a page shows.
type Command struct {
	Page string // path of the page
	Line int    // from 1
	Text string // in one line, beginning with the program's name
}

// Program returns the name of the program, without its folder.
func (c Command) Program() string {
	name, _, _ := strings.Cut(c.Text, " ")
	return name[strings.LastIndex(name, "/")+1:]
}

// Elided reports whether the page leaves part of the command out.
func (c Command) Elided() bool { return strings.Contains(c.Text, "…") }

// Commands returns the commands of the given programs that the page shows, in
// blocks and within the text.
func (p Page) Commands(programs ...string) []Command {
	names := strings.Join(programs, "|")
	start := regexp.MustCompile(`^(?:[A-Z_]+=\S+ +)*((?:bin/)?(?:` + names + `)(?: .*)?)$`)
	var out []Command
	add := func(line int, text string) {
		text, _, _ = strings.Cut(text, " # ")
		text = strings.TrimPrefix(strings.TrimSpace(text), "$ ")
		if m := start.FindStringSubmatch(text); m != nil {
			out = append(out, Command{p.Path, line, strings.Join(strings.Fields(m[1]), " ")})
		}
	}
	shown := map[int]bool{}
	for _, b := range p.Blocks {
		lines := strings.Split(b.Text, "\n")
		for i := 0; i < len(lines); i++ {
			shown[b.Line+i] = true
			first, text := b.Line+i, lines[i]
			for strings.HasSuffix(text, `\`) && i+1 < len(lines) {
				i++
				shown[b.Line+i] = true
				text = strings.TrimSuffix(text, `\`) + " " + strings.TrimSpace(lines[i])
			}
			add(first, text)
		}
	}
	for i, line := range strings.Split(p.Text, "\n") {
		if shown[i+1] {
			continue
		}
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(line, -1) {
			if strings.Contains(m[1], " ") {
				add(i+1, strings.ReplaceAll(m[1], `\|`, "|"))
			}
		}
	}
	return out
}
