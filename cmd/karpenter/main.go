// SPDX-License-Identifier: Apache-2.0

// Command karpenter runs the controllers that launch and terminate the nodes of
// a Kubernetes cluster, and has commands for the people who run them.
//
// This is the only place that reads the environment. Package wiring says which
// reconcilers run.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

// Exit codes beside 0.
const (
	exitFailure = 1
	exitUsage   = 2 // arguments or environment cannot be used
	exitChanges = 3 // nothing is wrong, and something would change; only when asked for
	exitByHand  = 4 // migrate --check: people have to do the rest
)

// surroundings are what a command gets from the process it runs in.
type surroundings struct {
	args           []string // without the name of the program
	env            func(string) (string, bool)
	stdin          io.Reader
	stdout, stderr io.Writer
	program        string // base name of the program; "" = karpenter
	// screen is the terminal that stdout is taken to be; nil = what it is.
	screen *screen
}

// screen is a terminal.
type screen struct{ width, height int }

// usageError is an error in the arguments or the environment.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// codeError ends the program with an exit code and without a message.
type codeError struct{ code int }

func (e codeError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	// A second signal does not wait for anything.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, surroundings{os.Args[1:], os.LookupEnv, os.Stdin, os.Stdout, os.Stderr, filepath.Base(os.Args[0]), nil}))
}

// run runs the command that the arguments name and returns the exit code.
func run(ctx context.Context, s surroundings) int {
	err := execute(ctx, s)
	code := codeError{}
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return code.code
	case errors.As(err, &usageError{}):
		fmt.Fprintf(s.stderr, "karpenter: %v\n", err)
		return exitUsage
	case errors.Is(err, errByHand):
		fmt.Fprintf(s.stderr, "karpenter: %v\n", err)
		return exitByHand
	}
	fmt.Fprintf(s.stderr, "karpenter: %v\n", err)
	return exitFailure
}
