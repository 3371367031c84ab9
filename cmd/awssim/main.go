// SPDX-License-Identifier: Apache-2.0

// Command awssim is an AWS account in one process, for laptops and tests. It
// serves the APIs that Karpenter calls over HTTP on loopback, so that programs
// reach it by AWS_ENDPOINT_URL, and boots what EC2 runs into Nodes of a cluster,
// whose pods the sandbox's kubelets run. With --endpoint it serves nothing and
// boots the instances of another emulator.
//
// It prints one line to standard output when it is ready, `ready url=URL`; all
// else goes to standard error. SIGINT and SIGTERM end it, exit code 0.
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
	listen, endpoint, kubeconfig string
	region, cluster, version     string
	clusterEndpoint, clusterCA   string
	journal                      string
	bootDelay, joinDelay         time.Duration
	shutdownDelay, visibleAfter  time.Duration
	every                        time.Duration
	memoryOverhead               float64
	seed                         uint
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
	default:
		fmt.Fprintln(os.Stderr, "awssim:", err)
		os.Exit(1)
	}
}

func parse(args []string, stderr io.Writer) (*options, error) {
	o := &options{}
	flags := flag.NewFlagSet("awssim", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.listen, "listen", "127.0.0.1:0", "where to serve; port 0 is a free one")
	flags.StringVar(&o.endpoint, "endpoint", "", "URL of another emulator, whose instances boot; nothing is served")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "cluster that the instances join; without it none boots")
	flags.StringVar(&o.region, "region", "us-east-1", "region of the account")
	flags.StringVar(&o.cluster, "cluster-name", "sandbox", "name of the EKS cluster")
	flags.StringVar(&o.version, "kubernetes-version", "", "its version, such as 1.34 (default: what --kubeconfig's API server says, else 1.34)")
	flags.StringVar(&o.clusterEndpoint, "cluster-endpoint", "", "URL of its API server (default: --kubeconfig's)")
	flags.StringVar(&o.clusterCA, "cluster-ca-bundle", "", "base64 of its certificate authority (default: --kubeconfig's)")
	flags.DurationVar(&o.bootDelay, "boot-delay", 2*time.Second, "from an instance's launch until it runs")
	flags.DurationVar(&o.joinDelay, "join-delay", 4*time.Second, "from an instance's launch until its kubelet registers")
	flags.DurationVar(&o.shutdownDelay, "shutdown-delay", 3*time.Second, "from the end of an instance until it is terminated")
	flags.DurationVar(&o.visibleAfter, "visible-after", 0, "from an instance's launch until other calls see it")
	flags.DurationVar(&o.every, "every", 500*time.Millisecond, "how often instances are looked at")
	flags.Float64Var(&o.memoryOverhead, "memory-overhead", 0.05, "share of a type's memory that instances do not see")
	flags.StringVar(&o.journal, "journal", "", "file that keeps the account: awssim continues with the account in the file, if there is one (default: each run has a new account)")
	flags.UintVar(&o.seed, "seed", 0, "of a new account's identifiers (default: by the time)")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	return o, o.check(flags.Args())
}

func (o *options) check(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("argument %q is not understood: there are only flags, see --help", rest[0])
	case o.endpoint != "" && o.kubeconfig == "":
		return errors.New("--endpoint without --kubeconfig: there is nothing to do")
	case o.endpoint != "" && o.journal != "":
		return errors.New("--journal with --endpoint: the account is the other emulator's")
	case o.every <= 0:
		return fmt.Errorf("--every %v: must be more than 0", o.every)
	case o.bootDelay < 0 || o.joinDelay < 0 || o.shutdownDelay < 0 || o.visibleAfter < 0:
		return errors.New("a delay is negative; 0 means at once")
	case o.memoryOverhead < 0 || o.memoryOverhead >= 1:
		return fmt.Errorf("--memory-overhead %v: must be at least 0 and less than 1", o.memoryOverhead)
	case o.seed > 1<<32-1:
		return fmt.Errorf("--seed %d: must be less than 2^32", o.seed)
	}
	return nil
}
