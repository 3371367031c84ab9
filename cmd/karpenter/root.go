// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"karpenter/cmd/karpenter/config"
	"karpenter/kube/manager"
)

// Groups of commands in the help text.
const (
	lookGroup    = "look"
	prepareGroup = "prepare"
	runGroup     = "run"
)

// pluginName is what the program is called as a plugin of kubectl.
const pluginName = "kubectl-karpenter"

// execute runs the command that the arguments name.
func execute(ctx context.Context, s surroundings) error {
	if startsController(s) {
		s.args = append([]string{controllerName}, s.args...)
	}
	started := false
	c := rootCommand(s)
	s.args = commandFirst(c, s.args)
	c.PersistentPreRun = func(*cobra.Command, []string) { started = true }
	c.SetArgs(s.args)
	c.SetIn(s.stdin)
	c.SetOut(s.stdout)
	c.SetErr(s.stderr)
	err := c.ExecuteContext(ctx)
	if err != nil && !started {
		return usageError{err}
	}
	return err
}

// commandFirst returns the arguments with the flags before the first word behind it, so
// that the command which the word names knows them. A flag has its value behind it, unless
// it stands alone in some command.
func commandFirst(c *cobra.Command, args []string) []string {
	alone := map[string]bool{"-h": true, "--help": true, "-v": true, "--version": true}
	var visit func(*cobra.Command)
	visit = func(c *cobra.Command) {
		for _, set := range []*pflag.FlagSet{c.Flags(), c.PersistentFlags()} {
			set.VisitAll(func(f *pflag.Flag) {
				if f.NoOptDefVal != "" {
					alone["--"+f.Name], alone["-"+f.Shorthand] = true, true
				}
			})
		}
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(c)
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case a == "--":
			return args
		case !strings.HasPrefix(a, "-") || a == "-":
			return slices.Concat(args[i:i+1], args[:i], args[i+1:])
		case !alone[a] && !strings.Contains(a, "=") && (len(a) == 2 || a[1] == '-'):
			i++
		}
	}
	return args
}

// startsController reports whether arguments without a command ask for the
// controller: in a pod, or with flags that only the controller has.
func startsController(s surroundings) bool {
	if len(s.args) == 0 {
		host, _ := s.env("KUBERNETES_SERVICE_HOST")
		return host != ""
	}
	for i := 0; i < len(s.args); i++ {
		if !strings.HasPrefix(s.args[i], "-") {
			return false
		}
		name, _, valued := strings.Cut(strings.TrimLeft(s.args[i], "-"), "=")
		if name != "kubeconfig" { // commands have it, too
			return config.HasFlag(name)
		}
		if !valued {
			i++
		}
	}
	return true
}

func rootCommand(s surroundings) *cobra.Command {
	c := &cobra.Command{
		Use:   "karpenter",
		Short: "Find and keep the cheapest set of nodes for the pods of a Kubernetes cluster",
		Long: `Karpenter finds the cheapest set of instances that satisfies the pods of a
Kubernetes cluster, launches them, and terminates them when they are no longer
needed.

The commands below read the cluster that your kubeconfig names, with your own
rights. They change nothing.`,
		Example: `  # Check the installation.
  karpenter status

  # Watch nodes, pods and dollars.
  karpenter top

  # Find out why a pod is pending.
  karpenter explain pod web-1 -n shop

  # See what Karpenter would launch and remove now.
  karpenter plan

  # See what any cluster would cost with Karpenter.
  karpenter savings`,
		Args:                       knownCommand,
		RunE:                       func(c *cobra.Command, _ []string) error { return c.Help() },
		Version:                    versionText(),
		SilenceErrors:              true,
		SilenceUsage:               true,
		SuggestionsMinimumDistance: 2,
	}
	if s.program == pluginName {
		c.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl karpenter"}
	}
	c.SetVersionTemplate("{{.Version}}\n")
	c.SetFlagErrorFunc(flagError)
	c.SetUsageTemplate(strings.ReplaceAll(c.UsageTemplate(), ".FlagUsages ", ".FlagUsagesWrapped 80 "))
	c.AddGroup(&cobra.Group{ID: lookGroup, Title: "Look at a cluster:"},
		&cobra.Group{ID: prepareGroup, Title: "Prepare a cluster:"}, &cobra.Group{ID: runGroup, Title: "Run Karpenter:"})
	c.SetHelpCommandGroupID(runGroup)
	c.SetCompletionCommandGroupID(runGroup)
	add := func(group string, commands ...*cobra.Command) {
		for _, sub := range commands {
			sub.GroupID = group
			c.AddCommand(sub)
		}
	}
	add(lookGroup, statusCommand(s), topCommand(s), uiCommand(s), explainCommand(s), planCommand(s), savingsCommand(s), recordCommand(s), replayCommand(s), snapshotCommand(s))
	add(prepareGroup, migrateCommand(s), instanceTypesCommand(s))
	add(runGroup, controllerCommand(s), versionCommand(s))
	return c
}

// knownCommand refuses words that name no command.
func knownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("unknown command %q%s", args[0], meant(c.SuggestionsFor(args[0]))+"\nRun '"+c.CommandPath()+" --help' for the commands there are.")
}

// noArguments refuses words behind a command that has none.
func noArguments(c *cobra.Command, args []string) error { return atMost(0)(c, args) }

// atMost refuses more words behind a command than that.
func atMost(most int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) <= most {
			return nil
		}
		hint := ""
		if _, err := os.Stat(args[most]); err == nil && c.Flags().Lookup("filename") != nil {
			hint = meant([]string{"-f " + args[most]})
		}
		return fmt.Errorf("unexpected argument %q%s\nRun '%s --help' for usage.", args[most], hint, c.CommandPath())
	}
}

func meant(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", strings.Join(names, " or "))
}

// flagError adds to an error about an unknown flag the flag that is most like it.
func flagError(c *cobra.Command, err error) error {
	if words := c.Flags().Args(); !c.HasParent() && len(words) > 0 {
		return knownCommand(c, words) // its flags are unknown because the command is
	}
	_, given, found := strings.Cut(err.Error(), "unknown flag: --")
	if !found {
		return fmt.Errorf("%w\nRun '%s --help' for usage.", err, c.CommandPath())
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, "--"+f.Name)
		}
	})
	return fmt.Errorf("%w%s\nRun '%s --help' for usage.", err, meant(like("--"+given, names)), c.CommandPath())
}

// like returns the names that are most like the one given, few of them: those that begin with
// it, else those with the fewest other letters.
func like(given string, names []string) []string {
	const most = 3 // names, and letters
	var out []string
	best := most
	for _, name := range names {
		d := distance(given, name)
		if strings.HasPrefix(name, given) {
			d = 0
		}
		switch {
		case d < best:
			best, out = d, []string{name}
		case d == best:
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out[:min(len(out), most)]
}

// distance returns how many letters have to be added, removed or replaced to turn
// a into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			next := diagonal
			if a[i] != b[j] {
				next++
			}
			diagonal = row[j+1]
			row[j+1] = min(next, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

func versionCommand(s surroundings) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program",
		Example: "  karpenter version",
		Args:    noArguments,
		RunE: func(*cobra.Command, []string) error {
			if _, err := fmt.Fprintln(s.stdout, versionText()); err != nil {
				return err
			}
			next(s, "karpenter status")
			return nil
		},
	}
}

func versionText() string {
	b := manager.ReadBuild()
	commit := b.Commit
	if commit == "" {
		commit = "unknown commit"
	}
	return fmt.Sprintf("karpenter %s (compatible with upstream %s) %s %s %s", b.Version, manager.Upstream, commit, b.GoVersion, b.GoArch)
}
