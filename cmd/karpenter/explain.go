package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"karpenter/cmd/karpenter/explain"
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

// explainPod says where a pod is planned, or why it stays pending.
func explainPod(ctx context.Context, s surroundings) error {
	flags := flag.NewFlagSet("explain pod NAME", flag.ContinueOnError)
	var q questions
	var namespace, file, output string
	flags.StringVar(&namespace, "n", "default", "namespace of the pod")
	flags.StringVar(&namespace, "namespace", "default", "as -n")
	flags.StringVar(&file, "file", "", "explain the situation in this file, such as karpenter snapshot prints, instead of asking a controller")
	flags.StringVar(&output, "output", "text", "text or json")
	q.define(flags)
	name, s := podOf(s)
	if err := parsed(flags, s); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	switch {
	case name == "":
		return usageError{errors.New("explain: want pod NAME, as in karpenter explain pod web-1")}
	case output != "text" && output != "json":
		return usageError{fmt.Errorf("--output: %q: want text or json", output)}
	}
	if before, after, ok := strings.Cut(name, "/"); ok {
		namespace, name = before, after
	}
	var a explain.Answer
	var err error
	if file != "" {
		a, err = fromFile(file, namespace+"/"+name)
	} else {
		a, err = fromController(ctx, q, namespace+"/"+name)
	}
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

// podOf takes the words "pod NAME" from the front of the arguments.
func podOf(s surroundings) (name string, rest surroundings) {
	if len(s.args) < 2 || s.args[0] != "pod" && s.args[0] != "pods" || strings.HasPrefix(s.args[1], "-") {
		return "", s
	}
	name, s.args = s.args[1], s.args[2:]
	return name, s
}

// fromFile decides the situation in the file; it may include files beside it.
func fromFile(file, pod string) (explain.Answer, error) {
	f, err := os.Open(file)
	if err != nil {
		return explain.Answer{}, usageError{fmt.Errorf("--file: %w", err)}
	}
	defer f.Close()
	situation, err := scenario.Read(f, os.DirFS(filepath.Dir(file)))
	if err != nil {
		return explain.Answer{}, fmt.Errorf("%s: %w", file, err)
	}
	a, found := explain.Of(situation.Snapshot, solve.Decide(situation.Snapshot, situation.Policy), pod)
	if !found {
		return explain.Answer{}, fmt.Errorf("%s: no pod %s waits for a node there", file, pod)
	}
	return a, nil
}

func fromController(ctx context.Context, q questions, pod string) (explain.Answer, error) {
	body, err := q.ask(ctx, explain.PodsPath+pod)
	if err != nil {
		return explain.Answer{}, err
	}
	var a explain.Answer
	if err := json.Unmarshal(body, &a); err != nil {
		return explain.Answer{}, fmt.Errorf("read the controller's answer: %w", err)
	}
	return a, nil
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
