// Command karpenter runs the controllers that make and remove the nodes of a
// Kubernetes cluster, and has a few commands for people beside.
//
// This is the only place that reads the environment. Package wiring says which
// reconcilers run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"karpenter/cmd/karpenter/config"
	"karpenter/kube/manager"
)

// Exit codes beside 0.
const (
	exitFailure = 1
	exitUsage   = 2 // arguments or environment cannot be used
	exitChanges = 3 // there is nothing wrong, and something would change; only when asked for
	exitByHand  = 4 // migrate --check: people have to do the rest
)

// surroundings are what a command gets from the process it runs in.
type surroundings struct {
	args           []string // without the names of program and command
	env            func(string) (string, bool)
	stdin          io.Reader
	stdout, stderr io.Writer
}

// command is one thing the program can do.
type command struct {
	name, summary string
	run           func(context.Context, surroundings) error
}

func commands() []command {
	return []command{
		{"explain pod NAME", "say where a pod is planned, or why it stays pending", explainOne},
		{"explain node NAME", "say what becomes of a node, or why it stays", explainOne},
		{"explain cluster", "say what the nodes cost, and what their pods would cost afresh and at least", explainOne},
		{"instance-types", "print an instance types file for the KWOK provider", instanceTypes},
		{"migrate FILE...", "rewrite manifests of v1alpha5 and v1beta1 as v1, and say what is left to people", migrateManifests},
		{"plan", "say what would happen now, or with other NodePools: nodes, dollars, evictions; nothing is changed", planAll},
		{"snapshot", "print the situation a running controller decides on, for plan, explain --file and bug reports", snapshot},
		{"version", "print which program this is", version},
	}
}

// usageError is a fault of whoever called the program.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// changesError says by the exit code alone that something would change.
type changesError struct{ error }

func (e changesError) Unwrap() error { return e.error }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	// A second signal does not wait for anything.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, surroundings{os.Args[1:], os.LookupEnv, os.Stdin, os.Stdout, os.Stderr}))
}

// run runs the command that the first argument names; without one, the
// controllers. It returns the exit code.
func run(ctx context.Context, s surroundings) int {
	do := serve
	if len(s.args) > 0 && !strings.HasPrefix(s.args[0], "-") {
		name := s.args[0]
		s.args = s.args[1:]
		do = unknown(name)
		for _, c := range append(commands(), command{name: "help", run: help}) {
			if verb, _, _ := strings.Cut(c.name, " "); verb == name {
				do = c.run
			}
		}
	}
	err := do(ctx, s)
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usageError{}):
		fmt.Fprintf(s.stderr, "karpenter: %v\nRun 'karpenter help' for what there is.\n", err)
		return exitUsage
	case errors.As(err, &changesError{}):
		return exitChanges
	case errors.Is(err, errByHand):
		fmt.Fprintf(s.stderr, "karpenter: %v\n", err)
		return exitByHand
	}
	fmt.Fprintf(s.stderr, "karpenter: %v\n", err)
	return exitFailure
}

func unknown(name string) func(context.Context, surroundings) error {
	return func(context.Context, surroundings) error {
		return usageError{fmt.Errorf("unknown command %q", name)}
	}
}

func help(_ context.Context, s surroundings) error {
	var text strings.Builder
	text.WriteString("karpenter makes and removes the nodes of a Kubernetes cluster.\n\n" +
		"Usage:\n  karpenter [flags]           run the controllers\n")
	for _, c := range commands() {
		fmt.Fprintf(&text, "  karpenter %-17s %s\n", c.name, c.summary)
	}
	text.WriteString("\nFlags, their environment variables and defaults. A flag wins over its variable.\n\n")
	if err := config.Usage(&text); err != nil {
		return err
	}
	_, err := io.WriteString(s.stdout, text.String())
	return err
}

func version(_ context.Context, s surroundings) error {
	b := manager.ReadBuild()
	commit := b.Commit
	if commit == "" {
		commit = "unknown commit"
	}
	_, err := fmt.Fprintf(s.stdout, "karpenter %s %s %s %s\n", b.Version, commit, b.GoVersion, b.GoArch)
	return err
}

// parsed reads the flags of a command. It returns flag.ErrHelp after having
// described them when they ask for help.
func parsed(flags *flag.FlagSet, s surroundings) error {
	if err := parsedSome(flags, s); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return usageError{fmt.Errorf("%s: argument %q: want flags only", flags.Name(), flags.Arg(0))}
	}
	return nil
}

// parsedSome is parsed for a command that has arguments after its flags.
func parsedSome(flags *flag.FlagSet, s surroundings) error {
	flags.SetOutput(io.Discard)
	err := flags.Parse(s.args)
	if errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(s.stdout)
		fmt.Fprintf(s.stdout, "Usage of karpenter %s:\n", flags.Name())
		flags.PrintDefaults()
		return err
	}
	if err != nil {
		return usageError{err}
	}
	return nil
}
