// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"karpenter/sandbox/component"
	"karpenter/sandbox/kubelet"
)

// Kubelets is the name of the simulated kubelets among the components.
const Kubelets = "kubelets"

// Options says which control plane to run. Only Dir is required.
type Options struct {
	// Dir holds all state of the cluster: data, keys, logs, kubeconfig. It is
	// created if absent; a second Start on the same Dir continues the same
	// cluster.
	Dir string
	// Executable is the sandbox's multi-call binary; default: the current executable.
	Executable string
	// Kubelets are the simulated kubelets' delays; nil runs none.
	Kubelets *kubelet.Options
	// Bare runs etcd and the API server only, so that no one touches objects while they are written.
	Bare bool
	// LogDir is where components' logs go; default Dir/logs.
	LogDir string
	// Verbosity is the Kubernetes components' -v.
	Verbosity int
	// ExtraArgs are appended to a component's arguments, by component name.
	ExtraArgs map[string][]string
	// StartTimeout bounds Start; default 2 minutes.
	StartTimeout time.Duration
	// Report receives, line by line, what an operator should know, such as a component's death; default: discarded.
	Report io.Writer
}

// AddFlags defines the flags of these options on flags. Dir is required, see Validate.
func (o *Options) AddFlags(flags *flag.FlagSet) {
	flags.StringVar(&o.Dir, "data", "", "folder that holds the cluster: etcd data, keys, logs, kubeconfig (required)")
	flags.StringVar(&o.LogDir, "component-logs", "", "folder for the components' logs (default DATA/logs)")
	flags.IntVar(&o.Verbosity, "verbosity", 0, "the Kubernetes components' log verbosity, their -v")
	flags.DurationVar(&o.StartTimeout, "start-timeout", 2*time.Minute, "how long the control plane may take to become ready")
	flags.Func("extra-arg", "NAME=ARG: append ARG to component NAME's arguments, e.g. kube-apiserver=--v=3 (repeatable)", o.addExtraArg)
}

func (o *Options) addExtraArg(value string) error {
	name, arg, ok := strings.Cut(value, "=")
	if !ok || arg == "" || (name != Kubelets && (!component.Known(name) || name == component.Kubectl)) {
		return fmt.Errorf("want NAME=ARG with NAME one of %s, %s, %s, %s, %s",
			component.Etcd, component.APIServer, component.Scheduler, component.ControllerManager, Kubelets)
	}
	if o.ExtraArgs == nil {
		o.ExtraArgs = map[string][]string{}
	}
	o.ExtraArgs[name] = append(o.ExtraArgs[name], arg)
	return nil
}

// complete fills in defaults and makes paths absolute.
func (o *Options) complete() error {
	if o.Dir == "" {
		return errors.New("no data folder: set --data (Options.Dir)")
	}
	var err error
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	if o.LogDir == "" {
		o.LogDir = filepath.Join(o.Dir, "logs")
	}
	if o.LogDir, err = filepath.Abs(o.LogDir); err != nil {
		return fmt.Errorf("log folder: %w", err)
	}
	if o.Executable == "" {
		if o.Executable, err = os.Executable(); err != nil {
			return fmt.Errorf("find own executable: %w", err)
		}
	}
	if o.StartTimeout <= 0 {
		o.StartTimeout = 2 * time.Minute
	}
	if o.Report == nil {
		o.Report = io.Discard
	}
	return nil
}
