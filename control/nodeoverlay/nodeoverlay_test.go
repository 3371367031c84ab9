// SPDX-License-Identifier: Apache-2.0

package nodeoverlay_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "karpenter/api/v1"
	"karpenter/cloud/overlay"
	"karpenter/cloud/wrap"
	"karpenter/control/controltest"
	"karpenter/control/nodeoverlay"
)

func TestNodeOverlay(t *testing.T) {
	controltest.Run(t, "testdata/nodeoverlay", setup)
}

// setup adds the reconciler, and these commands:
//
//	fail-pool p    let the instance types of pool p be unavailable
//	heal-pool p    end that
//	restart        forget every evaluation
//
// When an evaluation changes something, the types of each pool are printed as
// everyone else sees them.
func setup(c *controltest.Cluster) {
	store := &overlay.Store{}
	c.Reconcilers[""] = &nodeoverlay.Reconciler{
		Client: c.Client, Provider: c.Cloud, Store: store, Labels: v1.DefaultLabels(), Clock: c.Clock,
		Changed: func() { show(c, store) },
	}
	c.Commands["fail-pool"] = func(words []string) error { c.Cloud.FailPool(words[0], errors.New("no such class")); return nil }
	c.Commands["heal-pool"] = func(words []string) error { c.Cloud.FailPool(words[0], nil); return nil }
	c.Commands["restart"] = func([]string) error { *store = overlay.Store{}; return nil }
}

// show tells what the pools are offered now.
func show(c *controltest.Cluster, store *overlay.Store) {
	ctx := context.Background()
	pools := &v1.NodePoolList{}
	if err := c.Client.List(ctx, pools); err != nil {
		panic(err)
	}
	for i := range pools.Items {
		types, err := wrap.Overlay(c.Cloud, store).InstanceTypes(ctx, &pools.Items[i])
		if err != nil {
			c.Tell("pool %s is offered nothing: %v", pools.Items[i].Name, err)
			continue
		}
		var texts []string
		for _, t := range types {
			text := fmt.Sprintf("%s $%v", t.Name, t.Offerings[0].Price.Dollars())
			if fuse := t.Capacity["fuse"]; !fuse.IsZero() {
				text += " fuse=" + fuse.String()
			}
			texts = append(texts, text)
		}
		c.Tell("pool %s is offered %s", pools.Items[i].Name, strings.Join(texts, ", "))
	}
}

func TestRegister(t *testing.T) {
	c := controltest.New(t)
	setup(c)
	c.Register(t)
}

// A reconcile that is cut short returns an error and changes nothing.
func TestCancelled(t *testing.T) {
	c := controltest.New(t)
	setup(c)
	if _, err := c.Do("pool p\noverlay o {spec: {price: \"5\"}}"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Reconcilers[""].Reconcile(ctx, reconcile.Request{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that the context was cancelled", err)
	}
	out, err := c.Do("show overlay/o [")
	if err != nil || strings.Contains(out, "ValidationSucceeded") {
		t.Errorf("%v, %s", err, out)
	}
}
