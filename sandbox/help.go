// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"io"
	"text/tabwriter"

	"karpenter/sandbox/component"
)

// writeHelp documents every subcommand and flag; flags are printed from their definitions, so none can be forgotten.
func writeHelp(w io.Writer) {
	fmt.Fprintf(w, "sandbox: a real Kubernetes %s cluster on localhost, with simulated instances.\n\n", kubernetesVersion())
	fmt.Fprint(w, "Commands:\n")
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range commands() {
		fmt.Fprintf(table, "  %s\t%s\n", c.name, c.summary)
	}
	fmt.Fprint(table, "  help\tprint this\n")
	for _, name := range []string{component.Etcd, component.APIServer, component.Scheduler, component.ControllerManager, component.Kubectl} {
		fmt.Fprintf(table, "  %s\tthe upstream command, unchanged; its --help lists its flags\n", name)
	}
	table.Flush()
	controlPlane, _ := controlPlaneFlags()
	kubelets, _ := kubeletsFlags()
	run, _ := runFlags()
	writeFlags(w, "sandbox run --data DIR", run)
	fmt.Fprint(w, `
  Brings up the cluster in DIR, or continues with it, and shows nodes, pods and prices until SIGINT or SIGTERM.
`)
	writeFlags(w, "sandbox control-plane --data DIR", controlPlane)
	fmt.Fprint(w, `
  Prints one line on stdout when the cluster is of use: ready kubeconfig=PATH
  SIGINT or SIGTERM stops everything; the same --data continues the same cluster.
`)
	demo, _ := demoFlags()
	stress, _ := stressFlags()
	writeFlags(w, "sandbox demo", demo)
	fmt.Fprint(w, `
  Exits 0 when everything came about, else says what was missing. The timeline is on stdout.
`)
	writeFlags(w, "sandbox stress", stress)
	fmt.Fprint(w, `
  Takes the limits off the pools first. The timeline and the figures are on stdout.
`)
	disrupt, _ := disruptFlags()
	writeFlags(w, "sandbox disrupt", disrupt)
	fmt.Fprint(w, `
  Plays each part in a fresh cluster, --data DIR/PART. The timelines and one table of all figures are on stdout.
`)
	size, _ := sizeFlags()
	writeFlags(w, "sandbox size", size)
	fmt.Fprint(w, `
  Counts memory, CPU, requests and series of the controller, phase by phase. The timeline and the table are on stdout.
`)
	writeFlags(w, "sandbox kubelets --kubeconfig FILE", kubelets)
	fmt.Fprint(w, `
  Nodes annotated kwok.x-k8s.io/node=fake are simulated. On such a node, annotation
  sandbox/heartbeat=false stops its heartbeat (a dead machine), sandbox/ready=false keeps it NotReady.
  On a pod meant to complete, sandbox/duration=30s says how long it runs.
`)
}

func writeFlags(w io.Writer, usage string, flags *flag.FlagSet) {
	fmt.Fprintf(w, "\n%s\n", usage)
	flags.SetOutput(w)
	flags.PrintDefaults()
}
