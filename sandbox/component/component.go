// SPDX-License-Identifier: Apache-2.0

// Package component runs one upstream command, unchanged, as the whole current process.
//
// Each component has process-wide state of its own (flags, klog, metrics registries, feature gates, signal handlers),
// so a process is exactly one of them for its whole life.
package component

import (
	"os"
	_ "time/tzdata" // CronJob time zones, as in the released binaries

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // kubectl's credential plugins, as in the released binary
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

// The names of the upstream commands, as their binaries are called.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	Scheduler         = "kube-scheduler"
	ControllerManager = "kube-controller-manager"
	Kubectl           = "kubectl"
)

// Known reports whether name is an upstream command that Run can be.
func Known(name string) bool {
	switch name {
	case Etcd, APIServer, Scheduler, ControllerManager, Kubectl:
		return true
	}
	return false
}

// Run turns the process into the named command and returns its exit code; several commands exit by themselves instead.
// version is the Kubernetes version to report, such as v1.37.1. Run replaces os.Args, because the commands
// read it, and may be called once per process.
func Run(name string, args []string, version string) int {
	stampVersion(version)
	os.Args = append([]string{name}, args...)
	switch name {
	case Etcd:
		etcdmain.Main(os.Args)
		return 0
	case Kubectl:
		return runKubectl()
	}
	return cli.Run(serverCommand(name))
}

func serverCommand(name string) *cobra.Command {
	switch name {
	case APIServer:
		return apiserver.NewAPIServerCommand()
	case Scheduler:
		return scheduler.NewSchedulerCommand()
	case ControllerManager:
		return controllermanager.NewControllerManagerCommand()
	}
	panic("component: not an upstream command: " + name)
}

// runKubectl follows cmd/kubectl of Kubernetes: verbosity first, so that building the command can log already.
func runKubectl() int {
	_, _ = logs.GlogSetter(kubectl.GetLogVerbosity(os.Args))
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err)
	}
	return 0
}
