// SPDX-License-Identifier: Apache-2.0

package actors

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/sim/script"
	"karpenter/sim/simcloud"
	"karpenter/sim/store"
)

// Config is what the actors work with.
type Config struct {
	Store   *store.Store
	Cloud   *simcloud.Cloud
	Rand    *rand.Rand
	Script  *script.Script
	Faults  *script.Faults
	Started time.Time
	Steps   func() int // how many steps the run has made
	Calm    bool       // the scheduler goes by how empty nodes are, as it does in real clusters; else in half the runs
	// Strays, if not nil, is given the pods that the scheduler puts neither where
	// they are nominated nor on the emptiest node that takes them.
	Strays map[types.UID]bool
}

// Actor is one of them. It is package sim's Actor.
type Actor struct {
	*Config
	name   string
	client client.Client
	looks  []func(*Actor, *choice)
	fleet  *fleet
	wake   time.Time
	now    time.Time
}

// New returns the actors of a cluster that starts with the script's Objects.
// Those that seldom have something to do are one, so that fewer steps are in
// vain.
func New(c Config) []*Actor {
	users, loads, kubelets, lifecycle := newUsers(c.Script), newWorkloads(), newKubelets(), newLifecycle()
	shared := &fleet{}
	var out []*Actor
	for _, a := range []struct {
		name  string
		looks []func(*Actor, *choice)
	}{
		{"workloads", []func(*Actor, *choice){loads.look}},
		{"scheduler", []func(*Actor, *choice){newScheduler().look}},
		{"kubelets", []func(*Actor, *choice){kubelets.look}},
		{"cluster", []func(*Actor, *choice){users.look, newMarket().look, lifecycle.look, collect, countBudgets}},
	} {
		out = append(out, &Actor{Config: &c, name: a.name, client: c.Store.Client(a.name), looks: a.looks, fleet: shared})
	}
	return out
}

// Name implements sim.Actor.
func (a *Actor) Name() string { return a.name }

// Wake implements sim.Actor.
func (a *Actor) Wake() time.Time { return a.wake }

// Step implements sim.Actor.
func (a *Actor) Step(ctx context.Context) (bool, error) {
	a.wake, a.now = time.Time{}, time.Now()
	c := &choice{rand: a.Rand}
	for _, look := range a.looks {
		look(a, c)
	}
	if c.do == nil {
		return false, nil
	}
	return true, c.do(ctx)
}

// hindered reports whether users have that done to the pool or workload now; if
// so, the actor wakes when it is over.
func (a *Actor) hindered(do, name string) bool {
	for i := range a.Script.Events {
		if e := &a.Script.Events[i]; e.Lasts(do, name, a.now.Sub(a.Started)) {
			a.due(a.Started.Add(e.At.After + e.For))
			return true
		}
	}
	return false
}

// over reports whether the run is over and what follows is rest.
func (a *Actor) over() bool { return a.now.Sub(a.Started) >= a.Script.Run }

// due reports whether the moment has come; if not, the actor will wake then.
func (a *Actor) due(at time.Time) bool {
	if !at.After(a.now) {
		return true
	}
	if a.wake.IsZero() || at.Before(a.wake) {
		a.wake = at
	}
	return false
}

// choice draws one of the things offered to it, each as likely as any other.
type choice struct {
	rand *rand.Rand
	n    int
	do   func(context.Context) error
}

func (c *choice) offer(do func(context.Context) error) {
	c.n++
	if c.rand.IntN(c.n) == 0 {
		c.do = do
	}
}

// update writes the object without its status.
func (a *Actor) update(o client.Object) func(context.Context) error {
	return func(ctx context.Context) error { return a.client.Update(ctx, o) }
}

// status writes the status of the object.
func (a *Actor) status(o client.Object) func(context.Context) error {
	return func(ctx context.Context) error { return a.client.Status().Update(ctx, o) }
}

// remove deletes the stored object, with its grace.
func (a *Actor) remove(o client.Object) func(context.Context) error {
	uid := o.GetUID()
	return func(ctx context.Context) error {
		return a.client.Delete(ctx, o.DeepCopyObject().(client.Object), client.Preconditions{UID: &uid})
	}
}

// kill deletes the stored object at once.
func (a *Actor) kill(o client.Object) func(context.Context) error {
	uid := o.GetUID()
	return func(ctx context.Context) error {
		return a.client.Delete(ctx, o.DeepCopyObject().(client.Object), client.Preconditions{UID: &uid}, client.GracePeriodSeconds(0))
	}
}

// drawn remembers a duration per object, drawn when it is first asked for.
type drawn map[types.UID]time.Duration

// of returns the object's duration, between least and most.
func (d drawn) of(r *rand.Rand, uid types.UID, least, most time.Duration) time.Duration {
	out, ok := d[uid]
	if !ok {
		out = least + time.Duration(r.Int64N(int64(most-least)+1))
		d[uid] = out
	}
	return out
}

// fleet remembers the instances that run for as long as nothing changes in the
// cloud.
type fleet struct {
	version int64
	runs    []simcloud.Machine
}

// machines returns those that run. They are not to be modified.
func (a *Actor) machines() []simcloud.Machine {
	if v := a.Cloud.Version(); v != a.fleet.version || a.fleet.runs == nil {
		a.fleet.version = v
		a.fleet.runs = slices.DeleteFunc(a.Cloud.Machines(), func(m simcloud.Machine) bool { return !m.Runs() })
	}
	return a.fleet.runs
}
