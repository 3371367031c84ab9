// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"cmp"
	"fmt"
	"io"
	"slices"
)

// Entry is one line of a report.
type Entry struct {
	File   string
	Line   int    // in the source; 0 = the whole file
	Object string // kind/name as read, or ""
	Text   string
	ByHand bool // a person has to do it
}

// Report lists what was changed and what a person has to do, in the order of
// the input.
type Report struct {
	Entries []Entry
	Objects int // rewritten objects
}

// ByHand returns the number of entries that a person has to act on.
func (r *Report) ByHand() int {
	n := 0
	for _, e := range r.Entries {
		if e.ByHand {
			n++
		}
	}
	return n
}

// Write writes the report for people.
func (r *Report) Write(w io.Writer) error {
	entries := slices.Clone(r.Entries)
	first := map[string]int{}
	for i, e := range entries {
		if _, known := first[e.File]; !known {
			first[e.File] = i
		}
	}
	slices.SortStableFunc(entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(first[a.File], first[b.File]), cmp.Compare(a.Line, b.Line))
	})
	for _, e := range entries {
		where := e.File
		if e.Line > 0 {
			where = fmt.Sprintf("%s:%d", e.File, e.Line)
		}
		if e.Object != "" {
			where += ": " + e.Object
		}
		mark := ""
		if e.ByHand {
			mark = "BY HAND: "
		}
		if _, err := fmt.Fprintf(w, "%s: %s%s\n", where, mark, e.Text); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "%s migrated, %s to do by hand\n", counted(r.Objects, "object"), counted(r.ByHand(), "thing"))
	return err
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
