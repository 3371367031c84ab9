// SPDX-License-Identifier: Apache-2.0

// Package controlplane runs a real Kubernetes control plane on localhost: etcd, kube-apiserver, kube-scheduler,
// kube-controller-manager and, if wanted, simulated kubelets, each as a supervised child process of the sandbox's
// multi-call binary.
//
// All state of a cluster is in one folder:
//
//	kubeconfig      the administrator's access
//	etcd/           the cluster's objects
//	pki/            authority and keys, kept; certificates, issued at every start
//	logs/           one log per component, the previous run's beside it
//	pids/           the process id of each running component
//	ports.json      the loopback ports, kept while they are free
//	lock            held while any process of the cluster lives
package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"karpenter/sandbox/component"
	"karpenter/sandbox/process"
)

// Stopping takes at most stopBudget for all components together; a component that does not end by itself within
// componentGrace is killed.
const (
	stopBudget     = 10 * time.Second
	componentGrace = 5 * time.Second
)

// ControlPlane is a running cluster. Its methods are safe for concurrent use.
type ControlPlane struct {
	layout layout
	lock   *os.File

	reportMu sync.Mutex // one report at a time

	processes []*process.Process // in start order

	stopOnce sync.Once
	stopErr  error
}

// Start runs a control plane and returns once it is ready: /readyz answers and the default service account
// exists. ctx bounds starting only; the cluster then runs until Stop, its components restarted whenever they
// die. If Start fails nothing is left running.
func Start(ctx context.Context, options Options) (*ControlPlane, error) {
	if err := options.complete(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, options.StartTimeout,
		fmt.Errorf("not ready within %v; the logs are in %s", options.StartTimeout, options.LogDir))
	defer cancel()
	cp, err := prepare(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("prepare %s: %w", options.Dir, err)
	}
	if err := cp.start(ctx); err != nil {
		return nil, errors.Join(err, cp.Stop())
	}
	return cp, nil
}

// prepare locks the folder and creates keys, ports and kubeconfigs in it.
func prepare(ctx context.Context, options Options) (_ *ControlPlane, err error) {
	for _, dir := range []string{options.Dir, options.LogDir, filepath.Join(options.Dir, "pids")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	lock, err := lockDir(ctx, filepath.Join(options.Dir, "lock"))
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			lock.Close()
		}
	}()
	cp := &ControlPlane{lock: lock, layout: layout{dir: options.Dir, logDir: options.LogDir, options: options}}
	now := time.Now()
	if cp.layout.pki, err = openPKI(filepath.Join(options.Dir, "pki"), now); err != nil {
		return nil, err
	}
	moved := false
	if cp.layout.ports, moved, err = choosePorts(filepath.Join(options.Dir, "ports.json")); err != nil {
		return nil, err
	}
	if moved {
		cp.report("the API server's former port is taken; copies of the old kubeconfig no longer work")
	}
	return cp, cp.writeKubeconfigs(now)
}

func (cp *ControlPlane) writeKubeconfigs(now time.Time) error {
	l := &cp.layout
	paths := map[string]string{"admin": l.kubeconfig()}
	for user, name := range map[string]string{
		"system:kube-scheduler":          component.Scheduler,
		"system:kube-controller-manager": component.ControllerManager,
		"sandbox:kubelets":               Kubelets,
	} {
		paths[user] = l.componentKubeconfig(name)
	}
	for user, path := range paths {
		if err := writeKubeconfig(path, user, l.pki, l.ports.API, now); err != nil {
			return err
		}
	}
	return nil
}

// start starts etcd and the API server at once, for the latter retries; what needs an API server follows when it is
// ready.
func (cp *ControlPlane) start(ctx context.Context) error {
	client, err := newReadiness(cp.layout.kubeconfig())
	if err != nil {
		return err
	}
	if err := cp.run(component.Etcd, component.APIServer); err != nil {
		return err
	}
	if err := client.awaitReadyz(ctx, cp.startFailure); err != nil {
		return err
	}
	if cp.layout.options.Bare {
		return nil
	}
	if err := cp.run(component.ControllerManager, component.Scheduler); err != nil {
		return err
	}
	if cp.layout.options.Kubelets != nil {
		if err := cp.run(Kubelets); err != nil {
			return err
		}
	}
	return client.awaitServiceAccount(ctx)
}

func (cp *ControlPlane) run(names ...string) error {
	for _, name := range names {
		logPath := filepath.Join(cp.layout.logDir, name+".log")
		if err := keepPrevious(logPath); err != nil {
			return err
		}
		p, err := process.Start(process.Spec{
			Name:    name,
			Path:    cp.layout.options.Executable,
			Args:    cp.layout.arguments(name),
			LogPath: logPath,
			PIDPath: filepath.Join(cp.layout.dir, "pids", name),
			Inherit: []*os.File{cp.lock},
		}, func(exit process.Exit) { cp.report(exit.String()) })
		if err != nil {
			return err
		}
		cp.processes = append(cp.processes, p)
	}
	return nil
}

// keepPrevious moves the last run's log aside.
func keepPrevious(logPath string) error {
	ext := filepath.Ext(logPath)
	err := os.Rename(logPath, logPath[:len(logPath)-len(ext)]+".previous"+ext)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// startFailure returns an error when a component has died so often that waiting for it makes no sense.
func (cp *ControlPlane) startFailure() error {
	const hopeless = 4
	for _, p := range cp.processes {
		if p.Failures() >= hopeless {
			return fmt.Errorf("%s died %d times while starting; its log is %s", p.Name(), p.Failures(),
				filepath.Join(cp.layout.logDir, p.Name()+".log"))
		}
	}
	return nil
}

func (cp *ControlPlane) report(text string) {
	cp.reportMu.Lock()
	defer cp.reportMu.Unlock()
	fmt.Fprintln(cp.layout.options.Report, "sandbox:", text)
}

// Kubeconfig returns the absolute path of the administrator's kubeconfig.
func (cp *ControlPlane) Kubeconfig() string { return cp.layout.kubeconfig() }

// EtcdURL returns where etcd answers, to all on this computer.
func (cp *ControlPlane) EtcdURL() string { return cp.layout.etcdURL() }

// PID returns the process id of a running component by name; 0 if it does not run right now.
func (cp *ControlPlane) PID(name string) int {
	for _, p := range cp.processes {
		if p.Name() == name {
			return p.PID()
		}
	}
	return 0
}

// Stop ends all components, newest first and etcd last, within about ten seconds, and returns when they are gone. An
// error names those that had to be killed. The folder stays, ready for the next Start.
func (cp *ControlPlane) Stop() error {
	cp.stopOnce.Do(func() {
		deadline := time.Now().Add(stopBudget)
		var errs []error
		for i := len(cp.processes) - 1; i >= 0; i-- {
			errs = append(errs, cp.processes[i].Stop(min(componentGrace, time.Until(deadline))))
		}
		cp.stopErr = errors.Join(append(errs, cp.lock.Close())...)
	})
	return cp.stopErr
}
