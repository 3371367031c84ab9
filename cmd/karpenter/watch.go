// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// lookAgain is how often a command with --watch looks, plus as long as it took.
const lookAgain = 5 * time.Second

// clearScreen empties a terminal and goes to its first line.
const clearScreen = "\x1b[H\x1b[2J\x1b[3J"

// watching is the flag --watch of a command.
type watching struct{ watch bool }

func (w *watching) define(flags *pflag.FlagSet) {
	flags.BoolVarP(&w.watch, "watch", "w", false, "look again every few seconds and print what is new, until Ctrl-C")
}

// run runs the command once or, with --watch, until ctx is done. A terminal shows the
// latest output; elsewhere an output is added when it differs from the one before.
// Failures are shown and do not end the watch, but those of the first look do.
func (w *watching) run(ctx context.Context, s surroundings, once func(context.Context, surroundings) error) error {
	if !w.watch {
		return once(ctx, s)
	}
	before := ""
	for first := true; ; first = false {
		var out strings.Builder
		inner := s
		columns, lines := s.size()
		if s.shown() {
			inner.screen = &screen{columns, lines}
		}
		inner.stdout, inner.stderr = &out, &strings.Builder{}
		began := time.Now()
		err := once(ctx, inner)
		code := codeError{}
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !errors.As(err, &code):
			if first {
				return err
			}
			fmt.Fprintf(&out, "karpenter: %v\n", err)
		}
		if text := out.String(); text != before {
			before = text
			if s.shown() {
				text = clearScreen + text
			} else {
				text = time.Now().Format(time.TimeOnly) + "\n" + text + "\n"
			}
			if _, err := fmt.Fprint(s.stdout, text); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(lookAgain + time.Since(began)):
		}
	}
}
