package console

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// color is an ANSI foreground or attribute; plain is none.
type color string

const (
	plain   color = ""
	bold    color = "1"
	dim     color = "2"
	red     color = "31"
	green   color = "32"
	yellow  color = "33"
	blue    color = "34"
	magenta color = "35"
	cyan    color = "36"
)

// span is text in one color. All text is taken to be one column per rune, which names, numbers and bars are.
type span struct {
	text  string
	color color
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
		if style.Color && s.color != plain && text != "" {
			fmt.Fprintf(to, "\x1b[%sm%s\x1b[0m", s.color, text)
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
		return span{fill + s.text, s.color}
	}
	return span{s.text + fill, s.color}
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
