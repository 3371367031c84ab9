// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "karpenter/api/v1"
	"karpenter/model"
	"karpenter/solve"
)

// train3 has a PodGroup of three pods launch three nodes.
func (x *storage) train3() []v1.NodeClaim {
	x.t.Helper()
	g := gang("train", 3)
	g.UID = "uid-group"
	x.tell(g)
	x.train(3, scheduled)
	x.mustPass()
	claims := x.wantClaims(3)
	for i := range claims {
		if got := claims[i].Annotations[v1.PodGroupsAnnotationKey]; got != "default/train" {
			x.t.Errorf("the claim was created for %q", got)
		}
		known, _ := x.Convert.Claim(&claims[i])
		x.world.SetClaim(known)
	}
	return claims
}

// sellOut has the cloud sell nothing more in the zone; "" = in any.
func (x *storage) sellOut(zone string) {
	for i, t := range x.types {
		copied := *t
		copied.Offerings = slices.Clone(t.Offerings)
		for j := range copied.Offerings {
			o := &copied.Offerings[j]
			o.Available = o.Available && zone != "" && o.Zone != zone
		}
		x.types[i] = &copied
	}
}

// lose has the claim end as one that cannot be launched.
func (x *storage) lose(claim *v1.NodeClaim) {
	x.t.Helper()
	claim.Finalizers = nil
	if err := x.Client.Update(x.t.Context(), claim); err != nil {
		x.t.Fatal(err)
	}
	if err := x.Client.Delete(x.t.Context(), claim); client.IgnoreNotFound(err) != nil {
		x.t.Fatal(err)
	}
	x.world.DeleteClaim(claim.Name)
}

// left returns the claims that are not being deleted.
func (x *storage) left() int {
	return len(slices.DeleteFunc(x.claims(), func(c v1.NodeClaim) bool { return c.DeletionTimestamp != nil }))
}

func (x *storage) saidOfGroup() []string {
	return slices.DeleteFunc(x.said(), func(text string) bool { return !strings.Contains(text, "podgroup/train: ") })
}

// spec 46/103: the third node cannot be had, and nothing else fits: what is no Node yet
// is deleted in the same pass, what is one is given back, and nothing is launched until
// the pause is over. The group gets an event.
func TestRollBack(t *testing.T) {
	x := newStorage(t)
	x.pool("p", nil)
	claims := x.train3()
	if got := x.saidOfGroup(); len(got) != 1 || got[0] != "Launching *v1beta1.podgroup/train: Launching 3 nodes, with which 3 pending pods of the group have a place" {
		t.Errorf("said %q", got)
	}
	x.sellOut("")
	x.lose(&claims[2])
	x.mustPass()
	if n := x.left(); n != 0 {
		t.Errorf("%d claims are left", n)
	}
	until := x.clock.Now().Add(time.Minute).UTC().Format(time.RFC3339)
	want := fmt.Sprintf("RolledBack *v1beta1.podgroup/train: Gave up launching nodes, since not all nodes of the group could be had. 2 are given back, and the next are launched after %s: 2 of the 3 pods that must start together find a place", until)
	if got := strings.Join(x.saidOfGroup(), "\n"); !strings.Contains(got, want) || !strings.Contains(got, "FailedScheduling *v1beta1.podgroup/train: Failed to schedule pods of the group, PodGroup default/train: 2 of the 3") {
		t.Errorf("said %s, want %s", got, want)
	}
	for _, c := range x.claims() {
		x.lose(&c)
	}
	x.types = newStage(t).types // there is capacity again
	for range 5 {
		x.mustPass()
		x.wantClaims(0)
	}
	x.mustPass()
	x.wantClaims(3)
}

// What was launched for a group is kept if the planner's budget ends before the group is
// tried alone: here because a second group, for which there is no place, was tried with it.
func TestNoRollBackOfUntried(t *testing.T) {
	x := newStorage(t)
	x.pool("p", nil)
	x.train3()
	x.tell(gang("vast", 1))
	x.pod("vast-1", "5000", func(p *corev1.Pod) {
		p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To("vast")}
	})
	var untried []string
	x.Decide = func(s *model.Snapshot) *model.Plan {
		policy := model.DefaultPolicy()
		policy.Work = 5000
		plan := solve.Decide(s, policy)
		untried = plan.Untried
		return plan
	}
	x.said()
	x.mustPass()
	if !slices.Equal(untried, []string{"default/train", "default/vast"}) {
		t.Fatalf("untried are %q", untried)
	}
	if got := x.saidOfGroup(); len(got) != 1 || strings.Contains(got[0], "RolledBack") || x.left() != 3 {
		t.Errorf("said %q, %d claims left", got, x.left())
	}
}

// A claim that has become a Node in the meantime is not deleted, but given back as a node.
func TestRollBackOfNodes(t *testing.T) {
	x := newStorage(t)
	x.pool("p", nil)
	claims := x.train3()
	x.sellOut("")
	x.lose(&claims[2])
	claims[0].StatusConditions(x.clock.Now()).SetTrue(v1.RegisteredCondition)
	if err := x.Client.Update(t.Context(), &claims[0]); err != nil {
		t.Fatal(err)
	}
	x.mustPass()
	if n := x.left(); n != 1 {
		t.Errorf("%d claims are left, want the one that is a Node", n)
	}
}

// spec 46/103: a limit that is raised ends the pause.
func TestRollBackAndRaisedLimit(t *testing.T) {
	x := newStorage(t)
	x.pool("p", nil)
	claims := x.train3()
	x.sellOut("")
	x.lose(&claims[2])
	x.mustPass()
	for _, c := range x.claims() {
		x.lose(&c)
	}
	x.types = newStage(t).types
	x.mustPass()
	x.wantClaims(0)
	pool := &v1.NodePool{}
	if err := x.Client.Get(t.Context(), client.ObjectKey{Name: "p"}, pool); err != nil {
		t.Fatal(err)
	}
	limited("nodes", "100")(pool)
	known, _ := x.Convert.Pool(pool)
	x.world.SetPool(known)
	x.mustPass()
	x.wantClaims(3)
}

// spec 46/108: the pods are deleted while nodes start. No node is given back as one of a
// group that could not start.
func TestNoRollBackOfGroupWithDeletedPods(t *testing.T) {
	x := newStorage(t)
	x.pool("p", nil)
	x.train3()
	for i := range 3 {
		x.world.DeletePod("default", fmt.Sprint("train-", i+1))
	}
	x.pod("other", "1", nil) // so that there is a pass
	x.said()
	x.mustPass()
	if got := x.saidOfGroup(); len(got) > 0 || x.left() < 3 {
		t.Errorf("said %q, %d claims left", got, x.left())
	}
	for _, n := range x.world.Snapshot(x.clock.Now()).Nodes {
		if n.Disruption.Returned {
			t.Errorf("node %s is given back", n.Name)
		}
	}
}

// spec 46/104: the process dies after the second of three claims. The next one completes
// the purchase.
func TestCrashWhileLaunchingAGroup(t *testing.T) {
	x := newStorage(t)
	x.pool("p", nil)
	created := 0
	x.Parallel = 1
	x.fail = func(*v1.NodeClaim) error {
		if created++; created == 3 {
			return fmt.Errorf("the process is dead")
		}
		return nil
	}
	x.tell(gang("train", 3))
	x.train(3, scheduled)
	if err := x.passes(); err == nil {
		t.Fatal("no failure")
	}
	x.wantClaims(2)

	next := newStorage(t)
	next.Client, next.Live = x.Client, x.Client
	next.pooled = x.pooled
	pool := &v1.NodePool{}
	if err := x.Client.Get(t.Context(), client.ObjectKey{Name: "p"}, pool); err != nil {
		t.Fatal(err)
	}
	known, _ := next.Convert.Pool(pool)
	next.world.SetPool(known)
	for _, c := range x.claims() {
		known, _ := next.Convert.Claim(&c)
		next.world.SetClaim(known)
	}
	next.tell(gang("train", 3))
	next.train(3, scheduled)
	next.mustPass()
	next.wantClaims(3)
}

// A launch that is rejected because the limit has been lowered since the plan was made
// keeps all nodes of its group from being launched, and no others.
func TestGroupIsLaunchedWholeOrNotAtAll(t *testing.T) {
	launch := func(pool string, pods ...model.Pod) model.Launch { return model.Launch{Pool: pool, Pods: pods} }
	a, b, web := model.Pod{Name: "a", Group: "g"}, model.Pod{Name: "b", Group: "g"}, model.Pod{Name: "web"}
	admitted, refused := whole([]model.Launch{launch("p", a, web), launch("p", web)}, []refusal{{launch("q", b), "its limit"}})
	if len(admitted) != 1 || admitted[0].Pods[0].Name != "web" || len(refused) != 2 || refused[1].why != "another node for PodGroup g cannot be launched" {
		t.Errorf("admitted %v, refused %v", admitted, refused)
	}
	other, last := model.Pod{Name: "c", Group: "h"}, model.Pod{Name: "d", Group: "h"}
	admitted, refused = whole([]model.Launch{launch("p", last), launch("p", a, other)}, []refusal{{launch("q", b), "its limit"}})
	if len(admitted) != 0 || len(refused) != 3 || refused[2].why != "another node for PodGroup h cannot be launched" {
		t.Errorf("a launch is for both groups: admitted %v, refused %v", admitted, refused)
	}
	admitted, refused = whole([]model.Launch{launch("p", a)}, []refusal{{launch("q", web), "its limit"}})
	if len(admitted) != 1 || len(refused) != 1 {
		t.Errorf("admitted %v, refused %v", admitted, refused)
	}
}

// spec 46/113: the zone of the group has no more capacity for the third node. All are
// launched in another one, and what was launched in the first is deleted.
func TestAnotherZone(t *testing.T) {
	x := newStorage(t)
	x.pool("p", nil)
	g := gang("train", 3)
	g.UID = "uid-group"
	g.Spec.SchedulingConstraints = &schedulingv1beta1.PodGroupSchedulingConstraints{Topology: []schedulingv1beta1.TopologyConstraint{{Key: corev1.LabelTopologyZone}}}
	x.tell(g)
	x.train(3, scheduled)
	x.mustPass()
	claims := x.wantClaims(3)
	zone := demandedZone(&claims[0])
	for i := range claims {
		known, _ := x.Convert.Claim(&claims[i])
		x.world.SetClaim(known)
	}
	x.sellOut(zone)
	x.lose(&claims[2])
	x.mustPass()
	elsewhere := 0
	for _, c := range x.claims() {
		switch there := demandedZone(&c); {
		case there == zone && c.DeletionTimestamp == nil:
			t.Errorf("claim %s is left in zone %s", c.Name, zone)
		case there != zone:
			elsewhere++
		}
	}
	if elsewhere != 3 {
		t.Errorf("%d claims in other zones", elsewhere)
	}
	if got := x.saidOfGroup(); len(got) != 2 {
		t.Errorf("said %q", got)
	}
}

// demandedZone returns the zone that the claim demands.
func demandedZone(claim *v1.NodeClaim) string {
	for _, r := range claim.Spec.Requirements {
		if r.Key == corev1.LabelTopologyZone && len(r.Values) == 1 {
			return r.Values[0]
		}
	}
	return ""
}
