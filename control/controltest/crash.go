// SPDX-License-Identifier: Apache-2.0

package controltest

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "karpenter/api/v1"
	"karpenter/cloud"
)

// death is where the process dies.
type death struct {
	writes int    // still to be made; 0 = it lives
	at     string // the last one, once made
}

// crash has the process die at a write to come.
func (c *Cluster) crash(writes string) error {
	n, err := strconv.Atoi(writes)
	if err != nil || n < 1 {
		return errors.New("want: crash NUMBER")
	}
	c.death = death{writes: n}
	return nil
}

// Crashed returns after what the process died, such as "patch-status", or ""
// if the crash ordered last has not come.
func (c *Cluster) Crashed() string { return c.death.at }

// Reconcile calls a reconciler without a transcript.
func (c *Cluster) Reconcile(name, which string) (reconcile.Result, error) {
	return c.live(func() (reconcile.Result, error) {
		return c.Reconcilers[which].Reconcile(context.Background(), reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
	})
}

// wrote notes a write and dies if it is the last one.
func (c *Cluster) wrote(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.reconciling || c.death.writes == 0 {
		return
	}
	if c.death.writes--; c.death.writes == 0 {
		c.death.at = what
		panic(dying{})
	}
}

// dying is what a process panics with to die. No reconciler recovers.
type dying struct{}

// live runs the process until it is done or dies, in which case another one
// begins.
func (c *Cluster) live(run func() (reconcile.Result, error)) (result reconcile.Result, err error) {
	c.reconciling = true
	defer func() {
		c.reconciling = false
		switch died := recover().(type) {
		case nil:
		case dying:
			result, err = reconcile.Result{}, fmt.Errorf("crashed after %s", c.death.at)
			c.begin()
		default:
			panic(died)
		}
	}()
	return run()
}

// Provider returns the cloud as a process that may die sees it.
func (c *Cluster) Provider() cloud.Provider { return &mortal{Provider: c.Cloud, c: c} }

type mortal struct {
	cloud.Provider
	c *Cluster
}

func (m *mortal) Create(ctx context.Context, claim *v1.NodeClaim) (*cloud.Machine, error) {
	machine, err := m.Provider.Create(ctx, claim)
	m.c.wrote("cloud Create")
	return machine, err
}

func (m *mortal) Delete(ctx context.Context, claim *v1.NodeClaim) error {
	err := m.Provider.Delete(ctx, claim)
	m.c.wrote("cloud Delete")
	return err
}
