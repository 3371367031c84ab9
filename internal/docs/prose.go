// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"regexp"
	"strings"
)

// Finding is one place where text does not follow the style of the project.
type Finding struct {
	Line int    // from 1
	Rule string // names the rule, or the word
	Text string // what was found
	Hint string // what to write instead
}

// Style finds words and sentences that readers stumble over. The project writes
// in the voice of the Kubernetes documentation: one idea per sentence, and the
// words that people search for.
type Style struct {
	words []word
}

type word struct {
	pattern *regexp.Regexp
	hint    string
}

// longest is how many words a sentence can have.
const longest = 35

// NewStyle returns the style from a list of words: on each line a regular
// expression, a tab, and what to write instead. Lines that begin with # are
// comments.
func NewStyle(list string) (*Style, error) {
	out := &Style{}
	for line := range strings.Lines(list) {
		pattern, hint, found := strings.Cut(strings.TrimSpace(line), "\t")
		if !found || strings.HasPrefix(line, "#") {
			continue
		}
		compiled, err := regexp.Compile(`(?i)\b(?:` + pattern + `)\b`)
		if err != nil {
			return nil, err
		}
		out.words = append(out.words, word{compiled, strings.TrimSpace(hint)})
	}
	return out, nil
}

// Words returns the words of the list that the text contains.
func (s *Style) Words(text string) []Finding {
	var out []Finding
	for _, w := range s.words {
		for _, at := range w.pattern.FindAllStringIndex(text, -1) {
			out = append(out, Finding{1 + strings.Count(text[:at[0]], "\n"), "word", text[at[0]:at[1]], w.hint})
		}
	}
	return out
}

var (
	codeSpan = regexp.MustCompile("`[^`\n]*`")
	target   = regexp.MustCompile(`\]\([^)\n]*\)`)
	comment  = regexp.MustCompile(`<!--.*?-->`)
	labels   = regexp.MustCompile(`\{[^{}\n]*\}`)         // of a series of Prometheus
	name     = regexp.MustCompile(`\w+-\w+-\w+(?:-\w+)*`) // such as that of a workload
	question = regexp.MustCompile(`^(?:What|Which|Who|Whose|Whoever|Whatever) `)
	ends     = regexp.MustCompile(`[.:;?!](?:\s|$)`)
)

// Prose returns what is wrong with the prose of a page. Blocks, code, links,
// tables' separators and headings are left out.
func (s *Style) Prose(p Page) []Finding {
	text := proseOf(p)
	out := s.Words(text)
	line := 1
	for _, paragraph := range strings.SplitAfter(text, "\n\n") {
		for _, cell := range strings.Split(paragraph, "|") {
			out = append(out, sentences(cell, line)...)
			line += strings.Count(cell, "\n")
		}
	}
	return out
}

func sentences(text string, line int) []Finding {
	var out []Finding
	for _, sentence := range regexp.MustCompile(`(?m)^\s*(?:[*-]|\d+\.) |\n#`).Split(text, -1) {
		for rest := sentence; rest != ""; {
			end := ends.FindStringIndex(rest)
			if end == nil {
				end = []int{len(rest), len(rest)}
			}
			one := strings.TrimSpace(rest[:end[1]])
			rest = rest[end[1]:]
			if n := len(strings.Fields(one)); n > longest {
				out = append(out, Finding{line, "long sentence", one, "make two sentences of it"})
			}
			if question.MatchString(one) && strings.HasSuffix(one, ".") {
				out = append(out, Finding{line, "question", one, "begin with the subject"})
			}
		}
	}
	return out
}

// proseOf blanks everything that is not prose, and keeps the lines.
func proseOf(p Page) string {
	lines := strings.Split(p.Text, "\n")
	for _, b := range p.Blocks {
		for i := range strings.Count(b.Text, "\n") {
			lines[b.Line-1+i] = ""
		}
	}
	for i, l := range lines {
		if strings.HasPrefix(l, "```") || strings.HasPrefix(l, "|--") || strings.HasPrefix(l, "| --") || strings.HasPrefix(l, "Tests: ") {
			lines[i] = ""
		}
	}
	text := comment.ReplaceAllString(strings.Join(lines, "\n"), "")
	text = target.ReplaceAllString(codeSpan.ReplaceAllString(text, "X"), "]")
	return name.ReplaceAllString(labels.ReplaceAllString(text, "X"), "X")
}
