// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// HoursPerMonth is how many hours a month has, as AWS counts them.
const HoursPerMonth = 730

// Style is how a report is written for people.
type Style struct {
	Width    int  // columns that a line may have; 0 = any number
	Whole    bool // tables have all rows and cells
	Markdown bool // for a pull request
}

// page is a report in the making.
type page struct {
	strings.Builder
	Style
}

// small reports whether the page has too few columns to show all facts about nodes.
func (b *page) small() bool {
	const spacious = 120
	return b.Width > 0 && b.Width < spacious && !b.Whole
}

// table writes rows of cells below a heading, the columns aligned, and says how
// many rows it leaves out. The first row has the names of the columns.
func table(b *page, heading string, rows [][]string) {
	if heading != "" {
		b.heading(heading)
	}
	left := 0
	if most := most + 1; len(rows) > most && !b.Whole {
		left = len(rows) - most
		rows = rows[:most]
	}
	if b.Markdown {
		b.markdown(rows)
	} else {
		b.aligned(rows)
	}
	if left > 0 {
		fmt.Fprintf(b, "  and %d more; -o wide and -o json have all\n", left)
	}
}

func (b *page) heading(text string) {
	if b.Markdown {
		text = "**" + text + "**\n"
	}
	b.WriteString("\n" + text + "\n")
}

// line writes one remark.
func (b *page) line(format string, args ...any) {
	mark := "  "
	if b.Markdown {
		mark = "- "
	}
	fmt.Fprintf(b, mark+format+"\n", args...)
}

func (b *page) markdown(rows [][]string) {
	columns := 0
	for _, row := range rows {
		columns = max(columns, len(row))
	}
	for i, row := range rows {
		cells := append(slices.Clone(row), make([]string, columns-len(row))...)
		for j := range cells {
			cells[j] = strings.ReplaceAll(cells[j], "|", `\|`)
		}
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
		if i == 0 {
			b.WriteString(strings.Repeat("|---", columns) + "|\n")
		}
	}
}

// gap is how many columns are between cells.
const gap = 2

// aligned writes the rows in columns that are as wide as their widest cell, or
// less if the page is narrower.
func (b *page) aligned(rows [][]string) {
	var widths []int
	for _, row := range rows {
		for j, cell := range row {
			if j == len(widths) {
				widths = append(widths, 0)
			}
			if j+1 < len(row) { // the last cell takes what is left
				widths[j] = max(widths[j], utf8.RuneCountInString(cell))
			}
		}
	}
	b.narrow(widths, rows)
	for _, row := range rows {
		line := strings.Repeat(" ", gap)
		for j, cell := range row {
			if j+1 == len(row) {
				b.last(line, cell)
				break
			}
			cell = cut(cell, widths[j])
			line += cell + strings.Repeat(" ", widths[j]-utf8.RuneCountInString(cell)+gap)
		}
	}
}

// last writes a line and its last cell, which goes on below itself if the page is
// too narrow for it.
func (b *page) last(line, cell string) {
	indent := utf8.RuneCountInString(line)
	space := b.Width - indent
	if b.Width == 0 || b.Whole || space < 1 {
		b.WriteString(strings.TrimRight(line+cell, " ") + "\n")
		return
	}
	part := ""
	for _, word := range strings.Fields(cell) {
		word = cut(word, space)
		switch {
		case part == "":
			part = word
		case utf8.RuneCountInString(part)+1+utf8.RuneCountInString(word) <= space:
			part += " " + word
		default:
			b.WriteString(line + part + "\n")
			line, part = strings.Repeat(" ", indent), word
		}
	}
	b.WriteString(strings.TrimRight(line+part, " ") + "\n")
}

// narrow takes from the widest columns until a row fits, and leaves the last cell
// some space.
func (b *page) narrow(widths []int, rows [][]string) {
	const least, last = 8, 20
	if b.Width == 0 || b.Whole {
		return
	}
	longest := 0
	for _, row := range rows {
		if len(row) == len(widths) {
			longest = max(longest, utf8.RuneCountInString(row[len(row)-1]))
		}
	}
	for {
		sum, widest := gap+min(longest, last), 0
		for j, w := range widths {
			if j+1 < len(widths) {
				sum += w + gap
			}
			if w > widths[widest] {
				widest = j
			}
		}
		if sum <= b.Width || len(widths) == 0 || widths[widest] <= least {
			return
		}
		widths[widest]--
	}
}

// cut shortens the text to a number of letters.
func cut(text string, most int) string {
	if utf8.RuneCountInString(text) <= most || most < 1 {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}
