// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// feature is something that commands have, or lack for a reason.
type feature struct {
	// args of a run that succeeds or finds faults; {tmp} is a folder for files.
	args string
	// data commands print what programs and people read: all formats, colours, widths.
	data bool
	// watch is "" if the command has --watch, else why not.
	watch string
	// cluster commands find it as kubectl does.
	cluster bool
	// scoped commands look in a namespace; the others accept -n and -A and look everywhere.
	scoped bool
	// next is a part of the last hint; "" = there is none, for the reason in silent.
	next, silent string
	// typo is a flag with a wrong letter, and right the one that was meant.
	typo, right string
	// argument is what the completion of the first argument offers; "" = files or nothing.
	argument string
}

// features says of each command that can be run what it has.
func features() map[string]feature {
	const recorded = " --recording " + shop
	const once = "what it prints changes only with its input"
	return map[string]feature{
		"status":                {args: "status" + recorded, data: true, cluster: true, next: "karpenter plan --recording docs/recorded/shop.recording\n", typo: "--srtict", right: "--strict"},
		"top":                   {args: "top --once" + recorded, data: true, watch: "it is live", cluster: true, next: "karpenter explain", typo: "--onec", right: "--once"},
		"ui":                    {args: "ui --help", watch: "it is live", cluster: true, silent: "it serves until it is stopped", typo: "--adress", right: "--address"},
		"explain":               {args: "explain", watch: "with a pod, node or cluster it has", cluster: true, scoped: true, silent: "it prints help", typo: "--fiel", right: "--file"},
		"explain pod":           {args: "explain pods -A" + recorded, data: true, cluster: true, scoped: true, next: "karpenter explain pod", typo: "--fiel", right: "--file", argument: "report-"},
		"explain node":          {args: "explain node {node}" + recorded, data: true, cluster: true, scoped: true, next: "karpenter plan", typo: "--outptu", right: "--output", argument: "{node}"},
		"explain cluster":       {args: "explain cluster" + recorded, data: true, cluster: true, scoped: true, next: "karpenter plan", typo: "--wacth", right: "--watch"},
		"plan":                  {args: "plan" + recorded, data: true, cluster: true, next: "karpenter explain", typo: "--max-csot", right: "--max-cost"},
		"record":                {args: "record --recording docs/recorded/simulated.recording", data: true, watch: "the leader writes it twice a minute at most", cluster: true, next: "karpenter ui", typo: "--frezee", right: "--freeze"},
		"replay":                {args: "replay docs/recorded/simulated.recording --with docs/recorded/on-demand.yaml", data: true, watch: once, next: "karpenter plan -f", typo: "--wiht", right: "--with"},
		"savings":               {args: "savings -f docs/savings/nodegroups.json", data: true, watch: "it plans a whole cluster from scratch; answers change over days", cluster: true, next: "karpenter savings -o markdown -f docs/savings/nodegroups.json\n", typo: "--regoin", right: "--region"},
		"snapshot":              {args: "snapshot" + recorded, watch: "it is one moment by its nature", cluster: true, next: "karpenter plan", typo: "--contxet", right: "--context"},
		"migrate":               {args: "migrate --check docs/recorded/shop.yaml", watch: once, next: "karpenter plan -f", typo: "--chekc", right: "--check"},
		"instance-types":        {args: "instance-types", watch: once, next: "karpenter controller", typo: "--regoin", right: "--region"},
		"version":               {args: "version", watch: once, next: "karpenter status"},
		"controller":            {args: "controller --help", watch: "it runs", silent: "it runs until it is stopped; its flags are the settings"},
		"help":                  {args: "help plan", watch: once, silent: "it prints help"},
		"completion":            {args: "completion", watch: once, silent: "it prints help"},
		"completion bash":       {args: "completion bash", watch: once, silent: "it is a script for a shell"},
		"completion zsh":        {args: "completion zsh", watch: once, silent: "it is a script for a shell"},
		"completion fish":       {args: "completion fish", watch: once, silent: "it is a script for a shell"},
		"completion powershell": {args: "completion powershell", watch: once, silent: "it is a script for a shell"},
	}
}

// result is how a command ended.
type result struct {
	code           int
	stdout, stderr string
}

func runAs(t *testing.T, on *screen, env map[string]string, args ...string) result {
	t.Helper()
	var stdout, stderr strings.Builder
	lookup := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	code := run(t.Context(), surroundings{args, lookup, strings.NewReader(""), &stdout, &stderr, "karpenter", on})
	return result{code, stdout.String(), stderr.String()}
}

// commandsOf are all commands below c that users see, by their path.
func commandsOf(c *cobra.Command, prefix string) map[string]*cobra.Command {
	out := map[string]*cobra.Command{}
	for _, sub := range c.Commands() {
		if sub.Hidden {
			continue
		}
		path := strings.TrimSpace(prefix + " " + sub.Name())
		out[path] = sub
		for p, s := range commandsOf(sub, path) {
			out[p] = s
		}
	}
	return out
}

// aNode is the name of a node of the recording.
func aNode(t *testing.T) string {
	t.Helper()
	var page struct{ Nodes []struct{ Name string } }
	if err := json.Unmarshal([]byte(runAs(t, nil, nil, "top", "--once", "-o", "json", "--recording", shop).stdout), &page); err != nil || len(page.Nodes) == 0 {
		t.Fatalf("no node in the recording: %v", err)
	}
	return page.Nodes[0].Name
}

// TestCommandFeatures holds every command of the program against the table of what
// commands have. A new command must be entered there.
func TestCommandFeatures(t *testing.T) {
	t.Chdir(root)
	tree := rootCommand(surroundings{})
	tree.InitDefaultHelpCmd()
	tree.InitDefaultCompletionCmd()
	commands, table, node := commandsOf(tree, ""), features(), aNode(t)
	for path := range commands {
		if _, known := table[path]; !known {
			t.Errorf("%s: not in the table of features", path)
		}
	}
	for path, f := range table {
		c := commands[path]
		if c == nil {
			t.Errorf("%s: there is no such command", path)
			continue
		}
		f.args, f.argument = strings.ReplaceAll(f.args, "{node}", node), strings.ReplaceAll(f.argument, "{node}", node)
		t.Run(path, func(t *testing.T) { has(t, path, c, f) })
	}
}

func has(t *testing.T, path string, c *cobra.Command, f feature) {
	help := runAs(t, nil, nil, append(strings.Fields(path), "--help")...)
	ours := !slices.Contains([]string{"help", "completion", "controller"}, strings.Fields(path)[0])
	if help.code != 0 || ours && path != "version" && !strings.Contains(help.stdout, "Examples:") {
		t.Errorf("--help has no examples: %s", help.stdout)
	}
	if ours && regexp.MustCompile(`(?m)^.{81}`).MatchString(help.stdout) {
		t.Error("--help is wider than 80 columns")
	}
	args := strings.Fields(f.args)
	got := runAs(t, nil, nil, args...)
	if got.code != 0 && path != "status" && path != "migrate" || got.stdout == "" {
		t.Fatalf("exit code %d: %s", got.code, got.stderr)
	}
	_, hint, found := strings.Cut(got.stderr, "\nNext: ")
	if found != (f.next != "") || !strings.Contains(hint, f.next) || f.next == "" && f.silent == "" {
		t.Errorf("the next command is %q, want %q", hint, f.next)
	}
	if has := c.Flag("watch") != nil; has && f.watch != "" && path != "explain" || !has && f.watch == "" {
		t.Errorf("has --watch: %v, and the table says %q", has, f.watch)
	}
	for _, flag := range []string{"kubeconfig", "context", "as", "namespace", "recording"} {
		if has := c.Flag(flag) != nil; has != f.cluster {
			t.Errorf("has --%s: %v", flag, has)
		}
	}
	if n := c.Flag("namespace"); n != nil && n.Hidden == f.scoped {
		t.Errorf("--namespace in the help: %v", !n.Hidden)
	}
	if f.typo != "" {
		wrong := runAs(t, nil, nil, append(strings.Fields(path), f.typo)...)
		if wrong.code != exitUsage || !strings.Contains(wrong.stderr, "did you mean "+f.right) {
			t.Errorf("%s: exit code %d, %s", f.typo, wrong.code, wrong.stderr)
		}
	}
	if f.argument != "" {
		offered := runAs(t, nil, nil, append(append([]string{"__complete"}, strings.Fields(path)...), "--recording", shop, "")...)
		if !strings.Contains(offered.stdout, f.argument) {
			t.Errorf("completion offers %q, want %s", offered.stdout, f.argument)
		}
	}
	if f.data {
		hasFormats(t, args, got)
		hasScreens(t, args, got)
		hasOrder(t, args, got)
	}
}

// hasFormats checks the flag -o.
func hasFormats(t *testing.T, args []string, plain result) {
	t.Helper()
	out := func(format string) string {
		return runAs(t, nil, nil, append(slices.Clone(args), "-o", format)...).stdout
	}
	var v any
	if err := json.Unmarshal([]byte(out("json")), &v); err != nil {
		t.Errorf("-o json: %v", err)
	}
	if text := out("yaml"); yaml.Unmarshal([]byte(text), &v) != nil || strings.HasPrefix(text, "{") || text == "" {
		t.Errorf("-o yaml: %s", text)
	}
	if text := out("markdown"); !strings.Contains(text, "|--") && !strings.Contains(text, "```\n") && !strings.Contains(text, "|---") {
		t.Errorf("-o markdown: %s", text)
	}
	for line := range strings.Lines(plain.stdout) {
		// Prose is broken on terminals only, so that scripts find it whole.
		if table := regexp.MustCompile(`^ *[A-Z0-9$/]+( {2,}\S+){3,}`).MatchString(line); table && widest(line) > plainColumns {
			t.Errorf("%d columns: %s", widest(line), line)
		}
	}
	if widest(out("wide")) < widest(plain.stdout) {
		t.Error("-o wide is narrower than the table")
	}
	if wrong := runAs(t, nil, nil, append(slices.Clone(args), "-o", "jsno")...); wrong.code != exitUsage || !strings.Contains(wrong.stderr, "did you mean json?") {
		t.Errorf("-o jsno: exit code %d: %s", wrong.code, wrong.stderr)
	}
	offered := runAs(t, nil, nil, append(append([]string{"__complete"}, args...), "-o", "")...).stdout
	if !strings.Contains(offered, "markdown") {
		t.Errorf("completion of -o offers %q", offered)
	}
}

// hasScreens checks widths and colours.
func hasScreens(t *testing.T, args []string, plain result) {
	t.Helper()
	const escape = "\x1b["
	coloured := runAs(t, &screen{80, 40}, nil, args...).stdout
	if !strings.Contains(coloured, escape) {
		t.Error("no colours on a terminal")
	}
	if n := widest(regexp.MustCompile(`\x1b\[[0-9;]*m`).ReplaceAllString(coloured, "")); n > 80 {
		t.Errorf("%d columns on a terminal of 80", n)
	}
	quiet := runAs(t, &screen{160, 40}, map[string]string{"NO_COLOR": "1"}, args...)
	if n := widest(quiet.stdout); n > 160 {
		t.Errorf("%d columns on a terminal of 160", n)
	}
	if strings.Contains(quiet.stdout+plain.stdout+plain.stderr, escape) {
		t.Error("colours where there is no terminal, or nobody wants them")
	}
}

// hasOrder gives the flags before the words that follow the name of the command.
func hasOrder(t *testing.T, args []string, plain result) {
	t.Helper()
	n := slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, "-") })
	if n == 1 {
		return // there are no such words
	}
	turned := slices.Concat(args[:1], args[n:], args[1:n])
	if got := runAs(t, nil, nil, turned...); got.stdout != plain.stdout {
		t.Errorf("karpenter %s: %s", strings.Join(turned, " "), got.stderr)
	}
}

// widest returns how many letters the longest line has.
func widest(text string) int {
	most := 0
	for line := range strings.Lines(text) {
		most = max(most, len([]rune(strings.TrimRight(line, "\n"))))
	}
	return most
}

// TestCompletionOfClusters: contexts come from the kubeconfig.
func TestCompletionOfClusters(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	text := "apiVersion: v1\nkind: Config\ncontexts:\n- {name: production, context: {cluster: p, user: u}}\n- {name: test, context: {cluster: t, user: u}}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"status", "savings"} {
		got := runAs(t, nil, nil, "__complete", command, "--kubeconfig", file, "--context", "p").stdout
		if !strings.HasPrefix(got, "production\n") || strings.Contains(got, "test\n") {
			t.Errorf("%s: %q", command, got)
		}
	}
}
