package situation

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"karpenter/model"
)

// How often the Publisher looks for changes: soon while it waits for the caches,
// then every few seconds for NodePools that have got instance types or are gone, and
// so often for the rest that sold-out offerings are seldom older than a minute.
const (
	soon   = 2 * time.Second
	glance = 5 * time.Second
	period = time.Minute
)

// Publisher is the controller offerings.publisher: it keeps the ConfigMap Name in
// Namespace up to what the leader knows. It writes only when something changed.
// All exported fields are required.
type Publisher struct {
	Client    client.Client
	Live      client.Reader // reads the ConfigMap past the caches
	Namespace string
	Rules     Rules
	Policy    model.Policy
	Snapshot  func(time.Time) *model.Snapshot
	Ready     func() bool // the Snapshot holds everything there is
	Clock     clock.PassiveClock

	pools []string  // with instance types, when it was published last
	due   time.Time // when to look at everything again
}

// Register adds the controller to the manager.
func (p *Publisher) Register(mgr manager.Manager) error {
	p.Rules.Version = version
	start := source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(reconcile.Request{})
		return nil
	})
	return builder.ControllerManagedBy(mgr).
		Named("offerings.publisher").
		WatchesRawSource(start).
		WithOptions(controller.Options{MaxConcurrentReconciles: 1}).
		Complete(p)
}

// Reconcile publishes what changed and returns when to look again.
func (p *Publisher) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	if !p.Ready() {
		return reconcile.Result{RequeueAfter: soon}, nil
	}
	now := p.Clock.Now()
	snapshot := p.Snapshot(now)
	pools := offering(snapshot)
	if slices.Equal(pools, p.pools) && now.Before(p.due) {
		return reconcile.Result{RequeueAfter: glance}, nil
	}
	if err := p.publish(ctx, snapshot); err != nil {
		return reconcile.Result{}, err
	}
	p.pools, p.due = pools, now.Add(period)
	if len(pools) == 0 {
		return reconcile.Result{RequeueAfter: soon}, nil
	}
	return reconcile.Result{RequeueAfter: glance}, nil
}

// offering returns the names of the NodePools that have instance types.
func offering(s *model.Snapshot) []string {
	var out []string
	for i := range s.Pools {
		if len(s.Pools[i].Types) > 0 {
			out = append(out, s.Pools[i].Name)
		}
	}
	return out
}

func (p *Publisher) publish(ctx context.Context, snapshot *model.Snapshot) error {
	want, err := Published{p.Rules, offerings(snapshot, p.Policy)}.configMap(p.Namespace)
	if err != nil {
		return reconcile.TerminalError(fmt.Errorf("publish the offerings: %w", err))
	}
	have := &corev1.ConfigMap{}
	err = p.Live.Get(ctx, client.ObjectKeyFromObject(want), have)
	switch {
	case apierrors.IsNotFound(err):
		err = p.Client.Create(ctx, want)
	case err == nil && maps.Equal(have.Data, want.Data) && reflect.DeepEqual(have.BinaryData, want.BinaryData):
		return nil
	case err == nil:
		have = have.DeepCopy()
		have.Data, have.BinaryData = want.Data, want.BinaryData
		err = p.Client.Update(ctx, have)
	}
	if err != nil {
		return fmt.Errorf("publish the offerings in ConfigMap %s/%s: %w", p.Namespace, Name, err)
	}
	return nil
}
