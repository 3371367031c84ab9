package whole

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/e2e/harness"
)

// replica is one of several processes that share a lease.
type replica struct {
	*harness.Controller
	metrics, health int // ports
}

func startReplica(t *testing.T, cluster *harness.Cluster, lease string) replica {
	t.Helper()
	r := replica{metrics: freePort(t), health: freePort(t)}
	r.Controller = cluster.StartController(t,
		"DISABLE_LEADER_ELECTION=false", "LEADER_ELECTION_NAMESPACE=kube-system", "LEADER_ELECTION_NAME="+lease,
		fmt.Sprint("METRICS_PORT=", r.metrics), fmt.Sprint("HEALTH_PROBE_PORT=", r.health))
	return r
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// get returns the body of a page once it is there and answers 200.
func get(t *testing.T, port int, path string) string {
	t.Helper()
	var last string
	ok := eventually(t, func(ctx context.Context) bool {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d%s", port, path), nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			last = err.Error()
			return false
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		last = fmt.Sprintf("%s: %s, %v", response.Status, body, err)
		if err == nil && response.StatusCode == http.StatusOK {
			last = string(body)
			return true
		}
		return false
	})
	if !ok {
		t.Fatalf("GET %s: %s", path, last)
	}
	return last
}

func eventually(t *testing.T, condition func(context.Context) bool) bool {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, patience, true,
		func(ctx context.Context) (bool, error) { return condition(ctx), nil })
	return err == nil
}

// holder waits until the lease is held by somebody else than not.
func holder(t *testing.T, cluster *harness.Cluster, lease, not string) string {
	t.Helper()
	var held string
	ok := eventually(t, func(ctx context.Context) bool {
		l := &coordinationv1.Lease{}
		if err := cluster.Client.Get(ctx, client.ObjectKey{Namespace: "kube-system", Name: lease}, l); err != nil || l.Spec.HolderIdentity == nil {
			return false
		}
		held = *l.Spec.HolderIdentity
		return held != "" && held != not
	})
	if !ok {
		t.Fatalf("lease %s is held by %q", lease, held)
	}
	return held
}

// spec 50/21: of two replicas one leads, both are ready and measured, and the
// lease is free as soon as the leader is asked to stop.
func TestTwoReplicas(t *testing.T) {
	const lease = "two-replicas"
	cluster := shared.Cluster(t)
	first := startReplica(t, cluster, lease)
	leader := holder(t, cluster, lease, "")
	second := startReplica(t, cluster, lease)
	for _, r := range []replica{first, second} {
		get(t, r.health, "/healthz")
		get(t, r.health, "/readyz")
		if page := get(t, r.metrics, "/metrics"); !strings.Contains(page, "\nkarpenter_build_info{") {
			t.Error("the metrics have no karpenter_build_info")
		}
	}
	if now := holder(t, cluster, lease, ""); now != leader {
		t.Errorf("the lease went from %s to %s while its holder was well", leader, now)
	}
	stopped := time.Now()
	first.Stop()
	if code := first.ExitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	holder(t, cluster, lease, leader)
	// A lease that is not released is taken over after 15 seconds at the
	// earliest.
	if took := time.Since(stopped); took > 12*time.Second {
		t.Errorf("the other replica leads after %v: the lease was not released", took)
	}
}
