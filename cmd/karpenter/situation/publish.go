// SPDX-License-Identifier: Apache-2.0

package situation

import (
	"context"
	"encoding/json"
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
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"karpenter/model"
	"karpenter/scenario"
	"karpenter/world"
)

// How often the Publisher looks for changes: soon while it waits for the caches,
// then every few seconds for NodePools that have got instance types or are gone, and for pauses
// of PodGroups, and so often for the rest that sold-out offerings are seldom older than a minute.
const (
	soon   = 2 * time.Second
	glance = 5 * time.Second
	period = time.Minute

	// Retries. No event asks for the next round, so that it must not be far away.
	failureMin = time.Second
	failureMax = time.Minute

	// mostShape is how long the Identity of pods of CapacityBuffers may be when not all offerings
	// fit into a ConfigMap.
	mostShape = 16 << 10
)

// Publisher is the controller offerings.publisher: it keeps the ConfigMap Name in
// Namespace up to what the leader knows. It writes only when something changed.
// All exported fields but Health are required.
type Publisher struct {
	Client    client.Client
	Live      client.Reader // reads the ConfigMap past the caches
	Namespace string
	Rules     Rules
	Policy    model.Policy
	Snapshot  func(time.Time) *model.Snapshot
	Ready     func() bool // the Snapshot holds everything there is
	Clock     clock.PassiveClock
	Health    func() Health                 // nil = it is not published
	Pauses    func() map[string]world.Pause // of PodGroups, by UID; nil = they are not published

	said    *scenario.Situation // the offerings in written; nil = none yet
	written *corev1.ConfigMap
	pools   []string // with instance types, when it was published last
	paused  map[string]world.Pause
	due     time.Time // when to look at everything again
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
		WithOptions(controller.Options{MaxConcurrentReconciles: 1, RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](failureMin, failureMax)}).
		Complete(p)
}

// Reconcile publishes what changed and returns when to look again.
func (p *Publisher) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	if !p.Ready() {
		return reconcile.Result{RequeueAfter: soon}, nil
	}
	now := p.Clock.Now()
	snapshot := p.Snapshot(now)
	pools, paused := offering(snapshot), map[string]world.Pause(nil)
	if p.Pauses != nil {
		paused = p.Pauses()
	}
	if slices.Equal(pools, p.pools) && maps.Equal(paused, p.paused) && now.Before(p.due) {
		return reconcile.Result{RequeueAfter: glance}, nil
	}
	if err := p.publish(ctx, snapshot, paused); err != nil {
		return reconcile.Result{}, err
	}
	p.pools, p.paused, p.due = pools, paused, now.Add(period)
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

func (p *Publisher) publish(ctx context.Context, snapshot *model.Snapshot, paused map[string]world.Pause) error {
	now := offerings(snapshot, p.Policy)
	want, err := p.wanted(now)
	for _, most := range []int{mostShape, 0} { // tenants may put anything into the templates of CapacityBuffers
		if err == nil {
			break
		}
		log.FromContext(ctx).Error(err, "publishing the offerings without pods of CapacityBuffers whose constraints are long", "longest", most)
		now.Snapshot.Pending = slices.DeleteFunc(now.Snapshot.Pending, func(p model.Pending) bool { return len(p.Shape.Key) > most })
		want, err = p.wanted(now)
	}
	if err != nil {
		return fmt.Errorf("publish the offerings: %w", err)
	}
	if p.Health != nil {
		health, err := json.Marshal(p.Health().settled(snapshot.Now))
		if err != nil {
			return fmt.Errorf("publish the health: %w", err)
		}
		want = want.DeepCopy()
		want.Data[healthKey] = string(health)
	}
	if len(paused) > 0 {
		pauses, err := json.Marshal(paused)
		if err != nil {
			return fmt.Errorf("publish the pauses of pod groups: %w", err)
		}
		want = want.DeepCopy()
		want.Data[pausesKey] = string(pauses)
	}
	have := &corev1.ConfigMap{}
	err = p.Live.Get(ctx, client.ObjectKeyFromObject(want), have)
	switch {
	case apierrors.IsNotFound(err):
		err = p.Client.Create(ctx, want.DeepCopy())
	case err == nil && maps.Equal(have.Data, want.Data) && reflect.DeepEqual(have.BinaryData, want.BinaryData):
		return nil
	case err == nil:
		have = have.DeepCopy()
		have.Data, have.BinaryData = maps.Clone(want.Data), maps.Clone(want.BinaryData)
		err = p.Client.Update(ctx, have)
	}
	if err != nil {
		return fmt.Errorf("publish the offerings in ConfigMap %s/%s: %w", p.Namespace, Name, err)
	}
	return nil
}

// wanted returns the ConfigMap that is to be there. To print and compress all
// offerings takes longer than all else in a minute in which nothing happens, so
// it is not done again as long as they stay the same.
func (p *Publisher) wanted(now scenario.Situation) (*corev1.ConfigMap, error) {
	if p.said != nil && same(*p.said, now) {
		return p.written, nil
	}
	written, err := Published{Rules: p.Rules, Offerings: now}.configMap(p.Namespace)
	if err != nil {
		return nil, err
	}
	p.said, p.written = &now, written
	return written, nil
}

// same reports whether two offerings say the same. Instance types are never
// changed: others take their place.
func same(a, b scenario.Situation) bool {
	pools := func(x, y model.Pool) bool { return x.Name == y.Name && slices.Equal(x.Types, y.Types) }
	return slices.EqualFunc(a.Snapshot.Pools, b.Snapshot.Pools, pools) &&
		slices.Equal(a.Snapshot.Resources, b.Snapshot.Resources) && reflect.DeepEqual(a.Snapshot.WellKnown, b.Snapshot.WellKnown) &&
		reflect.DeepEqual(a.Snapshot.Pending, b.Snapshot.Pending) && reflect.DeepEqual(a.Policy, b.Policy)
}
