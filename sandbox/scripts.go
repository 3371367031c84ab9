package main

import (
	"context"
	"flag"
	"io"

	"karpenter/sandbox/demo"
	"karpenter/sandbox/kubelet"
)

// demoConfig is the settings of `sandbox demo` and `sandbox stress`.
type demoConfig struct {
	options demo.Options
	delays  kubelet.Options
}

// demoFlags returns the flag set of `sandbox demo` and the values it fills in.
func demoFlags() (*flag.FlagSet, *demoConfig) {
	flags, config := scriptFlags("demo")
	flags.StringVar(&config.options.Examples, "examples", "examples", "folder with the manifests that the demo plays with")
	return flags, config
}

// stressFlags returns the flag set of `sandbox stress` and the values it fills in.
func stressFlags() (*flag.FlagSet, *demoConfig) {
	flags, config := scriptFlags("stress")
	flags.IntVar(&config.options.Scale, "scale", 5000, "how many pods run at once")
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
