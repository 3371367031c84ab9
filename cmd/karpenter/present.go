// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"regexp"
	"strings"
	"unicode/utf8"
)

// pages are what a command prints for people.
type pages struct {
	text, markdown func(io.Writer) error
	// styled text has its colours and fits the screen already.
	styled bool
}

// plainColumns is how wide tables are where no one says how wide they may be.
const plainColumns = 80

// columns is how wide tables may be; 0 = any width.
func (o *output) columns(s surroundings) int {
	switch {
	case o.format == wideFormat:
		return 0
	case s.width() > 0:
		return s.width()
	}
	return plainColumns
}

// fenced returns the text as a block of Markdown.
func fenced(text func(io.Writer) error) func(io.Writer) error {
	return func(w io.Writer) error {
		if _, err := io.WriteString(w, "```\n"); err != nil {
			return err
		}
		if err := text(w); err != nil {
			return err
		}
		_, err := io.WriteString(w, "```\n")
		return err
	}
}

// folded breaks lines that are wider than the screen between words; what follows is
// indented.
func folded(text string, width int) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		indent := min(len(line)-len(strings.TrimLeft(line, " "))+4, width/2)
		for utf8.RuneCountInString(line) > width {
			letters := []rune(line)
			at := width
			for at > indent && letters[at] != ' ' {
				at--
			}
			if at <= indent {
				break // one long word
			}
			b.WriteString(strings.TrimRight(string(letters[:at]), " ") + "\n")
			line = strings.Repeat(" ", indent) + strings.TrimLeft(string(letters[at:]), " ")
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// painted returns the text with colours: the names of columns and headings bold, remedies cyan,
// what waits yellow, and proven minima green.
func painted(text string) string {
	for _, rule := range []struct{ pattern, colour string }{
		{`(?m)^ *[A-Z$][A-Z$/]*(?: +[A-Z$/]+)+$`, "1"},
		{`(?m)^(?:node|pod|nodepool) \S+|^(?:why|its pods|existing nodes|from scratch)\b.*$`, "1"},
		{`(?m)\bstays? pending\b|  pending  `, "33"},
		{`(?m)^ *(?:at least|proven minimum) .*$`, "32"},
	} {
		text = regexp.MustCompile(rule.pattern).ReplaceAllString(text, "\x1b["+rule.colour+"m$0\x1b[0m")
	}
	return paintedRemedies(text)
}

// paintedRemedies returns the text with the lines that an arrow begins in cyan, and those on
// which they continue, two columns further in.
func paintedRemedies(text string) string {
	lines := strings.Split(text, "\n")
	at := -1 // the column of the arrow
	for i, l := range lines {
		words := strings.TrimLeft(l, " ")
		switch indent := len(l) - len(words); {
		case strings.HasPrefix(words, "→ "):
			at = indent
		case words == "" || indent != at+2:
			at = -1
		}
		if at >= 0 {
			lines[i] = "\x1b[36m" + l + "\x1b[0m"
		}
	}
	return strings.Join(lines, "\n")
}
