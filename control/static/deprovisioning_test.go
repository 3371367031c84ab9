// SPDX-License-Identifier: Apache-2.0

package static

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	v1 "karpenter/api/v1"
)

func never(_, _ *v1.NodePool) bool { return false }

// admits asks the predicate about a change; nil is nothing.
func admits[T any, P interface {
	*T
	client.Object
}](p predicate.Predicate, old, now P) bool {
	switch {
	case old == nil:
		return p.Create(event.CreateEvent{Object: now})
	case now == nil:
		return p.Delete(event.DeleteEvent{Object: old})
	}
	return p.Update(event.UpdateEvent{ObjectOld: old, ObjectNew: now})
}

// spec 45/11, spec 45/12, spec 10/43: who goes first. Each line is the claims
// that are left when one more has gone.
func TestVictims(t *testing.T) {
	for _, tc := range []struct{ name, claims, order string }{
		{"spec 45/12: seven nodes", "guard:pods=1,guarded,cost=1 high1:pods=1,cost=8 high2:pods=3,cost=9 low1:pods=1,cost=1 low2:pods=2,cost=2 ds1:cost=1 ds2:cost=2",
			"ds1 ds2 low1 low2 high1 high2 guard"},
		{"spec 45/11: without a machine, with daemons only, cheap, guarded", "d:pods=1,guarded b:cost=5 c:pods=1,cost=1 a:unlaunched", "a b c d"},
		{"a daemon that is not to be disrupted", "a:guarded,cost=1 b:pods=1,cost=9", "b a"},
		{"of those that are guarded, the cheap ones", "a:pods=1,guarded,cost=3 b:pods=1,guarded,cost=2", "b a"},
		{"those that are not ready, before those that drifted", "old:drifted new:unready", "new old"},
		{"of equals, those that drifted", "a b:drifted c", "b a c"},
		{"nodes that are not to be disrupted, last of their kind", "a:spared,cost=1 b:cost=2 c:pods=1,cost=1", "b a c"},
		{"of equals, the oldest", "a:left=9 b:left=1 c:left=5", "b c a"},
		{"by name", "c a b", "a b c"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			all := parse(t, tc.claims)
			want := strings.Fields(tc.order)
			for n := range len(want) + 2 {
				if got := victims(all, n); !slices.Equal(got, want[:min(n, len(want))]) {
					t.Errorf("of %d: %v, want %v", n, got, want)
				}
			}
		})
	}
}

// parse reads "name:fact,fact name:fact".
func parse(t *testing.T, text string) []victim {
	var out []victim
	for _, word := range strings.Fields(text) {
		name, facts, _ := strings.Cut(word, ":")
		v := victim{claim: name, launched: true, ready: true}
		for fact := range strings.SplitSeq(facts, ",") {
			switch {
			case fact == "":
			case fact == "unlaunched":
				v.launched, v.ready = false, false
			case fact == "unready":
				v.ready = false
			case fact == "drifted":
				v.drifted = true
			case fact == "spared":
				v.spared = true
			case fact == "guarded":
				v.guarded = true
			case strings.HasPrefix(fact, "pods="):
				v.pods = int(fact[5] - '0')
			case strings.HasPrefix(fact, "cost="):
				v.cost = float64(fact[5] - '0')
			case strings.HasPrefix(fact, "left="):
				v.left = float64(fact[5] - '0')
			default:
				t.Fatalf("fact %q", fact)
			}
		}
		out = append(out, v)
	}
	return out
}

// fleet creates seven claims: one that is not launched, one without pods, one
// with its daemon, three with pods and one that is guarded.
func (s *stage) fleet() {
	s.t.Helper()
	s.claim("unlaunched", false, nil)
	for _, name := range []string{"empty", "daemon", "cheap", "dear", "old", "guarded"} {
		s.claim(name, true, func(c *v1.NodeClaim, _ *corev1.Node) {
			if name == "old" {
				life := 10 * time.Hour
				c.Spec.ExpireAfter.Duration = &life
				c.CreationTimestamp = metav1.NewTime(s.Clock.Now().Add(-9 * time.Hour))
			}
		})
	}
	s.pod("empty", "done", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
	s.pod("daemon", "d", daemon)
	s.pod("cheap", "a", nil)
	s.pod("dear", "b", costly)
	s.pod("old", "c", nil)
	s.pod("guarded", "e", guarded)
}

// spec 45/10, spec 45/11: what is too much goes, in order.
func TestScaleDown(t *testing.T) {
	s := newStage(t)
	s.pool(7, nil)
	s.fleet()
	s.shrink(time.Minute)
	order := []string{"unlaunched", "daemon", "empty", "old", "cheap", "dear", "guarded"}
	s.left(order...)
	for i := range order {
		s.replicas(int64(len(order) - 1 - i))
		s.shrink(time.Minute)
		s.left(order[i+1:]...)
		s.watch()
	}
	s.shrink(time.Minute)
}

// spec 45/13: no replicas, no claims, all at once.
func TestScaleToZero(t *testing.T) {
	s := newStage(t)
	s.pool(0, nil)
	s.shrink(time.Minute)
	s.fleet()
	s.shrink(time.Minute)
	s.left()
}

// Of nodes with nothing but DaemonSets' pods the drifted one goes, though others
// are nearer to the end of their life.
func TestDriftedGoesFirst(t *testing.T) {
	s := newStage(t)
	s.pool(1, nil)
	for _, name := range []string{"aged", "drifted"} {
		s.claim(name, true, func(c *v1.NodeClaim, _ *corev1.Node) {
			life := 10 * time.Hour
			c.Spec.ExpireAfter.Duration = &life
			if name == "aged" {
				c.CreationTimestamp = metav1.NewTime(s.Clock.Now().Add(-9 * time.Hour))
			} else {
				c.StatusConditions(s.Clock.Now()).SetTrueWithReason(v1.DriftedCondition, "NodePoolDrifted", "NodePoolDrifted")
			}
		})
		s.pod(name, "of-"+name, daemon)
	}
	s.shrink(time.Minute)
	s.left("aged")
}

// spec 45/10, spec 10/44: claims that are on their way out are not too many,
// though the cache does not show that they are.
func TestScaleDownCountsTheLiving(t *testing.T) {
	s := newStage(t)
	s.pool(3, nil)
	for i := range 4 {
		s.claim(fmt.Sprint("c", i), true, nil)
	}
	s.shrink(time.Minute)
	s.left("c1", "c2", "c3")
	s.pod("c1", "x", nil)
	s.shrink(time.Minute)
	s.left("c1", "c2", "c3")
}

// spec 45/13: pools that are none of its business. Unlike scale-up, a pool need
// not be ready.
func TestScaleDownLeftAlone(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1.NodePool)
		after  time.Duration
		left   int
	}{
		"unmanaged": {func(p *v1.NodePool) {
			p.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: "other.sh", Kind: "Class", Name: "x"}
		}, 0, 1},
		"dynamic":   {func(p *v1.NodePool) { p.Spec.Replicas = nil }, 0, 1},
		"not ready": {func(p *v1.NodePool) { p.Status.Conditions = nil }, time.Minute, 0},
	} {
		s := newStage(t)
		s.pool(0, tc.change)
		s.claim("a", true, nil)
		s.shrink(tc.after)
		if got := len(s.names()); got != tc.left {
			t.Errorf("%s: %d claims left, want %d", name, got, tc.left)
		}
	}
	s := newStage(t)
	p := s.pool(0, func(p *v1.NodePool) { p.Finalizers = []string{"test/hold"} })
	s.claim("a", true, nil)
	s.must(s.Client.Delete(t.Context(), p))
	s.shrink(0)
	s.left("a")
}

// spec 45/13: a failure is an error; those that can be deleted are.
func TestDeleteFails(t *testing.T) {
	s := newStage(t)
	s.pool(0, nil)
	s.claim("a", true, nil)
	s.failDelete = errors.New("no")
	if _, err := s.down.Reconcile(t.Context(), request()); !errors.Is(err, s.failDelete) {
		t.Errorf("error %v", err)
	}
	s.left("a")
	s.failDelete = nil
	s.shrink(time.Minute)
	s.left()
}

// Where pods cannot be listed, no one knows that a node is empty.
func TestPodsUnknown(t *testing.T) {
	s := newStage(t)
	s.pool(1, nil)
	s.claim("known", false, nil)
	s.claim("a", true, nil)
	s.failPods = errors.New("no")
	v := s.down.describe(t.Context(), &s.claims()[0])
	if v.class() != 3 {
		t.Errorf("%+v", v)
	}
	s.shrink(time.Minute)
	s.left("a")
}

// A node that a command has begun to remove is not taken for one too many,
// whatever the cache shows.
func TestScaleDownKnowsOfCommands(t *testing.T) {
	s := newStage(t)
	s.pool(1, nil)
	s.claim("old", true, nil)
	s.claim("new", false, nil)
	old := &v1.NodeClaim{}
	s.must(s.Client.Get(t.Context(), client.ObjectKey{Name: "old"}, old))
	old.StatusConditions(s.Clock.Now()).SetTrueWithReason(v1.DisruptionReasonCondition, "Drifted", "Drifted")
	s.must(s.Client.Status().Update(t.Context(), old))
	s.shrink(time.Minute)
	s.left("new", "old")
}
