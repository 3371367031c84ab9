// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"karpenter/kube/events"
	"karpenter/kube/optional"
	"karpenter/kube/sanitize"
)

const (
	// stopTimeout is how long running reconciles have to return when the process is asked to
	// stop: on a starved processor they need seconds, and a lease that is not released is
	// held for as long.
	stopTimeout = 15 * time.Second

	// syncTimeout is how long a controller may take to queue all objects there are, before the process
	// ends. It begins again then, and takes as long again: with 100,000 pods and a small part of
	// a core, the default of 2 minutes is not enough.
	syncTimeout = 30 * time.Minute

	// inClusterNamespace is where a pod finds its namespace.
	inClusterNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
	// outsideNamespace holds the lease of a process that runs outside of any
	// cluster.
	outsideNamespace = "kube-system"
)

// Options is what a manager is made with.
type Options struct {
	Scheme  *runtime.Scheme
	Version string // shown to the API server
	Log     logr.Logger

	QPS, Burst int // of requests to the API server

	Metrics    Metrics
	HealthPort int // 0 = not served

	Lease  Lease
	Warmup bool // fill queues before the lease is won

	// Required are the custom kinds that the process needs, all cluster-wide. If a CRD is missing,
	// the process logs which, is not ready, and starts its controllers when the CRD is there.
	Required []client.Object
	// Watches tracks the watches of the informers, and knows which kinds are optional. Nothing
	// waits for optional kinds. May be nil.
	Watches *Watches

	// Objects configures the caches of the kinds that it names. May be nil.
	Objects map[client.Object]cache.ByObject
	// Others transforms objects of other kinds before caches keep them. Nil
	// drops metadata.managedFields.
	Others toolscache.TransformFunc
}

// Lease configures leader election.
type Lease struct {
	Disabled  bool
	Name      string
	Namespace string // "" = that of the pod; kube-system outside of a cluster
	// Fence opens when the lease is won and closes when it is lost. While it is
	// closed, the manager's clients cannot write. May be nil.
	Fence *Fence
}

// New returns a manager for the cluster, with probes and the field indexes that
// the controllers read. When its Start returns, the lease is released, and the
// process must exit.
func New(ctx context.Context, cluster *rest.Config, o Options) (manager.Manager, error) {
	config := rest.CopyConfig(cluster)
	config.UserAgent = "karpenter/" + o.Version
	sanitized, err := sanitize.Wrap()
	if err != nil {
		return nil, err
	}
	config.Wrap(sanitized)              // before anything is decoded
	election := rest.CopyConfig(config) // the lease must not wait behind the requests of controllers
	config.QPS, config.Burst = float32(o.QPS), o.Burst
	served, err := o.Metrics.options(o.Scheme)
	if err != nil {
		return nil, err
	}
	needed, err := requiredKinds(o.Required, o.Scheme)
	if err != nil {
		return nil, err
	}
	settings := options(o)
	settings.Metrics = served
	checks := map[string]healthz.Checker{"readyz": healthz.Ping}
	newCache := cache.New
	settings.NewCache = func(config *rest.Config, c cache.Options) (cache.Cache, error) {
		c.Mapper = needed.mapper(c.Mapper)
		return newCache(config, c)
	}
	if o.Watches != nil {
		settings.Cache.NewInformer = o.Watches.informer
		newCache = optional.NewCache(o.Watches.optional, o.Watches.Unread)
		checks["watches"] = o.Watches.work()
	}
	var mgr manager.Manager
	if !o.Lease.Disabled {
		settings.LeaderElectionResourceLockInterface, err = newLock(election, o.Lease, func() resourcelock.EventRecorder {
			return mgr.GetEventRecorderFor(events.Source)
		})
		if err != nil {
			return nil, err
		}
		config.Wrap(o.Lease.Fence.guard)
	}
	mgr, err = manager.New(config, settings)
	if err != nil {
		return nil, fmt.Errorf("make manager: %w", err)
	}
	if err := AddIndexes(log.IntoContext(ctx, o.Log), mgr.GetFieldIndexer()); err != nil {
		return nil, err
	}
	// Informers that are there before the start are waited for, however long a CRD is missing. Others
	// end the process after a while.
	for _, kind := range o.Required {
		if _, err := mgr.GetCache().GetInformer(ctx, kind, cache.BlockUntilSynced(false)); err != nil {
			return nil, fmt.Errorf("informer for %T: %w", kind, err)
		}
	}
	if err := mgr.AddHealthzCheck("healthz", healthz.Ping); err != nil {
		return nil, err
	}
	checks["manager"], checks["crd"] = cachesSynced(mgr.GetCache()), needed.served(mgr.GetRESTMapper())
	for name, check := range checks {
		if err := mgr.AddReadyzCheck(name, check); err != nil {
			return nil, err
		}
	}
	return mgr, nil
}

func options(o Options) manager.Options {
	timeout, duration, deadline, period := stopTimeout, leaseDuration, renewDeadline, retryPeriod
	others := o.Others
	if others == nil {
		others = cache.TransformStripManagedFields()
	}
	return manager.Options{
		Scheme: o.Scheme,
		Logger: o.Log,
		Cache: cache.Options{
			ByObject:         o.Objects,
			DefaultTransform: others,

			DefaultWatchErrorHandler: watchFailed,
		},
		Controller:                    config.Controller{EnableWarmup: &o.Warmup, CacheSyncTimeout: syncTimeout},
		LeaderElection:                !o.Lease.Disabled,
		LeaderElectionID:              o.Lease.Name,
		LeaseDuration:                 &duration,
		RenewDeadline:                 &deadline,
		RetryPeriod:                   &period,
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       &timeout,
		HealthProbeBindAddress:        address(o.HealthPort),
	}
}

// namespace returns where the lease is; the file has the namespace of the pod.
func (l Lease) namespace(file string) (string, error) {
	if l.Namespace != "" {
		return l.Namespace, nil
	}
	own, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return outsideNamespace, nil
	case err != nil:
		return "", fmt.Errorf("namespace of the lease: %w", err)
	}
	return strings.TrimSpace(string(own)), nil
}

// address returns what controller-runtime takes for the port; it takes "0" for
// not serving.
func address(port int) string {
	if port == 0 {
		return "0"
	}
	return ":" + strconv.Itoa(port)
}
