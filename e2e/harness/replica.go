// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// leaseNamespace is where replicas keep their lease.
const leaseNamespace = "kube-system"

// Replica is one of several controllers that share a lease.
type Replica struct {
	*Controller
	metrics, health int // ports
}

// StartReplica is StartController with leader election.
func (c *Cluster) StartReplica(t testing.TB, lease string, env ...string) *Replica {
	t.Helper()
	r := &Replica{metrics: FreePort(t), health: FreePort(t)}
	r.Controller = c.StartController(t, append([]string{
		"DISABLE_LEADER_ELECTION=false", "LEADER_ELECTION_NAMESPACE=" + leaseNamespace, "LEADER_ELECTION_NAME=" + lease,
		fmt.Sprint("METRICS_PORT=", r.metrics), fmt.Sprint("HEALTH_PROBE_PORT=", r.health),
	}, env...)...)
	return r
}

// Probe waits until a path of the probes answers 200.
func (r *Replica) Probe(path string) {
	r.t.Helper()
	Page(r.t, r.health, path)
}

// Metrics returns what a scrape gets, once there is an answer.
func (r *Replica) Metrics() string {
	r.t.Helper()
	return Page(r.t, r.metrics, "/metrics")
}

// Page returns the body of a page once it is there and answers 200.
func Page(t testing.TB, port int, path string) string {
	t.Helper()
	var last string
	if !Eventually(t, func(ctx context.Context) bool {
		ok := false
		last, ok = get(ctx, fmt.Sprintf("http://127.0.0.1:%d%s", port, path))
		return ok
	}) {
		t.Fatalf("GET %s: %s", path, last)
	}
	return last
}

// get returns the body of an answer, or what is wrong with it.
func get(ctx context.Context, url string) (string, bool) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err.Error(), false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err.Error(), false
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		return fmt.Sprintf("%s: %s, %v", response.Status, body, err), false
	}
	return string(body), true
}

// Lease returns the lease of that name, nil when there is none.
func (c *Cluster) Lease(ctx context.Context, name string) *coordinationv1.Lease {
	l := &coordinationv1.Lease{}
	if err := c.Client.Get(ctx, client.ObjectKey{Namespace: leaseNamespace, Name: name}, l); err != nil {
		return nil
	}
	return l
}

// Holder waits until the lease is held by someone else than not, and returns by
// whom.
func (c *Cluster) Holder(t testing.TB, lease, not string) string {
	t.Helper()
	var held string
	if !Eventually(t, func(ctx context.Context) bool {
		held = ""
		if l := c.Lease(ctx, lease); l != nil && l.Spec.HolderIdentity != nil {
			held = *l.Spec.HolderIdentity
		}
		return held != "" && held != not
	}) {
		t.Fatalf("lease %s is held by %q", lease, held)
	}
	return held
}

// Eventually asks often whether something that cannot be watched is so, and
// tells whether it was within five minutes.
func Eventually(t testing.TB, condition func(context.Context) bool) bool {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 5*time.Minute, true,
		func(ctx context.Context) (bool, error) { return condition(ctx), nil })
	return err == nil
}
