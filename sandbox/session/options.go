// SPDX-License-Identifier: Apache-2.0

// Package session starts a complete cluster: a control plane with simulated instances, the CRDs, first
// manifests, and the autoscaler as a child process.
//
// To the cluster's folder (see package controlplane) it adds
//
//	instance-types.json  what the simulated cloud offers (KWOK)
//	awssim.journal       the account of the simulated AWS
//	azure/               the certificate and the endpoints of the simulated Azure
//	azuresim.journal     its subscription
//	logs/awssim.log      what the simulated AWS says
//	pids/awssim          its process id
//	logs/karpenter.log   what the controller says
//	logs/sandbox.log     what the clients of this process say about their requests
//	pids/karpenter       its process id
//	karpenter.kubeconfig what the controller reaches the API server with, if its chart was installed
//	helm/                what Helm keeps
package session

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"karpenter/sandbox/controlplane"
)

// Names among the processes.
const (
	ControllerName = "karpenter"
	SimulatorName  = "awssim"
	// AzureSimulatorName is the simulated Azure's.
	AzureSimulatorName = "azuresim"
)

// Providers of instances.
const (
	AWS   = "aws"   // the AWS provider on a simulated AWS
	Azure = "azure" // the provider for AKS on a simulated Azure
	KWOK  = "kwok"  // the provider without instances
)

// Provision modes of the provider Azure.
const (
	MachineMode      = "aksmachineapi"            // AKS makes nodes
	MachineBatchMode = "aksmachineapiheaderbatch" // several by one request
	VMMode           = "aksscriptless"            // the controller makes virtual machines, which join by themselves
)

// Options says what to bring up.
type Options struct {
	// ControlPlane is the cluster; its Kubelets must be set, or no instance ever boots.
	ControlPlane controlplane.Options
	// Controller is the autoscaler's executable. Required.
	Controller string
	// Provider is AWS, Azure or KWOK; default AWS.
	Provider string
	// ProvisionMode is how nodes are made with the provider Azure, as PROVISION_MODE says it to the controller; default
	// MachineMode.
	ProvisionMode string
	// Simulator is the simulated cloud's executable, for the providers AWS and Azure; default awssim or azuresim beside
	// Controller.
	Simulator string
	// CRDs is a manifest or folder; default "api/crds".
	CRDs string
	// Helm is the executable that installs Charts, which then define the controller's service account and
	// settings; empty: the controller is an administrator, and CRDs are applied.
	Helm string
	// Charts is the folder of the charts karpenter and karpenter-crd, for Helm; default "charts".
	Charts string
	// Manifests are files and folders, applied where the objects do not exist yet.
	Manifests []string
	// InstanceTypes is a file in the KWOK provider's format; if empty the controller is asked for the catalogue of Region.
	InstanceTypes string
	// Region is the EC2 region, or the one whose types and prices the simulated cloud has; default "us-east-1".
	Region string
	// Environment has additional variables for the autoscaler, as NAME=value.
	Environment []string
	// Report receives, line by line, what is going on.
	Report io.Writer
}

// AddFlags defines the flags of these options on flags, less those of ControlPlane.
func (o *Options) AddFlags(flags *flag.FlagSet) {
	flags.StringVar(&o.Controller, "controller", "bin/karpenter", "the autoscaler's executable")
	flags.StringVar(&o.Provider, "provider", AWS, "which cloud launches instances: "+AWS+", on a simulated AWS, "+Azure+", on a simulated Azure, or "+KWOK)
	flags.StringVar(&o.ProvisionMode, "provision-mode", "", "with --provider "+Azure+" how nodes are made: "+MachineMode+", "+MachineBatchMode+" or "+VMMode+" (default: "+MachineMode+")")
	flags.StringVar(&o.Simulator, "simulator", "", "the simulated cloud's executable (default: "+SimulatorName+" or "+AzureSimulatorName+" beside the autoscaler)")
	flags.StringVar(&o.CRDs, "crds", "api/crds", "manifest or folder of the autoscaler's CustomResourceDefinitions")
	flags.StringVar(&o.Helm, "helm", "", "Helm's executable: the autoscaler is installed with it, and has the rights of its chart only")
	flags.StringVar(&o.Charts, "charts", "charts", "folder of the charts karpenter and karpenter-crd, for --helm")
	flags.Func("manifests", "file or folder applied at first; objects that exist are left as they are (repeatable, or several split by commas)", func(paths string) error {
		o.Manifests = append(o.Manifests, strings.Split(paths, ",")...)
		return nil
	})
	flags.StringVar(&o.InstanceTypes, "instance-types", "", "what the simulated cloud offers, in the KWOK provider's format (default: EC2's catalogue)")
	flags.StringVar(&o.Region, "region", "us-east-1", "EC2 region of that catalogue")
}

// complete fills in defaults, makes paths absolute, and finds out early what would fail late.
func (o *Options) complete() error {
	if o.Controller == "" {
		return errors.New("no autoscaler to run: set --controller (Options.Controller)")
	}
	var err error
	if o.Controller, err = executable(o.Controller, "./cmd/karpenter"); err != nil {
		return err
	}
	o.Provider = cmp.Or(o.Provider, AWS)
	simulators := map[string]string{AWS: SimulatorName, Azure: AzureSimulatorName, KWOK: ""}
	simulator, known := simulators[o.Provider]
	if !known {
		return fmt.Errorf("--provider %s: there are %s, %s and %s", o.Provider, AWS, Azure, KWOK)
	}
	if err := o.completeMode(); err != nil {
		return err
	}
	if simulator != "" {
		o.Simulator = cmp.Or(o.Simulator, filepath.Join(filepath.Dir(o.Controller), simulator))
		if o.Simulator, err = executable(o.Simulator, "./cmd/"+simulator); err != nil {
			return err
		}
	}
	if o.Helm != "" {
		if o.Helm, err = executable(o.Helm, "helm.sh/helm/v3/cmd/helm"); err != nil {
			return err
		}
	}
	o.Charts = cmp.Or(o.Charts, "charts")
	o.CRDs = cmp.Or(o.CRDs, "api/crds")
	if o.Region == "" {
		o.Region = "us-east-1"
	}
	if o.Report == nil {
		o.Report = io.Discard
	}
	o.ControlPlane.Report = o.Report
	return nil
}

func (o *Options) completeMode() error {
	modes := []string{MachineMode, MachineBatchMode, VMMode}
	switch {
	case o.Provider != Azure && o.ProvisionMode != "":
		return fmt.Errorf("--provision-mode %s: only --provider %s has modes", o.ProvisionMode, Azure)
	case o.Provider == Azure:
		o.ProvisionMode = cmp.Or(o.ProvisionMode, MachineMode)
		if !slices.Contains(modes, o.ProvisionMode) {
			return fmt.Errorf("--provision-mode %s: there are %s", o.ProvisionMode, strings.Join(modes, ", "))
		}
	}
	return nil
}

// executable returns the absolute path of a program that was built from a package.
func executable(path, from string) (string, error) {
	info, err := os.Stat(path)
	if err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
		return "", fmt.Errorf("no executable at %s; build it with: go build -o %s %s", path, path, from)
	}
	return filepath.Abs(path)
}
