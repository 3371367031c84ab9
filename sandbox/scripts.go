// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"io"
	"strings"

	"karpenter/sandbox/demo"
	"karpenter/sandbox/kubelet"
)

// demoConfig is the settings of `sandbox demo`, `sandbox stress`, `sandbox disrupt` and `sandbox size`.
type demoConfig struct {
	options demo.Options
	delays  kubelet.Options
}

// demoFlags returns the flag set of `sandbox demo` and the values it fills in.
func demoFlags() (*flag.FlagSet, *demoConfig) {
	flags, config := scriptFlags("demo")
	flags.StringVar(&config.options.Examples, "examples", "", "folder with the manifests that the demo plays with (default: examples/ and the provider)")
	return flags, config
}

// stressFlags returns the flag set of `sandbox stress` and the values it fills in.
func stressFlags() (*flag.FlagSet, *demoConfig) {
	flags, config := scriptFlags("stress")
	flags.IntVar(&config.options.Scale, "scale", 5000, "how many pods run at once")
	return flags, config
}

// disruptFlags returns the flag set of `sandbox disrupt` and the values it fills in.
func disruptFlags() (*flag.FlagSet, *demoConfig) {
	flags, config := scriptFlags("disrupt")
	d := &config.options.Disruption
	*d = demo.DefaultDisruption()
	flags.Func("parts", "what to play, split by commas (default "+strings.Join(d.Parts, ",")+")", func(text string) error {
		d.Parts = strings.Split(text, ",")
		return d.Validate()
	})
	flags.IntVar(&d.Pods, "pods", d.Pods, "consolidate: pods of each of the two deployments")
	flags.IntVar(&d.Left, "left", d.Left, "consolidate: pods of each after scaling down")
	flags.IntVar(&d.Emptied, "emptied", d.Emptied, "empty: nodes that are emptied at once")
	flags.IntVar(&d.Drifted, "drifted", d.Drifted, "drift: nodes that drift at once")
	flags.StringVar(&d.Budget, "budget", d.Budget, "consolidate and drift: how many nodes may be disrupted at once")
	flags.StringVar(&d.CapacityType, "capacity-type", d.CapacityType, "what the NodePool asks for")
	flags.DurationVar(&d.Rest, "rest", d.Rest, "how long nothing may happen until the cluster counts as at rest")
	flags.DurationVar(&d.Within, "within", d.Within, "how long each step may take")
	flags.StringVar(&d.Results, "json", d.Results, "file to write all figures to")
	return flags, config
}

// sizeFlags returns the flag set of `sandbox size` and the values it fills in.
func sizeFlags() (*flag.FlagSet, *demoConfig) {
	flags, config := scriptFlags("size")
	s := &config.options.Sizing
	*s = demo.DefaultSizing()
	flags.IntVar(&s.Pods, "pods", s.Pods, "pods of the cluster")
	flags.IntVar(&s.Nodes, "nodes", s.Nodes, "nodes that are made as objects, and not grown; 0: all are grown")
	flags.StringVar(&s.Made, "made", s.Made, "folder where clusters made of objects are kept, for the next time (default: a temporary one)")
	flags.BoolVar(&s.Bare, "bare", s.Bare, "run only etcd, the API server and the controller, with a cluster made of objects: no pod is scheduled, started or ended")
	flags.IntVar(&s.Drifted, "drifted", s.Drifted, "nodes that are replaced because they have drifted, of a cluster made of objects")
	flags.IntVar(&s.Cores, "cores", s.Cores, "cores of each machine; with 8 there is about one for ten pods")
	flags.IntVar(&s.Burst, "burst", s.Burst, "pods that are created and deleted again")
	flags.IntVar(&s.Left, "left", s.Left, "pods that are left in the end, of 100")
	flags.DurationVar(&s.Idle, "idle", s.Idle, "how long nothing is done")
	flags.DurationVar(&s.Rest, "rest", s.Rest, "how long nothing may happen until the cluster counts as at rest")
	flags.DurationVar(&s.Within, "within", s.Within, "how long each step may take")
	flags.StringVar(&s.Results, "json", s.Results, "file to write all figures to")
	return flags, config
}

func scriptFlags(name string) (*flag.FlagSet, *demoConfig) {
	config := &demoConfig{delays: kubelet.DefaultOptions()}
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	addSessionFlags(flags, &config.options.Session, &config.delays)
	flags.Lookup("data").Usage = "fresh folder for the cluster (default: a temporary one, removed after success)"
	return flags, config
}

func runDemo(args []string, stdout, stderr io.Writer) error {
	flags, config := demoFlags()
	if err := parse(flags, args, stderr); err != nil {
		return helpIsFine(err)
	}
	return play(demo.Run, config, stdout, stderr)
}

func runStress(args []string, stdout, stderr io.Writer) error {
	flags, config := stressFlags()
	if err := parse(flags, args, stderr); err != nil {
		return helpIsFine(err)
	}
	return play(demo.Stress, config, stdout, stderr)
}

func runDisrupt(args []string, stdout, stderr io.Writer) error {
	flags, config := disruptFlags()
	if err := parse(flags, args, stderr); err != nil {
		return helpIsFine(err)
	}
	return play(demo.Disrupt, config, stdout, stderr)
}

func runSize(args []string, stdout, stderr io.Writer) error {
	flags, config := sizeFlags()
	if err := parse(flags, args, stderr); err != nil {
		return helpIsFine(err)
	}
	return play(demo.Size, config, stdout, stderr)
}

// play runs a script. The timeline is on stdout, all else on stderr.
func play(script func(context.Context, demo.Options) error, config *demoConfig, stdout, stderr io.Writer) error {
	if err := config.delays.Validate(); err != nil {
		return err
	}
	config.options.Session.ControlPlane.Kubelets = &config.delays
	config.options.Session.Report = stderr
	config.options.Out = stdout
	ctx, cancel := untilToldToStop()
	defer cancel()
	return script(ctx, config.options)
}
