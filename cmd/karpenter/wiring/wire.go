// SPDX-License-Identifier: Apache-2.0

// Package wiring makes everything the process runs and adds it to a
// controller-runtime manager. It reads no flags and no environment, and opens
// connections only through its arguments.
package wiring

import (
	"context"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	ctrl "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	autoscalingv1 "karpenter/api/autoscaling/v1"
	autoscaling "karpenter/api/autoscaling/v1beta1"
	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/api/v1alpha1"
	"karpenter/cloud"
	"karpenter/cloud/health"
	"karpenter/cloud/overlay"
	"karpenter/cloud/wrap"
	"karpenter/cmd/karpenter/config"
	"karpenter/cmd/karpenter/record"
	"karpenter/cmd/karpenter/situation"
	"karpenter/control/consistency"
	"karpenter/control/deletioncost"
	"karpenter/control/disruption"
	"karpenter/control/drift"
	"karpenter/control/expiration"
	"karpenter/control/garbage"
	"karpenter/control/hydration"
	"karpenter/control/lifecycle"
	"karpenter/control/nodepool"
	"karpenter/control/nomination"
	"karpenter/control/podevents"
	"karpenter/control/provisioning"
	"karpenter/control/reboot"
	"karpenter/control/termination"
	"karpenter/kube/catalogue"
	"karpenter/kube/convert"
	"karpenter/kube/devices"
	"karpenter/kube/events"
	"karpenter/kube/feed"
	"karpenter/kube/manager"
	"karpenter/kube/meter"
	"karpenter/kube/pods"
	"karpenter/kube/spread"
	"karpenter/kube/volumes"
	"karpenter/model"
	"karpenter/solve"
	"karpenter/world"
)

// Surroundings are the inputs from the process.
type Surroundings struct {
	Manager  ctrl.Manager
	Config   config.Config
	Registry prometheus.Registerer // of the metrics
	// Provider makes the provider the process works with.
	Provider func(context.Context, Supplies) (Provider, error)
	// Nominator returns the client that writes nominations of pods, or nil if
	// the cluster is too old for them. It is called if nominations are on.
	Nominator func() (client.StatusClient, error)
	// Workers bounds how many reconciles one controller runs at once; 0 leaves
	// that to the Config.
	Workers int
	// PublishIn is the namespace in which the leader publishes offerings and keeps its
	// record; "" = nowhere.
	PublishIn string
	// Watches are those of the manager, to be reported; nil = they are not.
	Watches *manager.Watches
	// Planner makes the plans; nil = package solve.
	Planner Planner
	// Orderly creates NodeClaims one after the other, so that a run can be
	// repeated: the order of equal NodeClaims would differ otherwise.
	Orderly bool
}

// Optional returns the kinds of objects that the process does without where the API server
// does not serve them, or does not let it read them.
func Optional() []client.Object {
	return append(feed.Optional(), &v1alpha1.NodeOverlay{}, &autoscaling.CapacityBuffer{}, &autoscalingv1.ProvisioningRequest{}, &corev1.PodTemplate{}, &appsv1.Deployment{})
}

// Planner makes plans: Place for pending pods only, and Decide also for the
// disruption of nodes.
type Planner interface {
	Place(*model.Snapshot, model.Policy) *model.Plan
	Decide(*model.Snapshot, model.Policy) *model.Plan
}

// wiring is what the controllers share.
type wiring struct {
	Surroundings
	mgr      ctrl.Manager
	config   config.Config
	clock    clock.PassiveClock
	provider Provider
	overlays *overlay.Store // nil = NodeOverlays are off
	metered  func(controller string) cloud.Provider
	convert  convert.Converter
	world    *world.World
	placing  solve.Planner // of pods
	draining solve.Planner // of nodes, too; a planner of its own, so that pending pods need not wait for it
	synced   func() bool   // the world knows everything that existed at the start
	recorder events.Recorder
	counters *meter.Disruptions

	ailments  *health.Policies // nil = the disruption loop repairs no nodes
	unhealthy *meter.Unhealthy
	waits     *meter.Pods
	devices   *devices.Store   // nil = dynamic resource allocation is off
	record    *record.Recorder // nil = there is no record
	hooks     []lifecycle.Hook // of registration
}

// Wire makes everything the process runs and adds it to the manager.
func Wire(ctx context.Context, s Surroundings) error {
	mgr := s.Manager
	w := &wiring{
		Surroundings: s, mgr: mgr, config: s.Config, clock: clock.RealClock{},
		overlays: newOverlays(s.Config.Gates.NodeOverlay),
	}
	w.recorder = events.NewPublisher(mgr.GetEventRecorderFor(events.Source), w.clock)
	w.counters = meter.NewDisruptions(w.Registry, mgr.GetClient())
	w.unhealthy = meter.NewUnhealthy(w.Registry)
	var err error
	if w.provider, err = s.Provider(ctx, w.supplies()); err != nil {
		return err
	}
	w.hooks = slices.Clone(w.provider.Hooks)
	calls := wrap.NewMetrics(s.Registry)
	w.metered = func(controller string) cloud.Provider {
		return wrap.Meter(w.provider.Provider, calls, w.clock, controller)
	}
	axis := model.NewAxis()
	w.convert = convert.Converter{
		Axis:           axis,
		Labels:         v1.DefaultLabels().With(w.provider.Labels),
		Manages:        func(ref *v1.NodeClassReference) bool { return cloud.Manages(w.provider, ref) },
		StaticCapacity: s.Config.Gates.StaticCapacity,
		DeletionCosts:  s.Config.Gates.PodDeletionCostManagement,
	}
	if w.ailments, err = w.policies(); err != nil {
		return err
	}
	if w.ailments != nil {
		w.convert.Sick = w.ailments.Sick
	}
	if w.overlays != nil {
		w.convert.Overlaid = w.overlays.Applied
	}
	w.world = world.New(axis, w.convert.WellKnown())
	w.waits = meter.NewPods(w.observed(), w.clock, func(pool string) bool { return registers(ctx, mgr.GetClient(), pool) })

	types := &catalogue.Catalogue{
		Reader: mgr.GetClient(), Provider: w.types(), Axis: axis, World: w.world, Extras: w.extras, Features: w.features, Failed: catalogue.Failures(w.Registry),
	}
	if w.PublishIn != "" {
		w.record = &record.Recorder{
			Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Namespace: w.PublishIn,
			Snapshot: w.world.Snapshot, Ready: func() bool { return w.synced() }, Clock: w.clock,
		}
	}
	provisioner := w.provisioner(types)
	w.world.OnPending(provisioner.Trigger)
	fed, err := feed.Start(ctx, mgr.GetCache(), w.world, w.convert, w.sources())
	if err != nil {
		return err
	}
	fed.RegisterMetrics(w.Registry, w.world, w.clock)
	if w.Watches != nil {
		if err := mgr.Add(fed); err != nil {
			return err
		}
	}
	w.synced, w.devices = fed.HasSynced, fed.Devices
	if w.PublishIn != "" {
		pauses := &situation.Pauses{Live: mgr.GetAPIReader(), Namespace: w.PublishIn, Restore: w.world.RestorePauses, Synced: fed.HasSynced}
		if err := mgr.Add(pauses); err != nil {
			return err
		}
		w.synced = func() bool { return fed.HasSynced() && pauses.Read() }
	}
	provisioner.Ready = w.synced
	for _, register := range []func() error{
		func() error { return mgr.Add(w.waits) },
		func() error { return w.observe(ctx) },
		func() error { return w.buffers(provisioner) },
		func() error { return w.requests(provisioner) },
		func() error { return provisioner.Register(mgr) },
		func() error { return types.Register(mgr) },
		func() error { return w.provider.Register(mgr) },
		func() error { return w.overlaying(provisioner) },
		func() error { return w.nominations(provisioner) },
		func() error { return w.static(provisioner) },
		func() error { return w.disruption(provisioner, types) },
		w.claims, w.nodes, w.deletionCosts, w.repairs, w.obstacles, w.pools, w.publication,
		func() error { return w.recording(ctx) },
	} {
		if err := register(); err != nil {
			return err
		}
	}
	return nil
}

func (w *wiring) decide(s *model.Snapshot) *model.Plan {
	if w.Planner != nil {
		return w.Planner.Decide(s, w.policy())
	}
	return w.draining.Decide(s, w.policy())
}

func (w *wiring) place(s *model.Snapshot) *model.Plan {
	if w.Planner != nil {
		return w.Planner.Place(s, w.policy())
	}
	return w.placing.Place(s, w.policy())
}

// policy is how plans are made.
func (w *wiring) policy() model.Policy {
	p := model.DefaultPolicy()
	p.IgnorePreferences = w.config.PreferencePolicy == "Ignore"
	p.RelaxMinValues = w.config.MinValuesPolicy == "BestEffort"
	p.ReservedCapacity = w.config.Gates.ReservedCapacity
	p.SpotToSpot = w.config.Gates.SpotToSpotConsolidation
	p.PreferencePremium, p.PreferenceAllowance = w.config.PreferencePremium, w.config.PreferenceAllowance
	p.MaxSpotPoolShare, p.NodeCountPremium = w.config.MaxSpotPoolShare, w.config.NodeCountPremium
	p.Payback, p.Hysteresis = w.config.ConsolidationPaybackTime, w.config.ConsolidationSavingsThreshold
	p.RebalancePremium = w.config.RebalancePremium
	p.TerminateFirstDrift = w.config.Gates.TerminateFirstDrift
	p.TerminateFirstRepair = w.config.Gates.TerminateFirstRepair
	return p
}

// sources are what pods are converted with.
func (w *wiring) sources() feed.Sources {
	s := feed.Sources{Volumes: volumes.New(w.convert.Labels, w.provider.Volumes), Waits: w.waits}
	if c := w.config.SchedulerConfig; c != nil && len(c.PodTopologySpread.DefaultConstraints) > 0 {
		s.Spread = spread.New(c.PodTopologySpread.DefaultConstraints)
	}
	if w.Watches != nil {
		s.Unread = w.Watches.Unread
	}
	if !w.config.IgnoreDRARequests {
		s.Devices = devices.New(w.convert.Labels)
	}
	return s
}

// provisioner creates the controller provisioner. The caller sets its Ready.
func (w *wiring) provisioner(types *catalogue.Catalogue) *provisioning.Provisioner {
	p := provisioning.New(provisioning.Window{Idle: w.config.BatchIdleDuration, Most: w.config.BatchMaxDuration})
	p.Client = w.mgr.GetClient()
	p.Live = w.mgr.GetAPIReader()
	p.Parallel = w.creations()
	p.World = w.world
	p.Catalogue = types
	p.Convert = w.convert
	p.Decide = w.place
	p.Events = w.recorder
	p.Clock = w.clock
	p.Metrics = provisioning.NewMetrics(w.Registry)
	p.Decided = w.waits.Decided
	if w.record != nil {
		p.Launched = w.record.Launched
	}
	return p
}

// nominations adds the controller that nominates nodes for pods, unless that is
// off or the cluster is too old for it.
func (w *wiring) nominations(p *provisioning.Provisioner) error {
	if !w.config.NominatePods {
		return nil
	}
	writer, err := w.Nominator()
	if err != nil || writer == nil {
		return err
	}
	r := nomination.New(w.mgr.GetClient(), writer, w.world)
	p.Follow = r.Follow
	w.hooks = append(w.hooks, r)
	return r.Register(w.mgr)
}

// published returns what drivers have published, nil if that does not count.
func (w *wiring) published() lifecycle.Devices {
	if w.devices == nil {
		return nil
	}
	return w.devices
}

// claims adds the controllers of NodeClaims.
func (w *wiring) claims() error {
	health := &nodepool.Health{}
	client := w.mgr.GetClient()
	workers := w.parallel(1000, 5000)
	qps, burst := manager.Bucket(10, 1000, workers)
	for _, register := range []func() error{
		func() error {
			return (&lifecycle.Reconciler{
				Client: client, Provider: w.metered("nodeclaim.lifecycle"), Clock: w.clock, Recorder: w.recorder,
				Metrics: lifecycle.NewMetrics(w.Registry), Disruptions: w.counters, Health: health,
				Hooks: w.hooks, Waiting: w.waiting, Devices: w.published(),
			}).Register(w.mgr, controller.Options{
				MaxConcurrentReconciles: workers,
				RateLimiter:             manager.Limiter[reconcile.Request](manager.Backoff{First: time.Second, Most: time.Minute}, qps, burst),
			})
		},
		func() error {
			return (&nodepool.RegistrationHealth{Client: client, Provider: w.provider, Clock: w.clock, Health: health}).Register(w.mgr, w.many())
		},
		func() error {
			return (&drift.Rollout{
				Client: client, Provider: w.provider, Clock: w.clock, Labels: w.convert.Labels,
				Recorder: w.recorder, Metrics: drift.NewMetrics(w.Registry),
			}).Register(w.mgr, w.many())
		},
		func() error {
			return (&expiration.Reconciler{
				Client: client, Provider: w.provider, Clock: w.clock, Disruptions: w.counters,
			}).Register(w.mgr, w.many())
		},
		func() error {
			return (&garbage.Reconciler{
				Client: client, Live: w.mgr.GetAPIReader(), Provider: w.metered("nodeclaim.garbagecollection"),
				Clock: w.clock, Disruptions: w.counters, EarlyRounds: w.provider.EarlyCollections,
			}).Register(w.mgr, controller.Options{
				RateLimiter: manager.Limiter[reconcile.Request](manager.Backoff{First: time.Second, Most: time.Minute}, 10, 100),
			})
		},
		func() error {
			return (&podevents.Reconciler{Client: client, Clock: w.clock, Managed: w.managed}).Register(w.mgr, w.many())
		},
		func() error {
			return (&consistency.Reconciler{
				Client: client, Provider: w.provider, Clock: w.clock, Recorder: w.recorder, FewerDevices: w.world.FewerDevices,
			}).Register(w.mgr, w.many())
		},
		func() error {
			return (&hydration.Claims{Client: client, Provider: w.provider}).Register(w.mgr, w.many())
		},
		func() error {
			return (&hydration.Nodes{Client: client, Provider: w.provider}).Register(w.mgr, w.many())
		},
	} {
		if err := register(); err != nil {
			return err
		}
	}
	return nil
}

// nodes adds the controllers that remove Nodes from the cluster.
func (w *wiring) nodes() error {
	workers := w.parallel(100, 5000)
	counts := termination.NewMetrics(w.Registry)
	queue := termination.NewQueue(w.mgr.GetClient(), w.recorder, w.clock, counts)
	queue.Surge = termination.Surge{Live: w.mgr.GetAPIReader(), Timeout: w.config.SurgeFirstTimeout}
	if w.config.EvictionRequests {
		queue.Requests = termination.Requests{Live: w.mgr.GetAPIReader()}
	}
	if w.record != nil {
		queue.Evicted = func(p *corev1.Pod) {
			if !pods.DaemonSet(p) { // those end with their node
				w.record.Evicted(p.Spec.NodeName)
			}
		}
	}
	if err := queue.Register(w.mgr, workers); err != nil {
		return err
	}
	const reboots = 10
	err := (&reboot.Reconciler{
		Client: w.mgr.GetClient(), Provider: w.metered("nodeclaim.reboot"), Clock: w.clock, Recorder: w.recorder,
		Metrics: reboot.NewMetrics(w.Registry), Evictions: queue,
	}).Register(w.mgr, controller.Options{MaxConcurrentReconciles: reboots})
	if err != nil {
		return err
	}
	return (&termination.Reconciler{
		Client: w.mgr.GetClient(), Live: w.mgr.GetAPIReader(), Machines: w.metered("node.termination"), Evictions: queue,
		Events: w.recorder, Clock: w.clock, Metrics: counts,
	}).Register(w.mgr, workers)
}

// pools adds the controllers of NodePools.
func (w *wiring) pools() error {
	const validators = 10
	client := w.mgr.GetClient()
	for _, register := range []func() error{
		func() error {
			return (&nodepool.Hash{Client: client, Provider: w.provider}).Register(w.mgr, w.many())
		},
		func() error {
			return (&nodepool.Counter{
				Client: client, Provider: w.provider, Usage: w.world, Axis: w.convert.Axis, Synced: w.synced,
				Metrics: nodepool.NewMetrics(w.observed()),
			}).Register(w.mgr, w.many())
		},
		func() error {
			return (&nodepool.Readiness{Client: client, Provider: w.provider, Clock: w.clock}).Register(w.mgr, w.many())
		},
		func() error {
			return (&nodepool.Validation{
				Client: client, Provider: w.provider, Clock: w.clock, Labels: w.convert.Labels,
			}).Register(w.mgr, controller.Options{MaxConcurrentReconciles: validators})
		},
	} {
		if err := register(); err != nil {
			return err
		}
	}
	return nil
}

// disruption adds the controllers that disrupt nodes voluntarily.
func (w *wiring) disruption(provisioner *provisioning.Provisioner, types *catalogue.Catalogue) error {
	err := (&drift.Reconciler{
		Client: w.mgr.GetClient(), Provider: w.metered("nodeclaim.disruption"), Clock: w.clock, Labels: w.convert.Labels,
	}).Register(w.mgr, w.many())
	if err != nil {
		return err
	}
	var repairs *disruption.Repairs
	if w.ailments != nil {
		repairs = &disruption.Repairs{Policies: w.ailments, Counts: w.unhealthy}
	}
	loop := &disruption.Loop{
		Repairs: repairs,
		Client:  w.mgr.GetClient(), World: w.world, Placer: provisioner, Catalogue: types, Decide: w.decide, Parallel: w.creations(), Ready: w.synced,
		Events: w.recorder, Clock: w.clock, Metrics: disruption.NewMetrics(w.Registry), Disruptions: w.counters,
	}
	if w.record != nil {
		loop.Started = w.record.Started
	}
	return loop.Register(w.mgr)
}

// publication adds the controller that publishes offerings for commands, if
// PublishIn is set.
func (w *wiring) publication() error {
	if w.PublishIn == "" {
		return nil
	}
	rules := situation.Rules{Labels: w.convert.Labels, Volumes: w.provider.Volumes, StaticCapacity: w.convert.StaticCapacity, Devices: w.devices != nil}
	for _, kind := range w.provider.NodeClasses() {
		rules.NodeClasses = append(rules.NodeClasses, kind.GroupKind())
	}
	if c := w.config.SchedulerConfig; c != nil {
		rules.Constraints = c.PodTopologySpread.DefaultConstraints
	}
	return (&situation.Publisher{
		Client: w.mgr.GetClient(), Live: w.mgr.GetAPIReader(), Namespace: w.PublishIn,
		Rules: rules, Policy: w.policy(), Snapshot: w.world.Snapshot, Ready: w.synced, Clock: w.clock, Health: w.health,
		Pauses: w.world.Pauses,
	}).Register(w.mgr)
}

// recording adds the controller that keeps the record of decisions and costs, if
// PublishIn is set.
func (w *wiring) recording(ctx context.Context) error {
	if w.record == nil {
		return nil
	}
	return w.record.Register(ctx, w.mgr)
}

// health reports what does not work in this process.
func (w *wiring) health() situation.Health {
	out := situation.Health{Cloud: w.config.CloudProvider}
	if w.provider.Health != nil {
		out = w.provider.Health()
	}
	if w.Watches == nil {
		return out
	}
	for _, d := range w.Watches.Down() {
		out.Watches = append(out.Watches, situation.Failing{What: d.Kind, Since: d.Since, Refused: d.Refused, Optional: d.Optional})
	}
	return out
}

// deletionCosts adds the controller that writes pod deletion costs, if its gate
// is on.
func (w *wiring) deletionCosts() error {
	if !w.config.Gates.PodDeletionCostManagement {
		return nil
	}
	return (&deletioncost.Reconciler{
		Client: w.mgr.GetClient(), Snapshot: w.world.Snapshot, Ready: w.synced, Clock: w.clock, Metrics: deletioncost.NewMetrics(w.Registry),
	}).Register(w.mgr)
}

// waiting returns the pods that are planned on the claim and have no node.
func (w *wiring) waiting(claim string) []*corev1.Pod {
	var out []*corev1.Pod
	for _, n := range w.world.PlannedOn(claim) {
		out = append(out, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: n.Namespace, Name: n.Name, UID: types.UID(n.UID)}})
	}
	return out
}

func (w *wiring) managed(claim *v1.NodeClaim) bool {
	return cloud.Manages(w.provider, claim.Spec.NodeClassRef)
}

// registers reports whether instances of the NodePool are known to become
// nodes.
func registers(ctx context.Context, reader client.Reader, name string) bool {
	pool := &v1.NodePool{}
	err := reader.Get(ctx, client.ObjectKey{Name: name}, pool)
	return err == nil && conditions.IsTrue(pool, v1.NodeRegistrationHealthyCondition)
}

// parallel returns how many reconciles a controller runs at once, between least
// and most, in proportion to the CPU request of the process.
func (w *wiring) parallel(least, most int) int {
	n := manager.Parallel(manager.Cores(w.config.CPURequests), least, most)
	if w.Workers > 0 {
		n = min(n, w.Workers)
	}
	return n
}

// creations is how many NodeClaims one controller creates at once; 0 = many.
func (w *wiring) creations() int {
	if w.Orderly {
		return 1
	}
	return 0
}

// many returns the options of controllers that reconcile many objects in
// parallel.
func (w *wiring) many() controller.Options {
	return controller.Options{MaxConcurrentReconciles: w.parallel(10, 1000)}
}
