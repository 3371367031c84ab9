// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"

	"karpenter/cmd/karpenter/explain"
	"karpenter/cmd/karpenter/redact"
	"karpenter/model"
	"karpenter/scenario"
	"karpenter/solve"
)

// explaining is the flags of explain.
type explaining struct {
	connection
	output
	watching
	file string
	all  bool // namespaces
}

func explainCommand(s surroundings) *cobra.Command {
	var e explaining
	c := &cobra.Command{
		Use:   "explain [pod/NAME | node/NAME]",
		Short: "Explain why a pod is pending, or why a node stays",
		Long: `Explain one pod, one node, or what all nodes cost.

The answer is made from what the cluster shows now: explain plans as the
controller does, with your rights, and changes nothing.`,
		Example: `  karpenter explain pod web-1 -n shop
  karpenter explain pod/web-1 -n shop
  karpenter explain pods -A
  karpenter explain node ip-10-0-0-1.ec2.internal
  karpenter explain nodes
  karpenter explain cluster`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			if sub, rest := split(c, args); sub != nil {
				return sub.Args(sub, rest)
			}
			return fmt.Errorf("explain: cannot explain %q: want pod NAME, node NAME or cluster, as in: karpenter explain pod web-1 -n shop%s", args[0], meant(like(args[0], kindsOf(c))))
		},
		ValidArgsFunction: func(c *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
			kind, _, _ := strings.Cut(start, "/")
			sub, rest := split(c, []string{start})
			if sub == nil || sub.ValidArgsFunction == nil || len(args) > 0 || !strings.Contains(start, "/") {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			names, directive := sub.ValidArgsFunction(sub, nil, rest[0])
			for i := range names {
				names[i] = kind + "/" + names[i]
			}
			return names, directive
		},
		RunE: func(c *cobra.Command, args []string) error {
			if sub, rest := split(c, args); sub != nil {
				return sub.RunE(c, rest)
			}
			return c.Help()
		},
	}
	// The flag of plan and ui for the same file.
	c.SetGlobalNormalizationFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "snapshot" {
			name = "file"
		}
		return pflag.NormalizedName(name)
	})
	e.connection.define(c, c.PersistentFlags(), s)
	e.output.define(c, c.PersistentFlags())
	e.watching.define(c.PersistentFlags())
	c.PersistentFlags().StringVar(&e.file, "file", "", "explain the situation in a file that 'karpenter snapshot' printed; - is standard input")
	pod := &cobra.Command{
		Use: "pod [NAME]", Aliases: []string{"pods", "po"},
		Short: "Explain where a pod is planned, or why it stays pending",
		Long: `Explain where a pod is planned, or why it stays pending. Without a name, list
every pod of the namespace that waits for a node.`,
		Example:           "  karpenter explain pod web-1 -n shop\n  karpenter explain pods -A",
		Args:              atMost(1),
		ValidArgsFunction: e.named(s, &corev1.Pod{}, waits),
		RunE: func(c *cobra.Command, args []string) error {
			return e.watching.run(c.Context(), s, func(ctx context.Context, s surroundings) error { return e.pods(ctx, s, args) })
		},
	}
	c.PersistentFlags().BoolVarP(&e.all, "all-namespaces", "A", false, "list the waiting pods of all namespaces")
	c.AddCommand(pod, &cobra.Command{
		Use: "node [NAME]", Aliases: []string{"nodes", "no", "nodeclaim", "nodeclaims"},
		Short: "Explain what happens to a node, or why it stays",
		Long: `Explain what happens to a node, or why it stays. Without a name, list every
node.`,
		Example:           "  karpenter explain node ip-10-0-0-1.ec2.internal\n  karpenter explain nodes",
		Args:              atMost(1),
		ValidArgsFunction: e.named(s, &corev1.Node{}, nil),
		RunE: func(c *cobra.Command, args []string) error {
			return e.watching.run(c.Context(), s, func(ctx context.Context, s surroundings) error { return e.nodes(ctx, s, args) })
		},
	}, &cobra.Command{
		Use:     "cluster",
		Short:   "Explain what the nodes cost, and the least they can cost",
		Example: "  karpenter explain cluster -o json",
		Args:    noArguments,
		RunE:    func(c *cobra.Command, _ []string) error { return e.watching.run(c.Context(), s, e.cluster) },
	})
	return c
}

// split returns the command for the kind of object in the first argument, such as
// pod/web-1 or nodeclaim.karpenter.sh/default-x7k2p as kubectl prints it, and the name
// after the kind. It returns nil if the argument has no kind.
func split(c *cobra.Command, args []string) (*cobra.Command, []string) {
	if len(args) == 0 {
		return nil, nil
	}
	kind, name, slash := strings.Cut(args[0], "/")
	kind, group, _ := strings.Cut(strings.ToLower(kind), ".")
	for _, sub := range c.Commands() {
		ours := strings.HasPrefix(kind, "nodeclaim") && strings.HasSuffix("."+group, ".karpenter.sh")
		switch {
		case sub.Name() != kind && !sub.HasAlias(kind) || group != "" && !ours || slash && name == "":
		case slash:
			return sub, append([]string{name}, args[1:]...)
		default:
			return sub, args[1:]
		}
	}
	return nil, nil
}

// kindsOf are the words that can follow the command.
func kindsOf(c *cobra.Command) []string {
	var out []string
	for _, sub := range c.Commands() {
		out = append(out, append(sub.Aliases, sub.Name())...)
	}
	return out
}

// read returns the situation and, of a cluster, its pods.
func (e *explaining) read(ctx context.Context, s surroundings) (scenario.Situation, []*corev1.Pod, error) {
	if err := e.check(); err != nil {
		return scenario.Situation{}, nil, err
	}
	situation, pods, err := e.situationFrom(ctx, e.file, "--file", s)
	if err == nil {
		planning(s)
	}
	return situation, pods, err
}

// where is the source of the situation, for messages.
func (e *explaining) where() string {
	if e.file == "" {
		return ""
	}
	return e.file + ": "
}

func (e *explaining) pods(ctx context.Context, s surroundings, args []string) error {
	namespace := "default"
	if e.file == "" || e.overrides.Context.Namespace != "" {
		var err error
		if namespace, err = e.namespace(); err != nil {
			return err
		}
	}
	situation, pods, err := e.read(ctx, s)
	if err != nil {
		return err
	}
	plan := solve.Decide(situation.Snapshot, situation.Policy)
	doneReading(s)
	if len(args) == 0 {
		if e.all {
			namespace = ""
		}
		return e.list(s, situation.Snapshot, plan, namespace)
	}
	key := args[0]
	if !strings.Contains(key, "/") {
		key = namespace + "/" + key
	}
	a, found := explain.Of(situation.Snapshot, plan, key)
	at := slices.IndexFunc(pods, func(p *corev1.Pod) bool { return p.Namespace+"/"+p.Name == key })
	switch {
	case found:
		a.Weigh(situation.Snapshot, plan, func(s *model.Snapshot) *model.Plan {
			return new(solve.Planner).Place(s, situation.Policy)
		})
	case at >= 0:
		a = explain.OfOther(pods[at])
	case e.file != "":
		return fmt.Errorf("%s: no pod %s waits for a node there", e.file, key)
	default:
		var names []string
		for _, p := range pods {
			names = append(names, p.Namespace+"/"+p.Name)
		}
		return fmt.Errorf("found no pod %s%s; name its namespace with -n, or list the pods that wait: karpenter explain pods -A", key, meant(like(key, names)))
	}
	if err := e.write(s, a, pages{text: a.Text, markdown: fenced(a.Text)}); err != nil {
		return err
	}
	e.next(s, "karpenter plan")
	return nil
}

// list writes a line for each pod that waits in the namespace, or in all.
func (e *explaining) list(s surroundings, snapshot *model.Snapshot, plan *model.Plan, namespace string) error {
	answers := []explain.Answer{}
	for _, p := range snapshot.Pending {
		for _, pod := range p.Pods {
			if a, ok := explain.Of(snapshot, plan, pod.Key()); ok && pod.Buffer == "" && (namespace == "" || pod.Namespace == namespace) {
				answers = append(answers, a)
			}
		}
	}
	slices.SortFunc(answers, func(a, b explain.Answer) int { return strings.Compare(a.Pod, b.Pod) })
	err := e.write(s, answers, pages{
		text:     func(w io.Writer) error { return explain.ListPods(answers).Text(w, e.columns(s)) },
		markdown: explain.ListPods(answers).Markdown,
	})
	if err == nil && len(answers) == 0 {
		e.next(s, "karpenter status", "karpenter plan")
	}
	if err == nil && len(answers) > 0 {
		namespace, name, _ := strings.Cut(answers[0].Pod, "/")
		e.next(s, "karpenter explain pod "+name+" -n "+namespace, "karpenter plan")
	}
	return err
}

// nodes explains the node that is named, or lists all.
func (e *explaining) nodes(ctx context.Context, s surroundings, args []string) error {
	situation, _, err := e.read(ctx, s)
	if err != nil {
		return err
	}
	plan := solve.Decide(situation.Snapshot, situation.Policy)
	doneReading(s)
	answers, names := []explain.NodeAnswer{}, []string{}
	for _, n := range situation.Snapshot.Nodes {
		if a, ok := explain.OfNode(situation.Snapshot, plan, n.Name); ok {
			answers, names = append(answers, a), append(names, n.Name)
		}
	}
	if len(args) == 0 {
		list := explain.ListNodes(answers)
		err := e.write(s, answers, pages{text: func(w io.Writer) error { return list.Text(w, e.columns(s)) }, markdown: list.Markdown})
		if err == nil && len(names) > 0 {
			e.next(s, "karpenter explain node "+names[0], "karpenter plan")
		} else if err == nil {
			e.next(s, "karpenter status", "karpenter plan")
		}
		return err
	}
	a, found := explain.OfNode(situation.Snapshot, plan, args[0])
	if !found {
		return fmt.Errorf("%sfound no node %s%s; list the nodes: karpenter explain nodes", e.where(), args[0], meant(like(args[0], names)))
	}
	if err := e.write(s, a, pages{text: a.Text, markdown: fenced(a.Text)}); err != nil {
		return err
	}
	e.next(s, "karpenter plan", "karpenter explain cluster")
	return nil
}

func (e *explaining) cluster(ctx context.Context, s surroundings) error {
	situation, _, err := e.read(ctx, s)
	if err != nil {
		return err
	}
	a := explain.OfCluster(situation.Snapshot, func(fresh *model.Snapshot) *model.Plan {
		return new(solve.Planner).Place(fresh, situation.Policy)
	})
	doneReading(s)
	if err := e.write(s, a, pages{text: a.Text, markdown: fenced(a.Text)}); err != nil {
		return err
	}
	e.next(s, "karpenter plan --to-rest")
	return nil
}

// snapshotCommand prints the situation.
func snapshotCommand(s surroundings) *cobra.Command {
	var from connection
	var redacted bool
	c := &cobra.Command{
		Use:   "snapshot",
		Short: "Print what Karpenter plans for, as a file to replay",
		Long: `Print the situation that Karpenter plans for: nodes, pods, NodePools, offerings.
The file is for 'plan --snapshot', 'explain --file' and bug reports.`,
		Example: `  karpenter snapshot > situation.txt
  karpenter snapshot --redact > situation.txt
  karpenter plan --snapshot situation.txt`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			situation, _, err := from.situationFrom(c.Context(), "", "", s)
			if err != nil {
				return err
			}
			if redacted {
				situation = redact.Situation(situation)
			}
			if err := situation.Print(s.stdout); err != nil {
				return err
			}
			next(s, "karpenter plan --snapshot FILE", "karpenter explain pods -A --snapshot FILE")
			return nil
		},
	}
	from.define(c, c.Flags(), s)
	whole(c)
	c.Flags().BoolVar(&redacted, "redact", false, "replace names with pseudonyms, to share the file")
	return c
}
