// SPDX-License-Identifier: Apache-2.0

package whole

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"karpenter/e2e/harness"
)

var eachRequest = flag.Duration("each-request", 100*time.Millisecond, "how long the slow API server takes for each request")

// restarting keeps one replica running, as its kubelet does: it is started again
// when it ends.
type restarting struct {
	stop func()

	mu    sync.Mutex
	codes []int    // with which it has ended
	logs  []string // what it had printed then
}

// ends is how often it has ended.
func (r *restarting) ends() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.codes)
}

func (r *restarting) ended(k *harness.Replica) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.codes, r.logs = append(r.codes, k.ExitCode()), append(r.logs, k.Log())
}

func (f *fixture) keepRunning(lease string, env ...string) *restarting {
	ctx, cancel := context.WithCancel(f.Context())
	r, done := &restarting{}, make(chan struct{})
	first := f.StartReplica(f, lease, env...)
	go func() {
		defer close(done)
		for k := first; ctx.Err() == nil; k = f.StartReplica(f, lease, env...) {
			select {
			case <-k.Exited():
				r.ended(k)
			case <-ctx.Done():
				return
			}
		}
	}()
	r.stop = func() {
		cancel()
		<-done
	}
	return r
}

// TestStalledAPIServer has the API server answer nothing for longer than a leader
// may go without a renewal. The only replica ends, is started again, waits until
// its own old lease has run out, and goes on. The log says how long it was away.
func TestStalledAPIServer(t *testing.T) {
	f := setUp(t, 0)
	f.pool(nil)
	v := f.Watch(t, f.oneToOne)
	slow := f.StartSlowServer(t, 1000, 0)
	r := f.keepRunning(f.name, "KUBECONFIG="+slow.Kubeconfig)
	defer r.stop()
	holder := f.Holder(t, f.name, "")
	d := f.deployment(3, "1", "1Gi")
	v.Until("pods run", patience, f.running(v, 3))

	release := slow.Stall()
	stalled := time.Now()
	f.scale(d, 6)
	if !harness.Eventually(t, func(context.Context) bool { return r.ends() > 0 }) {
		t.Fatal("the leader did not end")
	}
	release()
	released := time.Now()
	f.Holder(t, f.name, holder)
	leads := time.Now()
	v.Until("pods run", patience, f.running(v, 6))
	ran := time.Now()
	r.stop()
	if r.codes[0] == 0 || !strings.Contains(r.logs[0], "leader election lost") {
		t.Errorf("exit code %d", r.codes[0])
	}
	t.Logf("the API server stalls; the leader ends after %.1f s; the API server answers again; the replica leads %.1f s later, and 3 more pods run after %.1f s: it was away for %.1f s",
		released.Sub(stalled).Seconds(), leads.Sub(released).Seconds(), ran.Sub(released).Seconds(), leads.Sub(stalled).Seconds())
}

// TestSlowAPIServer has 150 pods scale out while the API server takes one request
// at a time. The log says how often the only replica lost its lease, and how long
// it took.
func TestSlowAPIServer(t *testing.T) { setUp(t, 0).slowScaleOut(*eachRequest, false) }

// TestSlowAPIServerNominating is TestSlowAPIServer with one write more for each pod.
func TestSlowAPIServerNominating(t *testing.T) { setUp(t, 0).slowScaleOut(*eachRequest, true) }

func (f *fixture) slowScaleOut(each time.Duration, nominates bool) {
	const pods = 150
	f.pool(nil)
	v := f.Watch(f, f.oneToOne)
	slow := f.StartSlowServer(f, 1, each)
	r := f.keepRunning(f.name, "KUBECONFIG="+slow.Kubeconfig, fmt.Sprintf("NOMINATE_PODS=%t", nominates))
	defer r.stop()
	f.Holder(f, f.name, "")
	began, before := time.Now(), slow.Served()
	f.deployment(pods, "1", "1Gi")
	v.Until("pods run", 2*patience, f.running(v, pods))
	took := time.Since(began)
	waiting := 0
	for _, p := range v.Pods(f.name) {
		if p.Status.Phase != corev1.PodRunning {
			waiting++
		}
	}
	r.stop()
	f.Logf("one request at a time, %v each: %d pods run after %.1f s and %d requests; the lease was lost %d times",
		each, pods-waiting, took.Seconds(), slow.Served()-before, r.ends())
}
