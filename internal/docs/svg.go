// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"html"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Sizes of a picture of a terminal, in pixels.
const (
	cellWidth  = 8.4
	cellHeight = 18
	margin     = 12
	frameTime  = 3 // seconds that each of several screens is shown
)

// SVG draws screens of a terminal, text with colours as escape sequences, as a
// picture. Several screens are shown one after the other, again and again.
func SVG(columns int, screens ...string) string {
	lines := 0
	for _, s := range screens {
		lines = max(lines, strings.Count(strings.TrimRight(s, "\n"), "\n")+1)
	}
	width, height := int(float64(columns)*cellWidth)+2*margin, lines*cellHeight+2*margin
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d">`+"\n", width, height, width, height)
	b.WriteString("<style>text{font:14px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#d4d4d4;white-space:pre}" +
		".b{font-weight:bold;fill:#fff}.d{fill:#8a8a8a}.r{fill:#f47067}.g{fill:#6bc46d}.y{fill:#daaa3f}.u{fill:#6cb6ff}.m{fill:#dcbdfb}.c{fill:#76e3ea}")
	if len(screens) > 1 {
		total := frameTime * len(screens)
		share := 100 / float64(len(screens))
		fmt.Fprintf(&b, ".f{visibility:hidden;animation:f %ds step-end infinite}@keyframes f{0%%{visibility:visible}%.3f%%{visibility:hidden}}", total, share)
	}
	b.WriteString("</style>\n")
	fmt.Fprintf(&b, `<rect width="%d" height="%d" rx="6" fill="#1e1e1e"/>`+"\n", width, height)
	for i, s := range screens {
		if len(screens) > 1 {
			fmt.Fprintf(&b, `<g class="f" style="animation-delay:%ds">`+"\n", i*frameTime)
		}
		for n, line := range strings.Split(strings.TrimRight(s, "\n"), "\n") {
			drawLine(&b, margin+(n+1)*cellHeight-5, line)
		}
		if len(screens) > 1 {
			b.WriteString("</g>\n")
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// drawLine writes a line of text, each stretch of one colour at its column.
func drawLine(b *strings.Builder, y int, line string) {
	column, class := 0, ""
	for line != "" {
		text, rest, _ := strings.Cut(line, "\x1b[")
		if text != "" {
			n := utf8.RuneCountInString(text)
			if strings.TrimSpace(text) != "" {
				fmt.Fprintf(b, `<text x="%s" y="%d" textLength="%s"%s>%s</text>`+"\n",
					pixels(margin+float64(column)*cellWidth), y, pixels(float64(n)*cellWidth), class, html.EscapeString(text))
			}
			column += n
		}
		if len(text) == len(line) {
			return
		}
		code, after, _ := strings.Cut(rest, "m")
		line, class = after, ""
		if name := colours()[code]; name != "" {
			class = fmt.Sprintf(` class="%s"`, name)
		}
	}
}

func pixels(x float64) string { return strconv.FormatFloat(x, 'f', 1, 64) }

// colours are the classes of the escape sequences that the program writes.
func colours() map[string]string {
	return map[string]string{"1": "b", "2": "d", "31": "r", "32": "g", "33": "y", "34": "u", "35": "m", "36": "c", "90": "d"}
}
