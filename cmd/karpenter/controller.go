// SPDX-License-Identifier: Apache-2.0

//go:build !nocontroller

package main

import (
	"context"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
	ctrl "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"karpenter/api/scheme"
	"karpenter/cloud"
	awsclient "karpenter/cloud/aws/client"
	azureclient "karpenter/cloud/azure/client"
	settings "karpenter/cmd/karpenter/config"
	"karpenter/cmd/karpenter/wiring"
	"karpenter/control/nomination"
	"karpenter/kube/feed"
	"karpenter/kube/manager"
	"karpenter/kube/meter"
)

const controllerName = "controller"

// controllerCommand runs the controllers. It has the flags of package config,
// which come with environment variables.
func controllerCommand(s surroundings) *cobra.Command {
	return &cobra.Command{
		Use:                controllerName + " [flags]",
		Short:              "Run the controllers",
		DisableFlagParsing: true,
		RunE: func(c *cobra.Command, args []string) error {
			settings, err := settings.Parse(args, s.env)
			switch {
			case errors.Is(err, flag.ErrHelp):
				return controllerHelp(s)
			case err != nil:
				return usageError{fmt.Errorf("%w\nRun 'karpenter controller --help' for the settings there are.", err)}
			}
			return serve(c.Context(), settings)
		},
	}
}

func controllerHelp(s surroundings) error {
	var text strings.Builder
	text.WriteString("Run the controllers. In a pod, 'karpenter' without a command does the same.\n\n" +
		"Usage:\n  karpenter controller [flags]\n\n" +
		"Flags, their environment variables and defaults. A flag wins over its variable.\n\n")
	if err := settings.Usage(&text); err != nil {
		return err
	}
	_, err := io.WriteString(s.stdout, text.String())
	return err
}

// serve runs the controllers until ctx ends, and then releases the lease.
func serve(ctx context.Context, c settings.Config) error {
	build := manager.ReadBuild()
	logger, err := manager.NewLog(manager.LogOptions{
		Level: c.LogLevel, Outputs: c.LogOutputPaths, ErrorOutputs: c.LogErrorOutputPaths, Commit: build.Commit,
	})
	if err != nil {
		return err
	}
	if c.CloudProvider == settings.CloudAWS {
		logger = awsclient.Logger(logger)
	}
	log.SetLogger(logger)
	klog.SetLogger(logger)
	ctx = log.IntoContext(ctx, logger)
	describe(logger, c, build)
	collectSooner(startingPercent)
	if c.MemoryLimit > 0 {
		debug.SetMemoryLimit(c.MemoryLimit / 10 * 9)
	}
	if err := runControllers(ctx, c, build, logger); err != nil {
		logger.Error(err, "stopped by a failure")
		return err
	}
	return nil
}

// runControllers creates the manager and everything that it runs.
func runControllers(ctx context.Context, c settings.Config, build manager.Build, logger logr.Logger) error {
	cluster, err := clusterOf(c.Kubeconfig)
	if err != nil {
		return err
	}
	objects := runtime.NewScheme()
	if err := errors.Join(kubescheme.AddToScheme(objects), scheme.AddToScheme(objects)); err != nil {
		return fmt.Errorf("make scheme: %w", err)
	}
	cluster.Wrap(meter.NewRequests(metrics.Registry, clock.RealClock{}).Wrap)
	fence := fenceOf(c)
	watches, turns := manager.NewWatches(metrics.Registry, clock.RealClock{}, wiring.Optional()...), manager.NewTurns()
	mgr, err := manager.New(ctx, cluster, manager.Options{
		Scheme: objects, Version: build.Version, Log: logger,
		QPS: c.KubeClientQPS, Burst: c.KubeClientBurst,
		Metrics:    manager.Metrics{Port: c.MetricsPort, Profiling: c.EnableProfiling, Secure: c.MetricsSecure, CertDir: c.MetricsCertDir, Turns: turns},
		HealthPort: c.HealthProbePort,
		Lease:      manager.Lease{Disabled: c.DisableLeaderElection, Name: c.LeaderElectionName, Namespace: leaseNamespace(c), Fence: fence},
		Warmup:     !c.DisableControllerWarmup,
		Required:   wiring.Required(c.CloudProvider),
		Watches:    watches,
		Objects:    feed.Trims(), Others: feed.TrimOthers,
	})
	if err != nil {
		return err
	}
	build.Publish(metrics.Registry)
	err = wiring.Wire(ctx, wiring.Surroundings{
		Manager: mgr, Config: c, Registry: turns,
		Provider:  provider(c.CloudProvider, fence),
		PublishIn: leaseNamespace(c), Watches: watches,
		Nominator: func() (client.StatusClient, error) { return nominator(mgr) },
	})
	if err != nil {
		return err
	}
	if err := mgr.Add(giveBack{}); err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run controllers: %w", err)
	}
	logger.Info("stopped")
	return nil
}

// fenceOf returns the fence that prevents changes while another replica may
// lead, or nil without leader election.
func fenceOf(c settings.Config) *manager.Fence {
	if c.DisableLeaderElection {
		return nil
	}
	return manager.NewFence(clock.RealClock{})
}

// provider returns the constructor of the cloud provider with this name.
func provider(name string, fence *manager.Fence) func(context.Context, wiring.Supplies) (wiring.Provider, error) {
	type maker = func(context.Context, wiring.Supplies, *manager.Fence) (wiring.Provider, error)
	makers := map[string]maker{
		settings.CloudAWS:   amazon,
		settings.CloudAzure: microsoft,
		settings.CloudKWOK: func(ctx context.Context, s wiring.Supplies, _ *manager.Fence) (wiring.Provider, error) {
			return wiring.KWOK(ctx, s)
		},
	}
	return func(ctx context.Context, s wiring.Supplies) (wiring.Provider, error) {
		return makers[name](ctx, s, fence)
	}
}

// amazon makes the AWS provider, with the credentials and the region that the
// SDK finds.
func amazon(ctx context.Context, s wiring.Supplies, fence *manager.Fence) (wiring.Provider, error) {
	cluster := s.Manager.GetConfig()
	calls := &awsclient.Ledger{Clock: s.Clock}
	services, err := awsclient.Connect(ctx, manager.ReadBuild().Version, fence, awsclient.NewMetrics(s.Registry, s.Clock).Extend, calls.Extend)
	if err != nil {
		return wiring.Provider{}, err
	}
	server, err := discovery.NewDiscoveryClientForConfig(cluster)
	if err != nil {
		return wiring.Provider{}, err
	}
	authority, err := authority(cluster)
	if err != nil {
		return wiring.Provider{}, err
	}
	return wiring.AWS(ctx, wiring.Amazon{Services: services, Discovery: server, CABundle: authority, Calls: calls}, s)
}

// authority returns the certificate authority by which this process trusts the
// API server, as base64 of PEM.
func authority(cluster *rest.Config) (string, error) {
	trusted := rest.CopyConfig(cluster)
	if err := rest.LoadTLSFiles(trusted); err != nil {
		return "", fmt.Errorf("certificate authority of the API server: %w", err)
	}
	return base64.StdEncoding.EncodeToString(trusted.CAData), nil
}

// microsoft makes the provider for AKS, with the credentials that the SDK finds.
func microsoft(ctx context.Context, s wiring.Supplies, fence *manager.Fence) (wiring.Provider, error) {
	a := &s.Config.Azure
	environment, err := azureclient.Environment(a.Cloud, a.EnvironmentFile)
	if err != nil {
		return wiring.Provider{}, err
	}
	credential, err := azureclient.Credential(ctx, environment)
	if err != nil {
		return wiring.Provider{}, err
	}
	options := azureclient.Options(environment, manager.ReadBuild().Version, held(fence))
	azureclient.NewMetrics(s.Registry, s.Clock).Extend(options)
	services, err := azureclient.New(a.Subscription, credential, options)
	if err != nil {
		return wiring.Provider{}, err
	}
	server, err := discovery.NewDiscoveryClientForConfig(s.Manager.GetConfig())
	if err != nil {
		return wiring.Provider{}, err
	}
	authority, err := authority(s.Manager.GetConfig())
	if err != nil {
		return wiring.Provider{}, err
	}
	return wiring.Azure(ctx, wiring.Microsoft{
		Services: services, Discovery: server, PriceList: environment.Services[azureclient.PriceList].Endpoint, CABundle: authority,
	}, s)
}

// held returns the fence, or nothing if there is none.
func held(fence *manager.Fence) cloud.Fence {
	if fence == nil {
		return nil
	}
	return fence
}

// nominator returns a client without a rate limit, or nil if the cluster is too
// old for nominations.
func nominator(mgr ctrl.Manager) (client.StatusClient, error) {
	unlimited := rest.CopyConfig(mgr.GetConfig())
	unlimited.QPS = -1 // the controller bounds itself
	server, err := discovery.NewDiscoveryClientForConfig(unlimited)
	if err != nil {
		return nil, err
	}
	supported, release, err := nomination.Supported(server)
	if err != nil {
		return nil, err
	}
	if !supported {
		mgr.GetLogger().Info("cannot write the planned nodes to pods: this needs Kubernetes 1.35 or later", "version", release)
		return nil, nil
	}
	return client.New(unlimited, client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
}

// clusterOf returns how to reach the cluster.
func clusterOf(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		cluster, err := config.GetConfig()
		if err != nil {
			return nil, fmt.Errorf("find the cluster (set --kubeconfig or KUBECONFIG outside of one): %w", err)
		}
		return cluster, nil
	}
	if _, err := os.Stat(kubeconfig); err != nil {
		return nil, usageError{fmt.Errorf("--kubeconfig: %w", err)}
	}
	cluster, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %s: %w", kubeconfig, err)
	}
	return cluster, nil
}

func leaseNamespace(c settings.Config) string {
	if c.LeaderElectionNamespace != "" {
		return c.LeaderElectionNamespace
	}
	return c.SystemNamespace
}

// describe logs the version and the settings, and which settings have no
// effect.
func describe(logger logr.Logger, c settings.Config, build manager.Build) {
	logger.V(1).Info("version discovered", "version", build.Version, "goversion", build.GoVersion)
	for _, setting := range c.Ignored {
		logger.Info("ignoring setting", "why", setting)
	}
	if c.SchedulerConfig != nil && len(c.SchedulerConfig.PodTopologySpread.DefaultConstraints) > 0 {
		logger.Info("pods without topology spread constraints get those of scheduler-config", "constraints", len(c.SchedulerConfig.PodTopologySpread.DefaultConstraints))
	}
}
