// SPDX-License-Identifier: Apache-2.0

// Command sandbox is a real Kubernetes cluster in one binary: etcd, kube-apiserver, kube-scheduler,
// kube-controller-manager and kubectl exactly as released, a supervisor that runs them on localhost, and simulated
// kubelets that make nodes Ready and pods Running. It needs no root, no container runtime and no network.
//
// It is a multi-call binary: the first argument names what this process is, and the supervisor starts the same
// executable again for each component. Installed or linked under the name kubectl, it is kubectl.
package main

import (
	_ "embed"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"karpenter/sandbox/component"
)

//go:embed go.mod
var goMod string

func main() {
	os.Exit(run(os.Args, os.Stdout, os.Stderr))
}

// command is one subcommand of the sandbox itself; the upstream ones live in package component.
type command struct {
	name    string
	summary string
	run     func(args []string, stdout, stderr io.Writer) error
}

func commands() []command {
	return []command{
		{"run", "bring up a cluster with an autoscaler and show it live", runRun},
		{"demo", "the same without a person: play the examples, print a timeline", runDemo},
		{"stress", "many pods from nothing to running and back, with figures", runStress},
		{"disrupt", "nodes consolidated, emptied and drifted, with figures", runDisrupt},
		{"size", "what the controller needs for a large cluster, idle and busy", runSize},
		{"control-plane", "run a control plane and simulated kubelets in the foreground", runControlPlane},
		{"kubelets", "run simulated kubelets against any cluster", runKubelets},
		{"version", "print the Kubernetes version", runVersion},
	}
}

// run is main with its inputs as arguments; it returns the exit code. Upstream components read os.Args themselves
// and never return here when they exit on their own.
func run(argv []string, stdout, stderr io.Writer) int {
	args := argv[1:]
	if base := filepath.Base(argv[0]); component.Known(base) {
		args = append([]string{base}, args...)
	}
	if len(args) == 0 {
		writeHelp(stderr)
		return 2
	}
	name, rest := args[0], args[1:]
	if component.Known(name) {
		return component.Run(name, rest, kubernetesVersion())
	}
	if name == "help" || name == "-h" || name == "--help" {
		writeHelp(stdout)
		return 0
	}
	for _, c := range commands() {
		if c.name != name {
			continue
		}
		if err := c.run(rest, stdout, stderr); err != nil {
			fmt.Fprintf(stderr, "sandbox %s: %v\n", name, err)
			return 1
		}
		return 0
	}
	fmt.Fprintf(stderr, "sandbox: unknown command %q; `sandbox help` lists them\n", name)
	return 2
}

func runVersion(_ []string, stdout, _ io.Writer) error {
	_, err := fmt.Fprintln(stdout, kubernetesVersion())
	return err
}

// kubernetesVersion returns the release this module is pinned to, such as v1.37.1. go.mod is the one place that states
// it; reading it from there keeps every build right, `go run` and test binaries included.
func kubernetesVersion() string {
	for line := range strings.Lines(goMod) {
		if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == "k8s.io/kubernetes" {
			return fields[1]
		}
	}
	return "v0.0.0-unpinned"
}
