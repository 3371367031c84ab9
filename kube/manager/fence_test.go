// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	clocktesting "k8s.io/utils/clock/testing"
)

// slowLease answers some time after it was asked, or not at all.
type slowLease struct {
	resourcelock.Interface
	clock *clocktesting.FakePassiveClock
	takes time.Duration
	err   error

	holder string
}

func (l slowLease) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &resourcelock.LeaderElectionRecord{HolderIdentity: l.holder}, nil, l.err
}

func (slowLease) Identity() string { return "me" }

func (l slowLease) Update(context.Context, resourcelock.LeaderElectionRecord) error {
	l.clock.SetTime(l.clock.Now().Add(l.takes))
	return l.err
}

// TestFence: nothing is changed before the lease is won, when it has not been
// renewed for too long, and once it is abandoned.
func TestFence(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	f := NewFence(clock)
	update := func(holder string, takes time.Duration, err error) {
		l := lock{Interface: slowLease{clock: clock, takes: takes, err: err}, fence: f}
		if got := l.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: holder}); !errors.Is(got, err) {
			t.Errorf("update: %v, want %v", got, err)
		}
	}
	want := func(what, part string) {
		t.Helper()
		switch err := f.Check(); {
		case part == "" && err != nil:
			t.Errorf("%s: %v", what, err)
		case part != "" && (err == nil || !strings.Contains(err.Error(), part)):
			t.Errorf("%s: %v, want something with %q", what, err, part)
		}
	}
	want("before the lease is won", "does not lead")
	update("me", 5*time.Second, nil)
	clock.SetTime(clock.Now().Add(8 * time.Second))
	want("13 seconds after the renewal was begun", "")
	update("me", time.Second, errors.New("no answer"))
	want("a second later, with no answer", "renewed 14s ago")
	update("me", 0, nil)
	want("renewed", "")
	update("", time.Second, errors.New("no answer"))
	want("given up, perhaps", "does not lead")
	update("me", 0, nil)
	look := func(holder string, err error) {
		_, _, _ = lock{Interface: slowLease{holder: holder, err: err}, fence: f}.Get(t.Context())
	}
	look("me", nil)
	look("other", errors.New("no answer"))
	want("nobody else's, as far as is known", "")
	look("other", nil)
	want("another's, whatever the clock says", "does not lead")
	var none *Fence
	if err := none.Check(); err != nil {
		t.Errorf("without leader election: %v", err)
	}
}

// TestLeaseNamespace: without a setting, the lease is where the pod is.
func TestLeaseNamespace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "namespace")
	want := func(l Lease, want string) {
		t.Helper()
		if got, err := l.namespace(file); got != want || err != nil {
			t.Errorf("namespace %q, %v; want %q", got, err, want)
		}
	}
	want(Lease{}, "kube-system") // outside of a cluster
	if err := os.WriteFile(file, []byte("own"), 0o600); err != nil {
		t.Fatal(err)
	}
	want(Lease{}, "own")
	want(Lease{Namespace: "chosen"}, "chosen")
}

// TestLock: the lease is made where it is to be, by a client of its own name, and
// opens the fence when the API server has taken it.
func TestLock(t *testing.T) {
	var asked []string
	status := http.StatusInternalServerError
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.Path+" "+r.UserAgent())
		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
		w.WriteHeader(status)
		_, _ = io.Copy(w, r.Body)
	}))
	defer server.Close()
	f := NewFence(clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
	l, err := newLock(&rest.Config{Host: server.URL, UserAgent: "karpenter/1"}, Lease{Name: "lease", Namespace: "ns", Fence: f}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Create(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: l.Identity()}); err == nil || f.Check() == nil {
		t.Errorf("not taken: %v, %v", err, f.Check())
	}
	status = http.StatusCreated
	if err := l.Create(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: l.Identity()}); err != nil || f.Check() != nil {
		t.Errorf("taken: %v, %v", err, f.Check())
	}
	post := "POST /apis/coordination.k8s.io/v1/namespaces/ns/leases karpenter/1/leader-election"
	if !slices.Equal(asked, []string{post, post}) {
		t.Errorf("asked %q", asked)
	}
	if _, err := newLock(&rest.Config{Host: "://"}, Lease{Namespace: "ns", Fence: f}, nil); err == nil {
		t.Error("no error for a cluster that has no address")
	}
}

// TestGuard: reading, and asking by POST, goes on while another leads.
func TestGuard(t *testing.T) {
	sent := 0
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { sent++ }))
	defer server.Close()
	guarded := NewFence(clocktesting.NewFakePassiveClock(time.Unix(0, 0))).guard(http.DefaultTransport)
	for _, c := range []struct {
		method, path string
		passes       bool
	}{
		{"GET", "/apis/karpenter.sh/v1/nodeclaims", true},
		{"POST", "/apis/authentication.k8s.io/v1/tokenreviews", true},
		{"POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", true},
		{"POST", "/api/v1/namespaces/default/events", true},
		{"PATCH", "/proxy/api/v1/namespaces/default/events/a", true},
		{"POST", "/apis/karpenter.sh/v1/nodeclaims", false},
		{"PUT", "/apis/karpenter.sh/v1/nodeclaims/a/status", false},
		{"PATCH", "/api/v1/nodes/a", false},
		{"DELETE", "/api/v1/nodes/a", false},
		{"POST", "/api/v1/namespaces/default/pods/a/eviction", false},
		{"POST", "/api/v1/namespaces/default/pods/events/eviction", false},
		{"POST", "/api/v1/namespaces/events/pods/a/eviction", false},
		{"DELETE", "/api/v1/nodes/events-1", false},
	} {
		before := sent
		request, err := http.NewRequestWithContext(t.Context(), c.method, server.URL+c.path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := guarded.RoundTrip(request)
		if err == nil {
			_ = answer.Body.Close()
		}
		if passed := err == nil && sent == before+1; passed != c.passes {
			t.Errorf("%s %s: passed %t, error %v", c.method, c.path, passed, err)
		}
	}
}
