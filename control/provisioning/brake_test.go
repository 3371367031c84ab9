// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/model"
)

// taintedNodes shows the world a node for each claim of the pools, ready for
// pods but for a taint that someone else has put on it.
func (s *stage) taintedNodes(pools ...string) {
	s.nodesOfClaims([]corev1.Taint{{Key: "third-party", Effect: corev1.TaintEffectNoExecute}}, pools...)
}

// nodesOfClaims shows the world a node for each claim of the pools, with taints.
func (s *stage) nodesOfClaims(taints []corev1.Taint, pools ...string) {
	have := corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("16Gi"), "pods": resource.MustParse("110")}
	for _, claim := range s.claims() {
		pool := claim.Labels[v1.NodePoolLabelKey]
		if !slices.Contains(pools, pool) {
			continue
		}
		claim.Status.ProviderID, claim.Status.Capacity, claim.Status.Allocatable = "test://"+claim.Name, have, have
		known, _ := s.Convert.Claim(&claim)
		s.world.SetClaim(known)
		s.world.SetNode(s.Convert.Node(&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "node-" + claim.Name, Labels: map[string]string{
				v1.NodePoolLabelKey: pool, model.LabelRegistered: "true", model.LabelInitialized: "true",
				model.LabelInstanceType: "default-instance-type", model.LabelHostname: "node-" + claim.Name,
			}},
			Spec:   corev1.NodeSpec{ProviderID: "test://" + claim.Name, Taints: taints},
			Status: corev1.NodeStatus{Capacity: have, Allocatable: have},
		}))
	}
}

// during makes a pass every 10 seconds for a while, with nodes of the pools
// tainted, and returns how many claims were created.
func (s *stage) during(lasts time.Duration, pools ...string) int {
	s.t.Helper()
	before := len(s.claims())
	for end := s.clock.Now().Add(lasts); s.clock.Now().Before(end); {
		s.mustPass()
		s.taintedNodes(pools...)
	}
	return len(s.claims()) - before
}

// backoff returns the message of the pool's condition LaunchBackoff.
func (s *stage) backoff(pool string) string {
	s.t.Helper()
	o := &v1.NodePool{}
	if err := s.Client.Get(s.t.Context(), client.ObjectKey{Name: pool}, o); err != nil {
		s.t.Fatal(err)
	}
	if c := conditions.Get(o, v1.LaunchBackoffCondition); c != nil {
		return c.Message
	}
	return ""
}

// For a pod that no node keeps, three nodes are launched in five minutes, and
// fewer from then on. An event on the pod and a condition of the NodePool
// report it.
func TestLaunchBackoff(t *testing.T) {
	s := newStage(t)
	s.pool("default", nil)
	s.pod("a", "1", nil)
	if n := s.during(5*time.Minute, "default"); n != 3 {
		t.Errorf("%d nodes in the first 5 minutes, want 3", n)
	}
	const event = "LaunchBackoff pod/a: The last 3 nodes launched for this pod in NodePool default did not keep it."
	if said := strings.Join(s.said(), "\n"); !strings.Contains(said, event) || strings.Contains(said, "FailedScheduling") {
		t.Errorf("said\n%s\nwant %s and no FailedScheduling", said, event)
	}
	if got, want := s.backoff("default"), "Launches are delayed for 1 pods that new nodes did not keep, such as default/a (3 nodes since "; !strings.HasPrefix(got, want) {
		t.Errorf("the condition says %q, want %q", got, want)
	}
	if n := s.during(15*time.Minute, "default"); n != 2 {
		t.Errorf("%d nodes in the next 15 minutes, want 2", n)
	}
	later := 0
	for range 5 * 60 {
		s.clock.SetTime(s.clock.Now().Add(50 * time.Second))
		later += s.during(10*time.Second, "default")
	}
	if later < 14 || later > 16 {
		t.Errorf("%d nodes in the next 5 hours, want about three an hour", later)
	}
	s.world.DeletePod("default", "a")
	s.mustPass()
	if got := s.backoff("default"); got != "" {
		t.Errorf("without the pod the condition says %q", got)
	}
}

// Other pods get their nodes as if the pod that is held were not there.
func TestLaunchBackoffSlowsNoOtherPod(t *testing.T) {
	s := newStage(t)
	s.pool("default", nil)
	s.pod("a", "1", nil)
	s.during(time.Minute, "default")
	before := len(s.claims())
	s.pod("b", "1", func(p *corev1.Pod) { p.Labels = map[string]string{"app": "b"} })
	s.mustPass()
	claims := s.claims()
	if len(claims) != before+1 {
		t.Fatalf("%d nodes for another pod, want 1", len(claims)-before)
	}
	for _, c := range claims {
		if cpu := c.Spec.Resources.Requests[corev1.ResourceCPU]; cpu.Cmp(resource.MustParse("1")) != 0 {
			t.Errorf("claim %s requests %s cores, want 1", c.Name, &cpu)
		}
	}
}

// In a scale-up, other pods of the workload take the nodes that were planned for
// a pod. These nodes keep pods, so the pod gets its next node at once. When the
// nodes lose the other pods, the launches count.
func TestLaunchBackoffIgnoresNodesThatKeepTwins(t *testing.T) {
	s := newStage(t)
	s.pool("default", nil)
	s.pod("a", "3", nil)
	var twins []string
	for i := range 6 {
		s.mustPass()
		s.wantClaims(i + 1)
		s.nodesOfClaims(nil, "default")
		for _, claim := range s.claims() {
			twin := "twin-" + claim.Name
			s.pod(twin, "3", func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Conditions = "node-"+claim.Name, nil })
			twins = append(twins, twin)
		}
	}
	for _, name := range twins {
		s.world.DeletePod("default", name)
	}
	s.taintedNodes("default")
	s.mustPass()
	s.wantClaims(6)
}

// The hold is on a pod and a NodePool: another NodePool is tried.
func TestLaunchBackoffTriesOtherPools(t *testing.T) {
	s := newStage(t)
	s.pool("default", func(p *v1.NodePool) { p.Spec.Weight = new(int32(10)) })
	s.pool("other", nil)
	s.pod("a", "1", nil)
	s.during(time.Minute, "default")
	pools := map[string]int{}
	for _, c := range s.claims() {
		pools[c.Labels[v1.NodePoolLabelKey]]++
	}
	if pools["default"] != 3 || pools["other"] != 1 {
		t.Errorf("nodes by pool: %v, want 3 of default and 1 of other", pools)
	}
}

// When the NodePool or the pod changes, it is tried again at once.
func TestLaunchBackoffEndsWithAChange(t *testing.T) {
	for what, change := range map[string]func(*stage){
		"pool": func(s *stage) {
			pool := &v1.NodePool{}
			if err := s.Client.Get(s.t.Context(), client.ObjectKey{Name: "default"}, pool); err != nil {
				s.t.Fatal(err)
			}
			pool.Spec.Template.Labels = map[string]string{"edited": "yes"}
			known, _ := s.Convert.Pool(pool)
			s.world.SetPool(known)
		},
		"pod": func(s *stage) { s.pod("a", "900m", nil) },
	} {
		s := newStage(t)
		s.pool("default", nil)
		s.pod("a", "1", nil)
		s.during(2*time.Minute, "default")
		s.wantClaims(3)
		change(s)
		s.mustPass()
		if n := len(s.claims()); n != 4 {
			t.Errorf("%s: %d nodes after the change, want 4", what, n)
		}
	}
}

// A pod that is evicted from each new node at once, and made again by its
// controller, is as bad as one that stays.
func TestLaunchBackoffOfPodsMadeAgain(t *testing.T) {
	s := newStage(t)
	s.pool("default", nil)
	for i := range 30 {
		s.pod("a", "1", func(p *corev1.Pod) { p.UID = types.UID(fmt.Sprint("uid-", i)) })
		s.during(10*time.Second, "default")
		s.world.DeletePod("default", "a")
	}
	s.wantClaims(3)
}

// Launches for which the cloud has no capacity do not count.
func TestLaunchBackoffWithoutCapacity(t *testing.T) {
	s := newStage(t)
	s.pool("default", nil)
	s.pod("a", "1", nil)
	for range 10 {
		s.mustPass()
		for _, c := range s.claims() {
			s.world.DeleteClaim(c.Name)
		}
	}
	s.wantClaims(10)
}
