// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"karpenter/api/autoscaling/v1beta1"
	v1 "karpenter/api/v1"
)

// View is a watched picture of what a test looks at: pods, nodes, claims,
// pools, buffers and events.
type View struct {
	t       testing.TB
	cache   ctrlcache.Cache
	changed chan struct{}
	every   []func()
}

// Watch starts a view that lasts until the test ends. Each function of every
// is called after every change, one at a time while Until waits, for laws that
// must hold throughout.
func (c *Cluster) Watch(t testing.TB, every ...func(*View)) *View {
	t.Helper()
	log.SetLogger(logr.Discard()) // controller-runtime complains of none otherwise
	store, err := ctrlcache.New(c.Config, ctrlcache.Options{Scheme: c.Client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	v := &View{t: t, cache: store, changed: make(chan struct{}, 1)}
	for _, f := range every {
		v.every = append(v.every, func() { f(v) })
	}
	signal := func(any) {
		select {
		case v.changed <- struct{}{}:
		default:
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	for _, o := range []client.Object{&corev1.Pod{}, &corev1.Node{}, &corev1.Event{}, &v1.NodeClaim{}, &v1.NodePool{}, &v1beta1.CapacityBuffer{}} {
		informer, err := store.GetInformer(ctx, o, ctrlcache.BlockUntilSynced(false))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: signal, UpdateFunc: func(_, o any) { signal(o) }, DeleteFunc: signal,
		}); err != nil {
			t.Fatal(err)
		}
	}
	go func() { _ = store.Start(ctx) }()
	if !store.WaitForCacheSync(ctx) {
		t.Fatal("the watches did not start")
	}
	return v
}

// Until waits until the condition holds, which is asked after each change and
// every second, as it may be about something else. The condition returns "" when it
// does, and otherwise what is missing.
func (v *View) Until(what string, within time.Duration, condition func() string) {
	v.t.Helper()
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for {
		for _, f := range v.every {
			f()
		}
		missing := condition()
		if missing == "" {
			return
		}
		select {
		case <-v.changed:
		case <-second.C:
		case <-deadline.C:
			v.t.Fatalf("%s: not within %v: %s", what, within, missing)
		}
	}
}

// Throughout watches for the period, so that the laws of every are seen to hold.
func (v *View) Throughout(period time.Duration) {
	end := time.NewTimer(period)
	defer end.Stop()
	for {
		select {
		case <-v.changed:
			for _, f := range v.every {
				f()
			}
		case <-end.C:
			return
		}
	}
}

// Pods returns the pods of a namespace.
func (v *View) Pods(namespace string) []corev1.Pod {
	var list corev1.PodList
	v.list(&list, client.InNamespace(namespace))
	return list.Items
}

// Nodes returns all nodes.
func (v *View) Nodes() []corev1.Node {
	var list corev1.NodeList
	v.list(&list)
	return list.Items
}

// Claims returns all NodeClaims.
func (v *View) Claims() []v1.NodeClaim {
	var list v1.NodeClaimList
	v.list(&list)
	return list.Items
}

// Pool returns the NodePool, or nil when there is none.
func (v *View) Pool(name string) *v1.NodePool {
	var list v1.NodePoolList
	v.list(&list)
	for i := range list.Items {
		if list.Items[i].Name == name {
			return &list.Items[i]
		}
	}
	return nil
}

// Buffer returns the CapacityBuffer, or nil when there is none.
func (v *View) Buffer(namespace, name string) *v1beta1.CapacityBuffer {
	var list v1beta1.CapacityBufferList
	v.list(&list, client.InNamespace(namespace))
	for i := range list.Items {
		if list.Items[i].Name == name {
			return &list.Items[i]
		}
	}
	return nil
}

// Events returns the messages of the events with this reason about objects
// whose name is given.
func (v *View) Events(reason, name string) []string {
	var list corev1.EventList
	v.list(&list)
	var out []string
	for _, e := range list.Items {
		if e.Reason == reason && e.InvolvedObject.Name == name {
			out = append(out, e.Message)
		}
	}
	return out
}

func (v *View) list(list client.ObjectList, options ...client.ListOption) {
	if err := v.cache.List(context.Background(), list, options...); err != nil {
		v.t.Fatal(fmt.Errorf("read the view: %w", err))
	}
}
