// SPDX-License-Identifier: Apache-2.0

package top

import (
	"context"
	"fmt"
	"io"
	"time"
)

// Lines writes what there is, and then a line for each thing that happens, until ctx
// is done.
func Lines(ctx context.Context, w io.Writer, o Options) error {
	m := NewModel(ctx, o)
	answers, err := Ask(ctx, o.Reader, o.Source.Now())
	if err != nil {
		return err
	}
	m.answers, m.screen.Bound = answers, answers.Bound
	printed := 0
	for {
		if msg := m.read().(readMsg); msg.err == nil {
			m.screen.Happened = nil
			m.show(msg)
		}
		if printed++; printed == 1 {
			if _, err := fmt.Fprintln(w, plainText(m.screen.boundLine())); err != nil {
				return err
			}
		}
		for _, e := range m.screen.Happened {
			if _, err := fmt.Fprintf(w, "%s %-8s %s\n", e.At.Format(time.TimeOnly), e.Kind, e.Text); err != nil {
				return err
			}
		}
		if m.await() == nil {
			return nil
		}
		if len(m.screen.View.Nodes) == 0 || m.screen.View.Unpriced > 0 { // prices may be published only now
			if answers, err := Ask(ctx, o.Reader, o.Source.Now()); err == nil {
				m.answers = answers
			}
		}
	}
}

func plainText(l line) string {
	out := ""
	for _, s := range l {
		out += s.text
	}
	return out
}
