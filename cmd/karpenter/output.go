// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
	"sigs.k8s.io/yaml"
)

// Formats of output.
const (
	tableFormat    = "table"
	wideFormat     = "wide"
	jsonFormat     = "json"
	yamlFormat     = "yaml"
	markdownFormat = "markdown"
)

// output is the flag -o of a command.
type output struct {
	format  string
	formats []string
}

// define adds the flag to those of the command.
func (o *output) define(c *cobra.Command, flags *pflag.FlagSet) {
	o.formats = []string{tableFormat, wideFormat, jsonFormat, yamlFormat, markdownFormat}
	flags.StringVarP(&o.format, "output", "o", tableFormat, "format: "+strings.Join(o.formats, ", "))
	complete(c, "output", cobra.FixedCompletions(o.formats, cobra.ShellCompDirectiveNoFileComp))
}

// check rejects a format that the command does not have.
func (o *output) check() error {
	switch o.format {
	case "text": // what the table was called before
		o.format = tableFormat
	case "md":
		o.format = markdownFormat
	}
	if !slices.Contains(o.formats, o.format) {
		like := slices.DeleteFunc(slices.Clone(o.formats), func(f string) bool { return distance(o.format, f) > 2 })
		return usageError{fmt.Errorf("--output: %q: want one of %s%s", o.format, strings.Join(o.formats, ", "), meant(like))}
	}
	return nil
}

// write writes v for programs, or the page for people.
func (o *output) write(s surroundings, v any, p pages) error {
	switch o.format {
	case jsonFormat:
		encoder := json.NewEncoder(s.stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(v)
	case yamlFormat:
		out, err := yaml.Marshal(v)
		if err != nil {
			return err
		}
		_, err = s.stdout.Write(out)
		return err
	case markdownFormat:
		return p.markdown(s.stdout)
	}
	if p.styled {
		return p.text(s.stdout)
	}
	var b strings.Builder
	if err := p.text(&b); err != nil {
		return err
	}
	text := b.String()
	if width := s.width(); width > 0 && o.format == tableFormat {
		text = folded(text, width)
	}
	if s.colour() {
		text = painted(text)
	}
	_, err := io.WriteString(s.stdout, text)
	return err
}

// next names the next useful commands, for people who look at a terminal or read
// a log. It goes to stderr, so that the output stays what it is.
func (o *output) next(s surroundings, commands ...string) {
	if o.format == tableFormat || o.format == wideFormat {
		next(s, commands...)
	}
}

// next names the next useful commands on stderr. They read what this one has read.
func next(s surroundings, commands ...string) {
	for i, c := range commands {
		if commands[i] = reading(c, s.args); s.program == pluginName {
			commands[i] = "kubectl " + commands[i]
		}
	}
	fmt.Fprintf(s.stderr, "\nNext: %s\n", strings.Join(commands, "\n      "))
}

// reading returns the command with those of the arguments that select the source
// and the user. It does not change a command that has such arguments, or cannot use
// them.
func reading(command string, args []string) string {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	cluster := []string{"kubeconfig", "context", "cluster", "user", "as", "karpenter-namespace", "recording", "at"}
	for _, name := range append(cluster, "file", "snapshot") {
		flags.String(name, "", "")
	}
	groups := flags.StringArray("as-group", nil, "")
	if flags.Parse(args) != nil || strings.Contains(command, "--snapshot") || strings.Contains(command, "FILE") {
		return command
	}
	var more []string
	add := func(name, value string) {
		if strings.ContainsAny(value, " \t'\"") {
			value = strconv.Quote(value)
		}
		more = append(more, "--"+name, value)
	}
	for _, name := range cluster {
		if f := flags.Lookup(name); f.Changed {
			add(name, f.Value.String())
		}
	}
	for _, group := range *groups {
		add("as-group", group)
	}
	_, words, _ := strings.Cut(command, " ")
	name, _, _ := strings.Cut(words, " ")
	for _, flag := range []string{"file", "snapshot"} {
		if f := flags.Lookup(flag); f.Changed && f.Value.String() != "-" && slices.Contains([]string{"explain", "plan", "ui"}, name) {
			add("snapshot", f.Value.String())
		}
	}
	if len(more) == 0 || name == "migrate" || name == "controller" || name == "replay" {
		return command
	}
	command, output, redirected := strings.Cut(command, " > ")
	command += " " + strings.Join(more, " ")
	if redirected {
		command += " > " + output
	}
	return command
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// size returns the columns and lines of the terminal that stdout is; zero for
// anything else.
func (s surroundings) size() (columns, lines int) {
	if s.screen != nil {
		return s.screen.width, s.screen.height
	}
	f, ok := s.stdout.(*os.File)
	if !ok {
		return 0, 0
	}
	columns, lines, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0, 0
	}
	return columns, lines
}

// width returns how many columns stdout has, 0 if it is no terminal.
func (s surroundings) width() int {
	columns, _ := s.size()
	return columns
}

// shown reports whether stdout is a terminal that can be drawn on.
func (s surroundings) shown() bool {
	kind, _ := s.env("TERM")
	return s.screen != nil || isTerminal(s.stdout) && kind != "dumb"
}

// colour reports whether stdout shows colours and the user wants them.
func (s surroundings) colour() bool {
	no, set := s.env("NO_COLOR")
	return s.shown() && (!set || no == "")
}

// unicode reports whether the locale has letters beyond ASCII. Of the variables the
// first that is set counts; without any, terminals of today do.
func (s surroundings) unicode() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale, _ := s.env(name); locale != "" {
			locale = strings.ToLower(locale)
			return strings.Contains(locale, "utf-8") || strings.Contains(locale, "utf8")
		}
	}
	return true
}
