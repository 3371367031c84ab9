// SPDX-License-Identifier: Apache-2.0

package top

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// colour is an ANSI foreground or attribute; plain is none.
type colour string

const (
	plain   colour = ""
	bold    colour = "1"
	dim     colour = "2"
	red     colour = "31"
	green   colour = "32"
	yellow  colour = "33"
	blue    colour = "34"
	magenta colour = "35"
	cyan    colour = "36"
)

// span is text in one color. All text is taken to be one column per rune, which names, numbers and bars are.
type span struct {
	text   string
	colour colour
}

func (s span) width() int { return utf8.RuneCountInString(s.text) }

// line is one row of the screen.
type line []span

func (l line) width() int {
	n := 0
	for _, s := range l {
		n += s.width()
	}
	return n
}

// write writes the line, cut to width.
func (l line) write(to *strings.Builder, width int, style Style) {
	for _, s := range l {
		text := s.text
		if !style.Unicode {
			text = strings.NewReplacer("×", "x", "→", "->").Replace(text)
		}
		text = cut(text, width, style)
		width -= utf8.RuneCountInString(text)
		if style.Colour && s.colour != plain && text != "" {
			fmt.Fprintf(to, "\x1b[%sm%s\x1b[0m", s.colour, text)
		} else {
			to.WriteString(text)
		}
		if width <= 0 {
			return
		}
	}
}

// cut shortens text to width, with an ellipsis.
func cut(text string, width int, style Style) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	ellipsis := "…"
	if !style.Unicode {
		ellipsis = ">"
	}
	if width <= 0 {
		return ""
	}
	return string([]rune(text)[:width-1]) + ellipsis
}

// pad fills the span to width, on its left if right-aligned.
func (s span) pad(width int, right bool) span {
	fill := strings.Repeat(" ", max(0, width-s.width()))
	if right {
		return span{fill + s.text, s.colour}
	}
	return span{s.text + fill, s.colour}
}

// bar draws how much of something is used, width columns wide, and says it in percent.
func bar(used, room int64, width int, style Style) line {
	full, empty := "█", "░"
	if !style.Unicode {
		full, empty = "#", "."
	}
	share := 0.0
	if room > 0 {
		share = min(1, float64(used)/float64(room))
	}
	percent := fmt.Sprintf(" %3.0f%%", 100*share)
	cells := max(0, width-len(percent))
	n := int(share*float64(cells) + 0.5)
	return line{{strings.Repeat(full, n), green}, {strings.Repeat(empty, cells-n), dim}, {percent, plain}}
}

// age is short: the largest unit that counts.
func age(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// cores and gibibytes print amounts with as many digits as help.
func cores(milli int64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(milli)/1000), ".0")
}

func gibibytes(bytes int64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(bytes)/(1<<30)), ".0") + "Gi"
}

// hoursPerMonth is what months are reckoned with.
const hoursPerMonth = 730

// thousands writes whole dollars with commas.
func thousands(d float64) string {
	text := fmt.Sprintf("%.0f", d)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// wrap breaks text into lines of at most width columns, the later ones indented as
// the first is.
func wrap(text string, width int) []string {
	if utf8.RuneCountInString(text) <= width || width < 20 {
		return []string{text}
	}
	indent := text[:len(text)-len(strings.TrimLeft(text, " "))]
	var out []string
	now := indent
	for word := range strings.FieldsSeq(text) {
		if now != indent && utf8.RuneCountInString(now)+1+utf8.RuneCountInString(word) > width {
			out = append(out, now)
			now = indent + "  "
		}
		if strings.TrimSpace(now) != "" {
			now += " "
		}
		now += word
	}
	return append(out, now)
}
