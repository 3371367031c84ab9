// SPDX-License-Identifier: Apache-2.0

// Command azuresim is an Azure subscription with an AKS cluster in one process, for
// laptops and tests. It serves the APIs that Karpenter calls over HTTPS on loopback,
// and boots what AKS runs into Nodes of a cluster, whose pods the sandbox's kubelets
// run.
//
// Into --directory it writes what programs need to reach it: ca.crt for
// SSL_CERT_FILE, cloud.json for AZURE_ENVIRONMENT_FILEPATH. Tokens are given out at
// URL/identity, for IDENTITY_ENDPOINT, to those who send IDENTITY_HEADER=azuresim.
//
// GET URL/_azuresim/vms, /calls and /prices tell what there is, how often each
// operation was called, and what an hour of each offering costs; POST URL/_azuresim/evict?pool=POOL&machine=MACHINE takes a
// virtual machine away, as Azure does with spot; /preempt?node=NODE announces that
// first, and does it after 30 seconds.
//
// With --journal the subscription survives a restart.
//
// Standard output carries one line when it is of use, `ready url=URL`; all else is
// on standard error. SIGINT and SIGTERM end it, exit code 0.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// options are the command line.
type options struct {
	listen, kubeconfig, directory string
	region, subscription, cluster string
	group, nodeGroup, pool        string
	journal                       string
	creation, deletion, every     time.Duration
	memoryOverhead                float64
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "azuresim:", err)
		os.Exit(1)
	}
}

func parse(args []string, stderr io.Writer) (*options, error) {
	o := &options{}
	flags := flag.NewFlagSet("azuresim", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.listen, "listen", "127.0.0.1:0", "where to serve; port 0 is a free one")
	flags.StringVar(&o.directory, "directory", "", "where to write ca.crt and cloud.json; required")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "cluster that the nodes join; without it none boots")
	flags.StringVar(&o.region, "region", "eastus", "region of the cluster")
	flags.StringVar(&o.subscription, "subscription", "00000000-0000-0000-0000-000000000001", "ID of the subscription")
	flags.StringVar(&o.cluster, "cluster-name", "sandbox", "name of the AKS cluster")
	flags.StringVar(&o.group, "resource-group", "sandbox", "its resource group")
	flags.StringVar(&o.nodeGroup, "node-resource-group", "MC_sandbox", "that of its nodes")
	flags.StringVar(&o.pool, "pool", "machines", "its agent pool for the AKS Machine API")
	flags.StringVar(&o.journal, "journal", "", "file that keeps the subscription: azuresim continues with the subscription in the file, if there is one (default: each run has a new one)")
	flags.DurationVar(&o.creation, "create-delay", 4*time.Second, "from the request for a machine until it runs")
	flags.DurationVar(&o.deletion, "delete-delay", 3*time.Second, "from the end of a machine until it is gone")
	flags.DurationVar(&o.every, "every", 500*time.Millisecond, "how often the state is looked at")
	flags.Float64Var(&o.memoryOverhead, "memory-overhead", 0.05, "share of a size's memory that nodes do not see")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	switch {
	case flags.NArg() > 0:
		return nil, fmt.Errorf("argument %q is not understood: there are only flags, see --help", flags.Arg(0))
	case o.directory == "":
		return nil, errors.New("--directory is required")
	case o.every <= 0 || o.creation <= 0 || o.deletion <= 0:
		return nil, errors.New("a delay must be more than 0")
	case o.memoryOverhead < 0 || o.memoryOverhead >= 1:
		return nil, fmt.Errorf("--memory-overhead %v: must be at least 0 and less than 1", o.memoryOverhead)
	}
	return o, nil
}
