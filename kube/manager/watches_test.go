// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"

	v1 "karpenter/api/v1"
)

// pools is an API server's NodePools, as far as an informer sees it.
type pools struct {
	mu      sync.Mutex
	refused error
	current *watch.FakeWatcher
	tried   chan bool // whether a watch was opened, for each attempt
}

func (p *pools) lister() *toolscache.ListWatch {
	return &toolscache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return &v1.NodePoolList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, nil
		},
		WatchFuncWithContext: func(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			if options.SendInitialEvents != nil {
				return nil, errors.New("lists only")
			}
			p.tried <- p.refused == nil
			if p.refused != nil {
				return nil, p.refused
			}
			p.current = watch.NewFake()
			return p.current, nil
		},
	}
}

// cut ends the present watch, and refuses others for the reason unless it is nil.
func (p *pools) cut(reason error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused = reason
	if p.current != nil {
		p.current.Stop()
		p.current = nil
	}
}

// until waits for an attempt to watch that ends so.
func (p *pools) until(t *testing.T, opened bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		select {
		case got := <-p.tried:
			if got == opened {
				return
			}
		case <-deadline:
			t.Fatalf("no watch was tried with the outcome %v", opened)
		}
	}
}

// TestWatchThatStopsWorking covers a watch that is rejected after the first sync:
// readiness and the metric tell, until it works again.
func TestWatchThatStopsWorking(t *testing.T) {
	c := clocktesting.NewFakePassiveClock(time.Unix(1e9, 0))
	reg := prometheus.NewRegistry()
	w := NewWatches(reg, c)
	server := &pools{tried: make(chan bool, 1000)}
	informer := w.informer(server.lister(), &v1.NodePool{}, 0, toolscache.Indexers{})
	ctx, stop := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	ended.Go(func() { informer.RunWithContext(ctx) })
	t.Cleanup(func() { stop(); ended.Wait() })

	server.until(t, true)
	if !toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		t.Fatal("not synced")
	}
	want := func(seconds float64, says string) {
		t.Helper()
		families, err := reg.Gather()
		if err != nil || len(families) != 1 {
			t.Fatal(families, err)
		}
		m := families[0].GetMetric()[0]
		if got := m.GetGauge().GetValue(); got != seconds || m.GetLabel()[0].GetValue() != "NodePool" {
			t.Errorf("down for %v seconds, want %v: %v", got, seconds, m)
		}
		err = w.work()(httptest.NewRequest("GET", "/readyz", nil))
		if (says == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("readiness says %v, want %q", err, says)
		}
	}
	c.SetTime(c.Now().Add(steady))
	want(0, "")

	server.cut(errors.New("nodepools is forbidden"))
	server.until(t, false)
	c.SetTime(c.Now().Add(toleratedDown))
	want(60, "")
	c.SetTime(c.Now().Add(time.Second))
	want(61, "NodePool for 1m1s (nodepools is forbidden)")

	server.cut(nil)
	server.until(t, true)
	want(61, "NodePool for 1m1s") // whether it lasts is to be seen
	server.cut(nil)
	server.until(t, true)
	c.SetTime(c.Now().Add(steady - time.Second))
	want(70, "NodePool for 1m10s")
	c.SetTime(c.Now().Add(time.Second))
	want(0, "")
}
