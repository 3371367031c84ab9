// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"karpenter/sandbox/controlplane"
	"karpenter/sandbox/fleet"
	"karpenter/sandbox/manifest"
	"karpenter/sandbox/process"
)

// controllerGrace is how long the controller may take to end.
const controllerGrace = 10 * time.Second

// Session is a running cluster and its autoscaler. Its methods are safe for concurrent use.
type Session struct {
	// Applier writes to the cluster.
	*manifest.Applier

	dir          string
	program      string // the controller's executable
	provider     string
	controlPlane *controlplane.ControlPlane
	config       *rest.Config
	controller   *process.Process
	simulator    *process.Process // nil: none
	page         *process.Process // nil: none
	simulatorURL string
	prices       fleet.Prices // nil: instances say their own
	azure        *http.Client // trusts the simulated Azure; nil: there is none
	ports        ports
	clientLog    *os.File // nil: clients log to stderr

	stopOnce sync.Once
	stopErr  error
}

// Start starts everything; ctx bounds only the start. The controller may not be ready yet when Start returns.
// If Start fails, nothing is left running.
func Start(ctx context.Context, options Options) (*Session, error) {
	if err := options.complete(); err != nil {
		return nil, err
	}
	// Manifests are read first, so that a mistake in them is found before a
	// cluster starts.
	crds, err := manifest.Read(options.CRDs)
	if err != nil {
		return nil, err
	}
	first, err := manifest.Read(options.Manifests...)
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(options.Report, "sandbox: starting the control plane")
	cp, err := controlplane.Start(ctx, options.ControlPlane)
	if err != nil {
		return nil, err
	}
	s := &Session{controlPlane: cp, dir: filepath.Dir(cp.Kubeconfig()), program: options.Controller, provider: options.Provider}
	if err := s.logClients(); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	if err := s.furnish(ctx, &options, crds, first); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// logClients has the clients in this process log to a file: what they have to say about watches that end would spoil a
// picture on the terminal. Their logger is one for the whole process.
func (s *Session) logClients() error {
	file, err := os.OpenFile(filepath.Join(s.dir, "logs", "sandbox.log"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	s.clientLog = file
	klog.SetSlogLogger(slog.New(slog.NewTextHandler(file, nil)))
	return nil
}

// furnish installs what a session needs into an empty cluster.
func (s *Session) furnish(ctx context.Context, options *Options, crds, first []*unstructured.Unstructured) error {
	var err error
	if s.config, err = clientcmd.BuildConfigFromFlags("", s.Kubeconfig()); err != nil {
		return fmt.Errorf("read %s: %w", s.Kubeconfig(), err)
	}
	if s.Applier, err = manifest.NewApplier(s.config); err != nil {
		return err
	}
	if options.Helm != "" {
		err = s.helm(ctx, options, release+"-crd")
	} else {
		err = s.InstallCRDs(ctx, crds)
	}
	if err != nil {
		return err
	}
	if err := s.ApplyAbsent(ctx, first); err != nil {
		return fmt.Errorf("apply first manifests: %w", err)
	}
	cloud, err := map[string]func(context.Context, *Options) ([]string, error){
		AWS: s.startAWS, Azure: s.startAzure, KWOK: s.furnishKWOK,
	}[options.Provider](ctx, options)
	if err != nil {
		return err
	}
	if s.ports, err = freePorts(); err != nil {
		return err
	}
	told := s.environment()
	if options.Helm != "" {
		if told, err = s.installChart(ctx, options); err != nil {
			return err
		}
	}
	fmt.Fprintln(options.Report, "sandbox: starting the autoscaler")
	return s.startController(options, slices.Concat(told, cloud, options.Environment))
}

// startController starts the controller with the given variables, which take precedence
// over the environment of this process.
func (s *Session) startController(options *Options, told []string) error {
	if err := keepPrevious(s.ControllerLog()); err != nil {
		return err
	}
	var err error
	s.controller, err = process.Start(process.Spec{
		Name:    ControllerName,
		Path:    options.Controller,
		Args:    []string{"controller"},
		Env:     append(withoutClouds(os.Environ()), told...),
		LogPath: s.ControllerLog(),
		PIDPath: filepath.Join(s.dir, "pids", ControllerName),
	}, func(exit process.Exit) { fmt.Fprintln(options.Report, "sandbox:", exit) })
	return err
}

// keepPrevious renames the log of the run before, if there is one.
func keepPrevious(log string) error {
	err := os.Rename(log, strings.TrimSuffix(log, ".log")+".previous.log")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// ServePage starts karpenter ui. The page is there as soon as the controller has published what it decides on: until
// then the program ends, and is started again.
func (s *Session) ServePage() error {
	var err error
	s.page, err = process.Start(process.Spec{
		Name:    "ui",
		Path:    s.program,
		Args:    append([]string{"ui", "--address", fmt.Sprintf("127.0.0.1:%d", s.ports.page)}, s.AskArguments()...),
		LogPath: filepath.Join(s.dir, "logs", "ui.log"),
	}, nil)
	return err
}

// PageURL returns where ServePage has the page.
func (s *Session) PageURL() string { return fmt.Sprintf("http://127.0.0.1:%d", s.ports.page) }

// environment returns the variables of the controller without a chart. Logs go
// to stdout, which is the log file, so that they and the last words of a crash
// are in one place.
func (s *Session) environment() []string {
	return []string{
		"KUBECONFIG=" + s.Kubeconfig(),
		fmt.Sprintf("METRICS_PORT=%d", s.ports.metrics),
		fmt.Sprintf("HEALTH_PROBE_PORT=%d", s.ports.health),
		"DISABLE_LEADER_ELECTION=false",
		"LEADER_ELECTION_NAMESPACE=kube-system",
		"SYSTEM_NAMESPACE=kube-system",
		"LOG_OUTPUT_PATHS=stdout",
		"LOG_ERROR_OUTPUT_PATHS=stderr",
	}
}

// Kubeconfig returns the absolute path of the administrator's kubeconfig.
func (s *Session) Kubeconfig() string { return s.controlPlane.Kubeconfig() }

// Config returns an administrator's access.
func (s *Session) Config() *rest.Config { return rest.CopyConfig(s.config) }

// Controller returns the autoscaler's process.
func (s *Session) Controller() *process.Process { return s.controller }

// ControllerLog returns the path of the autoscaler's log.
func (s *Session) ControllerLog() string { return filepath.Join(s.dir, "logs", ControllerName+".log") }

// Provider is AWS, Azure or KWOK.
func (s *Session) Provider() string { return s.provider }

// SimulatorURL returns where the simulated cloud answers, "" without one.
func (s *Session) SimulatorURL() string { return s.simulatorURL }

// Prices are those of the simulated cloud, nil if its instances say their own.
func (s *Session) Prices() fleet.Prices { return s.prices }

// MetricsURL returns where the autoscaler serves its metrics.
func (s *Session) MetricsURL() string {
	return fmt.Sprintf("http://127.0.0.1:%d/metrics", s.ports.metrics)
}

// ProfilesURL returns where the autoscaler serves its profiles, if profiling is
// enabled.
func (s *Session) ProfilesURL() string {
	return fmt.Sprintf("http://127.0.0.1:%d/debug/pprof/", s.ports.metrics)
}

// Stop ends the autoscaler and then the cluster, and returns when no process is left. The folder stays.
func (s *Session) Stop() error {
	s.stopOnce.Do(func() {
		if s.page != nil {
			s.stopErr = s.page.Stop(controllerGrace)
		}
		if s.controller != nil {
			s.stopErr = errors.Join(s.stopErr, s.controller.Stop(controllerGrace))
		}
		if s.simulator != nil {
			s.stopErr = errors.Join(s.stopErr, s.simulator.Stop(controllerGrace))
		}
		s.stopErr = errors.Join(s.stopErr, s.controlPlane.Stop())
		if s.clientLog != nil {
			klog.ClearLogger()
			s.stopErr = errors.Join(s.stopErr, s.clientLog.Close())
		}
	})
	return s.stopErr
}
