// SPDX-License-Identifier: Apache-2.0

package static

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karpenter/api/unreadable"
	v1 "karpenter/api/v1"
	"karpenter/world"
)

// spec 45/2: as many claims as are missing, made from the template.
func TestScaleUp(t *testing.T) {
	s := newStage(t)
	s.pool(3, func(p *v1.NodePool) {
		p.Spec.Template.Labels = map[string]string{"team": "a"}
		p.Spec.Template.Spec.Taints = []v1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}}
		p.Spec.Template.Spec.Requirements = []v1.NodeSelectorRequirementWithMinValues{
			{Key: "kubernetes.io/arch", Operator: corev1.NodeSelectorOpIn, Values: []string{"arm64"}}}
	})
	s.fill(time.Minute)
	for _, c := range s.wantClaims(3) {
		i := slices.IndexFunc(c.Spec.Requirements, func(r v1.NodeSelectorRequirementWithMinValues) bool { return r.Key == "kubernetes.io/arch" })
		if c.Labels["team"] != "a" || c.Labels[v1.NodePoolLabelKey] != "p" || len(c.Spec.Taints) != 1 || i < 0 || len(c.Finalizers) != 1 {
			t.Errorf("claim %+v", c)
		}
		if len(c.Spec.Resources.Requests) > 0 || strings.Contains(c.Name, " ") || c.Annotations[v1.NodePoolHashAnnotationKey] == "" {
			t.Errorf("claim %+v", c)
		}
	}
	s.fill(time.Minute)
	s.wantClaims(3)
	s.replicas(5)
	s.fill(time.Minute)
	s.wantClaims(5)
	if len(s.created) != 1 || s.created["provisioned"] != 5 {
		t.Errorf("counted %v, want 5 provisioned", s.created)
	}
	s.replicas(4)
	s.fill(time.Minute)
	s.wantClaims(5)
}

func TestNoReplicas(t *testing.T) {
	s := newStage(t)
	s.pool(0, nil)
	s.fill(time.Minute)
	s.wantClaims(0)
}

// spec 45/3: pools that are none of its business.
func TestPoolsThatAreNotStatic(t *testing.T) {
	for name, change := range map[string]func(*v1.NodePool){
		"unmanaged": func(p *v1.NodePool) {
			p.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: "other.sh", Kind: "Class", Name: "x"}
		},
		"not ready": func(p *v1.NodePool) { p.Status.Conditions = nil },
		"dynamic":   func(p *v1.NodePool) { p.Spec.Replicas = nil },
		"unreadable": func(p *v1.NodePool) {
			p.Annotations = map[string]string{unreadable.AnnotationKey: "spec.limits[nodes]: x"}
		},
	} {
		s := newStage(t)
		s.pool(3, change)
		s.fill(0)
		if n := len(s.claims()); n > 0 {
			t.Errorf("%s: %d claims", name, n)
		}
	}
	s := newStage(t)
	p := s.pool(3, func(p *v1.NodePool) { p.Finalizers = []string{"test/hold"} })
	s.must(s.Client.Delete(t.Context(), p))
	s.fill(0)
	s.wantClaims(0)
	s.must(s.Client.Get(t.Context(), request().NamespacedName, p))
	p.Finalizers = nil
	s.must(s.Client.Update(t.Context(), p))
	s.fill(0)
	s.wantClaims(0)
}

// spec 45/4: the limit holds, also with claims that are on their way out.
func TestLimit(t *testing.T) {
	s := newStage(t)
	s.pool(8, limited("5"))
	s.fill(time.Minute)
	claims := s.wantClaims(5)
	s.fill(30 * time.Second)
	s.wantClaims(5)
	s.must(s.Client.Delete(t.Context(), &claims[0]))
	s.watch()
	s.Clock.SetTime(s.Clock.Now().Add(time.Minute))
	s.fill(30 * time.Second)
	s.wantClaims(5)
	s.gone(claims[0].Name)
	s.fill(time.Minute)
	s.wantClaims(5)
}

// spec 45/5, spec 10/42: however many reconcile at once, limit and replicas
// hold, and nothing stays granted.
func TestManyAtOnce(t *testing.T) {
	for _, tc := range []struct {
		limit    string
		replicas int64
		want     int
	}{{"7", 20, 7}, {"50", 20, 20}} {
		s := newStage(t)
		s.pool(tc.replicas, limited(tc.limit))
		var all sync.WaitGroup
		for range 12 {
			all.Go(func() { _, _ = s.up.Reconcile(t.Context(), request()) })
		}
		all.Wait()
		s.wantClaims(tc.want)
		if n, _ := s.world.Reserve("p", tc.want+3, 10); n != 3 {
			t.Errorf("%d of 3 can be granted afterwards", n)
		}
	}
}

// A claim that goes before any event about it has come is made again.
func TestUnseenClaim(t *testing.T) {
	s := newStage(t)
	s.pool(1, nil)
	s.fill(time.Minute)
	gone := s.wantClaims(1)[0]
	gone.Finalizers = nil
	s.must(s.Client.Update(t.Context(), &gone))
	s.must(s.Client.Delete(t.Context(), &gone))
	s.fill(time.Minute)
	s.wantClaims(0)
	s.Clock.SetTime(s.Clock.Now().Add(time.Minute))
	s.fill(time.Minute)
	s.wantClaims(1)
}

// spec 45/6: nothing is created before the world is complete.
func TestNotReady(t *testing.T) {
	s := newStage(t)
	s.claim("a", true, nil)
	s.pool(3, nil)
	s.isReady = false
	s.fill(time.Second)
	s.wantClaims(1)
	s.isReady = true
	s.fill(time.Minute)
	s.wantClaims(3)
}

// spec 45/7, spec 10/42: a failure is an error, and gives back what was granted.
func TestCreateFails(t *testing.T) {
	s := newStage(t)
	s.pool(3, limited("3"))
	s.failCreate = errors.New("no")
	if _, err := s.up.Reconcile(t.Context(), request()); !errors.Is(err, s.failCreate) {
		t.Errorf("error %v", err)
	}
	s.wantClaims(0)
	if n, release := s.world.Reserve("p", 3, 5); n != 3 {
		t.Errorf("%d of 3 can be granted after the failure", n)
	} else {
		release()
	}
	s.failCreate = nil
	s.fill(time.Minute)
	s.wantClaims(3)
}

// Claims whose creation succeeded although the answer was lost are seen before
// more are created, however late the cache is.
func TestLostAnswer(t *testing.T) {
	s := newStage(t)
	s.pool(3, nil)
	s.failCreate, s.lost = errors.New("timeout"), true
	if _, err := s.up.Reconcile(t.Context(), request()); err == nil {
		t.Error("no error")
	}
	s.wantClaims(3)
	s.failCreate = nil
	s.fill(time.Minute)
	s.wantClaims(3)
}

// A process that starts again, and whose cache is late, counts what the one
// before has created.
func TestRestart(t *testing.T) {
	s := newStage(t)
	s.pool(3, nil)
	s.fill(time.Minute)
	s.world = world.New(s.up.Convert.Axis, nil)
	s.up.World = s.world
	known, _ := s.up.Convert.Pool(s.read())
	s.world.SetPool(known)
	s.fill(time.Minute)
	s.wantClaims(3)
}

func (s *stage) read() *v1.NodePool {
	p := &v1.NodePool{}
	s.must(s.Client.Get(s.t.Context(), request().NamespacedName, p))
	return p
}

// spec 45/8: many in one pass.
func TestLargePool(t *testing.T) {
	s := newStage(t)
	s.pool(250, nil)
	s.fill(time.Minute)
	s.wantClaims(250)
}

// A pool with 10^18 replicas gets nodes in rounds, and no more than its limit.
func TestHugePool(t *testing.T) {
	s := newStage(t)
	s.pool(1e18, limited("1200"))
	s.fill(nextRound)
	s.wantClaims(mostAtOnce)
	s.fill(nextRound)
	s.wantClaims(1200)
	s.fill(limitedPoll)
	s.wantClaims(1200)
}

// A limit beyond what fits an integer is no limit of 0, and one below 0 is.
func TestExtremeLimits(t *testing.T) {
	for limit, want := range map[string]int{"1e100": 3, "9223372036854775807": 3, "0": 0, "-5": 0, "-1e100": 0} {
		s := newStage(t)
		s.pool(3, limited(limit))
		if _, err := s.up.Reconcile(t.Context(), request()); err != nil {
			t.Fatal(err)
		}
		if n := len(s.claims()); n != want {
			t.Errorf("limit %s: %d claims, want %d", limit, n, want)
		}
	}
}

// While a command replaces a node, the node is not missing; nor is what replaces
// it one too many.
func TestDriftUnderWay(t *testing.T) {
	s := newStage(t)
	s.pool(2, nil)
	disrupting := func(c *v1.NodeClaim, _ *corev1.Node) {
		c.StatusConditions(s.Clock.Now()).SetTrueWithReason(v1.DisruptionReasonCondition, "Drifted", "Drifted")
	}
	s.claim("old", true, disrupting)
	s.claim("a", true, nil)
	s.fill(time.Minute)
	s.wantClaims(2)
	s.claim("new", false, nil)
	s.shrink(time.Minute)
	s.left("a", "new", "old")
	s.gone("a")
	s.fill(time.Minute)
	s.wantClaims(2)
	s.gone("old")
	s.fill(time.Minute)
	s.wantClaims(2)
}

// A cloud that has no instances for the pool's claims is asked less and less
// often.
func TestPace(t *testing.T) {
	s := newStage(t)
	s.pool(1, nil)
	var pauses []time.Duration
	for range 9 {
		s.fill(time.Minute)
		s.gone(s.wantClaims(1)[0].Name)
		got, err := s.up.Reconcile(t.Context(), request())
		s.must(err)
		s.wantClaims(0)
		pauses = append(pauses, got.RequeueAfter)
		s.Clock.SetTime(s.Clock.Now().Add(got.RequeueAfter))
	}
	want := []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60}
	for i := range want {
		want[i] *= time.Second
	}
	if !slices.Equal(pauses, want) {
		t.Errorf("pauses %v, want %v", pauses, want)
	}
	s.fill(time.Minute)
	s.Clock.SetTime(s.Clock.Now().Add(time.Hour))
	s.gone(s.wantClaims(1)[0].Name)
	s.fill(time.Minute)
	s.wantClaims(1)
}

// spec 45/9: what has the pool looked at.
func TestTriggers(t *testing.T) {
	pool := func(replicas int64, ready bool, change func(*v1.NodePool)) *v1.NodePool {
		p := &v1.NodePool{}
		if replicas >= 0 {
			p.Spec.Replicas = &replicas
		}
		status := metav1.ConditionFalse
		if ready {
			status = metav1.ConditionTrue
		}
		p.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: status}}
		if change != nil {
			change(p)
		}
		return p
	}
	weight := func(p *v1.NodePool) { p.Labels = map[string]string{"a": "b"} }
	for _, tc := range []struct {
		name     string
		old, now *v1.NodePool
		up, down bool
	}{
		{"replicas change", pool(1, true, nil), pool(2, true, nil), true, true},
		{"becomes ready", pool(1, false, nil), pool(1, true, nil), true, false},
		{"is not ready any more", pool(1, true, nil), pool(1, false, nil), false, false},
		{"nothing of that changes", pool(1, true, nil), pool(1, true, weight), false, false},
		{"dynamic", pool(-1, false, nil), pool(-1, true, nil), false, false},
		{"new", nil, pool(0, false, nil), true, true},
		{"new, dynamic", nil, pool(-1, true, nil), false, false},
	} {
		if up, down := admits(rescaled(readied), tc.old, tc.now), admits(rescaled(never), tc.old, tc.now); up != tc.up || down != tc.down {
			t.Errorf("%s: static.provisioning %t, static.deprovisioning %t", tc.name, up, down)
		}
	}
}

// Claims have their pool looked at: for scale-up when they begin to go and when
// they are gone, for scale-down when they come.
func TestClaimTriggers(t *testing.T) {
	alive, dying, marked := &v1.NodeClaim{}, &v1.NodeClaim{}, &v1.NodeClaim{}
	marked.StatusConditions(time.Unix(0, 0)).SetTrueWithReason(v1.DisruptionReasonCondition, "Drifted", "Drifted")
	now := metav1.Now()
	dying.DeletionTimestamp = &now
	for _, tc := range []struct {
		name     string
		old, now *v1.NodeClaim
		up, down bool
	}{
		{"created", nil, alive, false, true},
		{"updated", alive, alive, false, false},
		{"a command begins", alive, marked, false, false},
		{"the command is given up", marked, alive, false, true},
		{"deletion begins", alive, dying, true, false},
		{"deletion goes on", dying, dying, false, false},
		{"gone", dying, nil, true, false},
	} {
		if up, down := admits(leaving(), tc.old, tc.now), admits(appearing(), tc.old, tc.now); up != tc.up || down != tc.down {
			t.Errorf("%s: static.provisioning %t, static.deprovisioning %t", tc.name, up, down)
		}
	}
	owned := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1.NodePoolLabelKey: "p"}}}
	if got := poolOf(t.Context(), owned); len(got) != 1 || got[0].Name != "p" {
		t.Errorf("a claim has %v looked at", got)
	}
	if got := poolOf(t.Context(), alive); len(got) > 0 {
		t.Errorf("a claim without a pool has %v looked at", got)
	}
}

func TestRegister(t *testing.T) {
	s := newStage(t)
	s.Reconcilers["up"], s.Reconcilers["down"] = s.up, s.down
	s.Register(t)
}
