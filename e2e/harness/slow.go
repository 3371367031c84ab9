// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// SlowServer stands before the API server and is as slow as a test wants. Watches
// are let through.
type SlowServer struct {
	Kubeconfig string // of who is to be slowed down

	slots   chan struct{} // one for each request that is served at a time
	each    atomic.Int64  // nanoseconds that a request takes besides
	stalled atomic.Pointer[chan struct{}]
	served  atomic.Int64
}

// StartSlowServer returns one that serves so many requests at a time, each of
// which takes so much longer. It runs until the test ends.
func (c *Cluster) StartSlowServer(t testing.TB, atOnce int, each time.Duration) *SlowServer {
	t.Helper()
	transport, err := rest.TransportFor(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	host, err := url.Parse(c.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	s := &SlowServer{slots: make(chan struct{}, atOnce)}
	s.each.Store(int64(each))
	proxy := httputil.NewSingleHostReverseProxy(host)
	proxy.Transport, proxy.FlushInterval = transport, -1
	proxy.ErrorLog = log.New(io.Discard, "", 0) // of requests that are abandoned
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" && !s.wait(r) {
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	s.Kubeconfig = filepath.Join(t.TempDir(), "slow")
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: slow, cluster: {server: "%s"}}]
contexts: [{name: slow, context: {cluster: slow, user: slow}}]
users: [{name: slow, user: {}}]
current-context: slow
`, server.URL)
	if err := os.WriteFile(s.Kubeconfig, []byte(strings.TrimSpace(text)), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// Stall has no request be served until the function is called.
func (s *SlowServer) Stall() (release func()) {
	until := make(chan struct{})
	s.stalled.Store(&until)
	return func() {
		s.stalled.Store(nil)
		close(until)
	}
}

// Served is how many requests have been let through, watches apart.
func (s *SlowServer) Served() int { return int(s.served.Load()) }

// wait waits for the request's turn, and reports whether anyone still waits for
// the answer then.
func (s *SlowServer) wait(r *http.Request) bool {
	if until := s.stalled.Load(); until != nil {
		select {
		case <-*until:
		case <-r.Context().Done():
			return false
		}
	}
	select {
	case s.slots <- struct{}{}:
	case <-r.Context().Done():
		return false
	}
	defer func() { <-s.slots }()
	select {
	case <-time.After(time.Duration(s.each.Load())):
	case <-r.Context().Done():
		return false
	}
	s.served.Add(1)
	return true
}
