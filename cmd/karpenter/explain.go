package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"karpenter/cmd/karpenter/explain"
	"karpenter/model"
	"karpenter/scenario"
	"karpenter/solve"
)

// questions are the flags of commands that ask a running controller.
type questions struct {
	address, kubeconfig, serviceAccount string
}

func (q *questions) define(flags *flag.FlagSet) {
	flags.StringVar(&q.address, "address", explain.DefaultAddress, "where the controller serves explanations; kubectl port-forward brings it here")
	flags.StringVar(&q.kubeconfig, "kubeconfig", "", "file that says where the cluster is and who you are; without it KUBECONFIG and ~/.kube/config are tried")
	flags.StringVar(&q.serviceAccount, "service-account", "", "namespace/name of the service account to ask as; without it, the kubeconfig's token is shown")
}

// ask returns what the controller has at the path.
func (q *questions) ask(ctx context.Context, path string) ([]byte, error) {
	if err := explain.Loopback(q.address); err != nil {
		return nil, usageError{fmt.Errorf("--address: %q: %w", q.address, err)}
	}
	cluster, err := clusterOf(q.kubeconfig)
	if err != nil {
		return nil, err
	}
	token, err := explain.Token(ctx, cluster, q.serviceAccount)
	if err != nil {
		return nil, err
	}
	return explain.Ask(ctx, q.address, token, path)
}

// answer is what can be written for people and for programs.
type answer interface{ Text(io.Writer) error }

// about answers one kind of question.
type about struct {
	path     string                                                         // that the controller serves it at, followed by the name
	of       func(s scenario.Situation, name string) (a answer, found bool) // from a file
	read     func([]byte) (answer, error)                                   // from a controller
	notFound string                                                         // with one %s for the name; "" when there are no names
}

func abouts() map[string]about {
	return map[string]about{
		"pod": {
			path: explain.PodsPath, notFound: "no pod %s waits for a node there", read: readAnswer[explain.Answer],
			of: func(s scenario.Situation, name string) (answer, bool) {
				return explain.Of(s.Snapshot, solve.Decide(s.Snapshot, s.Policy), name)
			},
		},
		"node": {
			path: explain.NodesPath, notFound: "there is no node %s there", read: readAnswer[explain.NodeAnswer],
			of: func(s scenario.Situation, name string) (answer, bool) {
				return explain.OfNode(s.Snapshot, solve.Decide(s.Snapshot, s.Policy), name)
			},
		},
		"cluster": {
			path: explain.ClusterPath, read: readAnswer[explain.ClusterAnswer],
			of: func(s scenario.Situation, _ string) (answer, bool) {
				return explain.OfCluster(s.Snapshot, func(fresh *model.Snapshot) *model.Plan {
					return new(solve.Planner).Place(fresh, s.Policy)
				}), true
			},
		},
	}
}

func readAnswer[A answer](body []byte) (answer, error) {
	var a A
	if err := json.Unmarshal(body, &a); err != nil {
		return nil, fmt.Errorf("read the controller's answer: %w", err)
	}
	return a, nil
}

// explainOne says where a pod is planned, or why it stays pending; or what
// becomes of a node, or why it stays; or what the nodes cost beside what they
// had to.
func explainOne(ctx context.Context, s surroundings) error {
	flags := flag.NewFlagSet("explain pod|node NAME|cluster", flag.ContinueOnError)
	var q questions
	var namespace, file, output string
	flags.StringVar(&namespace, "n", "default", "namespace of the pod")
	flags.StringVar(&namespace, "namespace", "default", "as -n")
	flags.StringVar(&file, "file", "", "explain the situation in this file, such as karpenter snapshot prints, instead of asking a controller")
	flags.StringVar(&output, "output", "text", "text or json")
	q.define(flags)
	kind, name, s := subjectOf(s)
	if err := parsed(flags, s); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	about, known := abouts()[kind]
	switch {
	case !known, name == "" && kind != "cluster":
		return usageError{errors.New("explain: want pod NAME, as in karpenter explain pod web-1, or node NAME, or cluster")}
	case output != "text" && output != "json":
		return usageError{fmt.Errorf("--output: %q: want text or json", output)}
	}
	if kind == "pod" && !strings.Contains(name, "/") {
		name = namespace + "/" + name
	}
	a, err := about.ask(ctx, q, file, name)
	if err != nil {
		return err
	}
	if output == "json" {
		encoder := json.NewEncoder(s.stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(a)
	}
	return a.Text(s.stdout)
}

// subjectOf takes the words "pod NAME", "node NAME" or "cluster" from the front
// of the arguments.
func subjectOf(s surroundings) (kind, name string, rest surroundings) {
	next := func() string {
		if len(s.args) == 0 || strings.HasPrefix(s.args[0], "-") {
			return ""
		}
		word := s.args[0]
		s.args = s.args[1:]
		return word
	}
	if kind = strings.TrimSuffix(next(), "s"); kind != "cluster" {
		name = next()
	}
	return kind, name, s
}

// ask decides the situation in the file, which may include files beside it, or
// asks the controller when there is none.
func (a about) ask(ctx context.Context, q questions, file, name string) (answer, error) {
	if file == "" {
		body, err := q.ask(ctx, a.path+name)
		if err != nil {
			return nil, err
		}
		return a.read(body)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, usageError{fmt.Errorf("--file: %w", err)}
	}
	defer f.Close()
	situation, err := scenario.Read(f, os.DirFS(filepath.Dir(file)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	out, found := a.of(situation, name)
	if !found {
		return nil, fmt.Errorf("%s: "+a.notFound, file, name)
	}
	return out, nil
}

// snapshot prints the situation a running controller decides on.
func snapshot(ctx context.Context, s surroundings) error {
	flags := flag.NewFlagSet("snapshot", flag.ContinueOnError)
	var q questions
	q.define(flags)
	if err := parsed(flags, s); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	body, err := q.ask(ctx, explain.SnapshotPath)
	if err != nil {
		return err
	}
	_, err = s.stdout.Write(body)
	return err
}
