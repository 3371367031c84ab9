// SPDX-License-Identifier: Apache-2.0

package top

import (
	"context"
	"fmt"
	"io"
	"time"
)

// Lines writes what there is, and then a line for each thing that happens and for each
// report, until ctx is done.
func Lines(ctx context.Context, w io.Writer, o Options) error {
	m := NewModel(ctx, o)
	answers, err := Ask(ctx, o.Reader, o.Source.Now())
	if err != nil {
		return err
	}
	m.answers, m.screen.Bound = answers, answers.Bound
	if _, err := fmt.Fprintln(w, plainText(m.screen.boundLine())); err != nil {
		return err
	}
	for {
		if msg := m.read().(readMsg); msg.err == nil {
			m.show(msg)
		}
		for again := true; again; {
			for _, e := range m.screen.Happened {
				if _, err := fmt.Fprintf(w, "%s %-8s %s\n", e.At.Format(time.TimeOnly), e.Kind, e.Text); err != nil {
					return err
				}
			}
			m.screen.Happened = nil
			select {
			case <-ctx.Done():
				return nil
			case text, open := <-m.Reports:
				if !open {
					m.Reports = nil
					continue
				}
				m.happened([]Entry{{o.Source.Now(), Trouble, text}})
			case <-o.Source.Changed():
				again = false
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(settle):
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
