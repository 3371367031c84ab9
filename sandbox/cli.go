// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os/signal"
	"syscall"

	"k8s.io/client-go/tools/clientcmd"

	"karpenter/sandbox/controlplane"
	"karpenter/sandbox/kubelet"
)

// controlPlaneFlags returns the flag set of `sandbox control-plane` and the values it fills in.
func controlPlaneFlags() (*flag.FlagSet, *controlPlaneConfig) {
	config := &controlPlaneConfig{kubelets: true, delays: kubelet.DefaultOptions()}
	flags := flag.NewFlagSet("control-plane", flag.ContinueOnError)
	config.options.AddFlags(flags)
	flags.BoolVar(&config.kubelets, "kubelets", true, "also run simulated kubelets")
	config.delays.AddFlags(flags)
	return flags, config
}

type controlPlaneConfig struct {
	options  controlplane.Options
	kubelets bool
	delays   kubelet.Options
}

// kubeletsFlags returns the flag set of `sandbox kubelets` and the values it fills in.
func kubeletsFlags() (*flag.FlagSet, *kubeletsConfig) {
	config := &kubeletsConfig{delays: kubelet.DefaultOptions()}
	flags := flag.NewFlagSet("kubelets", flag.ContinueOnError)
	flags.StringVar(&config.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster; needs rights on nodes, pods and leases (required)")
	config.delays.AddFlags(flags)
	return flags, config
}

type kubeletsConfig struct {
	kubeconfig string
	delays     kubelet.Options
}

// runControlPlane prints exactly one line on stdout, when the cluster is ready; all else goes to
// stderr.
func runControlPlane(args []string, stdout, stderr io.Writer) error {
	flags, config := controlPlaneFlags()
	if err := parse(flags, args, stderr); err != nil {
		return helpIsFine(err)
	}
	if err := config.delays.Validate(); err != nil {
		return err
	}
	if config.kubelets {
		config.options.Kubelets = &config.delays
	}
	config.options.Report = stderr
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	cp, err := controlplane.Start(ctx, config.options)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(stdout, "ready kubeconfig=%s\n", cp.Kubeconfig()); err != nil {
		return errors.Join(err, cp.Stop())
	}
	<-ctx.Done()
	return cp.Stop()
}

func runKubelets(args []string, _, stderr io.Writer) error {
	flags, config := kubeletsFlags()
	if err := parse(flags, args, stderr); err != nil {
		return helpIsFine(err)
	}
	if config.kubeconfig == "" {
		return errors.New("no cluster: set --kubeconfig")
	}
	rest, err := clientcmd.BuildConfigFromFlags("", config.kubeconfig)
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	config.delays.KubeletVersion = kubernetesVersion()
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	return kubelet.Run(ctx, rest, config.delays, slog.New(slog.NewTextHandler(stderr, nil)))
}

func parse(flags *flag.FlagSet, args []string, stderr io.Writer) error {
	flags.SetOutput(stderr)
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q; all settings are flags", flags.Arg(0))
	}
	return nil
}

// helpIsFine turns an answered request for help into success.
func helpIsFine(err error) error {
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	return err
}
