// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

// slowDial is a transport whose connections are made when proceed is closed or
// the request is abandoned.
func slowDial(t *testing.T, dialing chan<- struct{}, proceed <-chan struct{}) *http.Transport {
	t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		dialing <- struct{}{}
		select {
		case <-proceed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// TestFenceDeadline: a write whose connection takes longer to make than the
// lease lasts is abandoned.
func TestFenceDeadline(t *testing.T) {
	var sent atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { sent.Add(1) }))
	defer server.Close()
	clock := clocktesting.NewFakePassiveClock(time.Unix(100, 0))
	f := NewFence(clock)
	f.Renewed(clock.Now().Add(-(leaseDuration - retryPeriod - 50*time.Millisecond)))
	dialing := make(chan struct{})
	go func() {
		<-dialing
		clock.SetTime(clock.Now().Add(time.Second))
	}()
	guarded := f.guard(slowDial(t, dialing, nil))
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/apis/karpenter.sh/v1/nodeclaims", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := guarded.RoundTrip(request); err == nil || !strings.Contains(err.Error(), "another replica may lead") {
		t.Errorf("got %v, want that another replica may lead", err)
	}
	if sent.Load() != 0 {
		t.Errorf("%d requests arrived", sent.Load())
	}
}

// TestFenceClosesWhileConnecting: the lease ends while a connection is made, by
// the clock of a process that was frozen, so that no timer has run out. What has
// a body does not arrive whole.
func TestFenceClosesWhileConnecting(t *testing.T) {
	var whole atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); err == nil && len(body) > 0 {
			whole.Add(1)
		}
	}))
	defer server.Close()
	clock := clocktesting.NewFakePassiveClock(time.Unix(100, 0))
	f := NewFence(clock)
	f.Renewed(clock.Now())
	dialing, proceed := make(chan struct{}, 1), make(chan struct{})
	guarded := f.guard(slowDial(t, dialing, proceed))
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, server.URL+"/api/v1/nodes/a", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error)
	go func() {
		response, err := guarded.RoundTrip(request)
		if err == nil {
			_ = response.Body.Close()
		}
		failed <- err
	}()
	<-dialing
	clock.SetTime(clock.Now().Add(32 * time.Second))
	close(proceed)
	if err := <-failed; err == nil || whole.Load() != 0 {
		t.Errorf("got %v, %d requests arrived whole", err, whole.Load())
	}
}

// TestFenceLetsWritesThrough: a write in time arrives whole, and its answer can
// be read after the request has returned.
func TestFenceLetsWritesThrough(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }))
	defer server.Close()
	clock := clocktesting.NewFakePassiveClock(time.Unix(100, 0))
	f := NewFence(clock)
	f.Renewed(clock.Now())
	httpClient := &http.Client{Transport: f.guard(http.DefaultTransport)}
	long := strings.Repeat("x", 1<<20)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/apis/karpenter.sh/v1/nodeclaims", strings.NewReader(long))
	if err != nil {
		t.Fatal(err)
	}
	response, err := httpClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil || string(body) != long {
		t.Errorf("%d bytes, %v", len(body), err)
	}
}

// TestFenceHolds: what the fence holds goes on as long as the lease is renewed,
// and ends when it is not, or is abandoned.
func TestFenceHolds(t *testing.T) {
	for name, lose := range map[string]func(*Fence){
		"not renewed": func(*Fence) {},
		"given up":    func(f *Fence) { f.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := NewFence(clock.RealClock{})
				f.Renewed(time.Now())
				held, release, err := f.Hold(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer release()
				other, releaseOther, err := f.Hold(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for range 10 {
					time.Sleep(leaseDuration / 2)
					f.Renewed(time.Now())
				}
				if held.Err() != nil {
					t.Fatalf("given up although the lease was renewed: %v", context.Cause(held))
				}
				releaseOther()
				began := time.Now()
				lose(f)
				<-held.Done()
				if !errors.Is(context.Cause(held), errClosed) || time.Since(began) > leaseDuration-retryPeriod+time.Second {
					t.Errorf("given up after %v: %v", time.Since(began), context.Cause(held))
				}
				if errors.Is(context.Cause(other), errClosed) {
					t.Error("what was made already is given up")
				}
				if _, _, err := f.Hold(t.Context()); err == nil {
					t.Error("a change is allowed without the lease")
				}
			})
		})
	}
	var none *Fence
	if held, release, err := none.Hold(t.Context()); err != nil || held != t.Context() {
		t.Errorf("no fence keeps from a change: %v", err)
	} else {
		release()
	}
}
