// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/kwok"
	"karpenter/model"
)

// Whole plans, of nodes there are and nodes to launch: there is an order in
// which the scheduler binds all their pods, whatever the launches become. Then
// it accepts no pod that we leave, on no node there is and on no node that a
// pool could launch.
func TestPlans(t *testing.T) {
	testPlans(t, 2000, func(g dice) *market {
		l := g.town(t)
		for i := range 1 + g.IntN(4) {
			l.pods = append(l.pods, waiting(g.deployment(fmt.Sprintf("web%d", i), pick(g, 1, 1, 2, 3))...)...)
		}
		return l
	}, except().rarely(leavingDrawsNobody(), 759004963374).rarely(leavingKeepsAway(), 759004962836).
		rarely(daemonsOfSomeZones(), 759004962723).rarely(daemonsToCome(), 496396141418).rarely(undecidedMachines(), 759004963050))
}

func testPlans(t *testing.T, n int, draw func(dice) *market, used *excuses) {
	scheduler, total := newScheduler(t), tally{}
	each(t, n, mayForget, used, func(seed int) (*situation, *model.Snapshot, findings) {
		g := newDice(seed, nil)
		l := draw(g)
		snapshot := l.situation.world(l.convert).Snapshot(now())
		made, err := attempt(snapshot)
		if err != nil {
			return l.situation, nil, findings{wrong: []string{err.Error()}}
		}
		scheduler.know(l.situation)
		random := func(from []cloud.Choice, _ *model.Launch) cloud.Choice { return pick(g, from...) }
		for _, become := range []becoming{planned, random} {
			j := judge{scheduler: scheduler, situation: l.situation, snapshot: snapshot, used: used, tally: total, places: l.places}
			j.whole(l, made, become)
			if len(j.wrong)+len(j.forgotten) > 0 {
				return l.situation, snapshot, j.findings
			}
		}
		return l.situation, snapshot, findings{}
	})
	total.check(t, used)
}

// becoming chooses the machine that a claim becomes, made for a launch of the
// plan or, without one, on its way already.
type becoming func(from []cloud.Choice, launch *model.Launch) cloud.Choice

// planned chooses the machine the plan counts on.
func planned(from []cloud.Choice, launch *model.Launch) cloud.Choice {
	if launch == nil {
		return from[0]
	}
	for _, c := range from {
		if c.Type.Name == launch.Type && c.Offering.Zone() == launch.Zone && c.Offering.CapacityType() == launch.CapacityType {
			return c
		}
	}
	panic(fmt.Sprintf("the claim does not allow the planned %s in %s as %s", launch.Type, launch.Zone, launch.CapacityType))
}

// whole carries out a plan.
func (j *judge) whole(l *market, plan *model.Plan, become becoming) {
	j.nodes, j.pods, j.could = j.situation.settled(), j.situation.running(), map[string][]*corev1.Node{}
	j.account(plan)
	want := j.placements(plan)
	for _, c := range l.inFlight {
		n := j.startAny(l, c, func(from []cloud.Choice) cloud.Choice { return become(from, nil) })
		n.Status.Allocatable = c.Spec.Resources.Requests.DeepCopy() // all that is sure, besides what daemons take
		n.Status.Allocatable[corev1.ResourcePods] = *resource.NewQuantity(n.Status.Allocatable.Pods().Value()+int64(len(l.daemons)), resource.DecimalSI)
	}
	for i := range plan.Launches {
		launch := &plan.Launches[i]
		claim := l.convert.NodeClaimFor(launch, l.pool(launch.Pool), nil)
		claim.Name = fmt.Sprintf("launch-%d", i)
		node := j.startAny(l, claim, func(from []cloud.Choice) cloud.Choice { return become(from, launch) })
		if node == nil {
			j.fail("launch %d can become no machine", i)
			return
		}
		for _, ref := range launch.Pods {
			want = append(want, binding{j.situation.unbound(ref.Key()), node.Name})
		}
	}
	for _, n := range j.nodes {
		j.bindDaemons(n)
	}
	j.bind(want)
	if left := j.leftovers(plan); len(j.wrong) == 0 && len(left) > 0 {
		j.offer(left, j.nodes...)
		for _, n := range l.launchable() {
			j.offerNew(left, n)
		}
	}
}

// offerNew offers one more node, with its daemons, to the pods that are left.
func (j *judge) offerNew(left []leftover, n *corev1.Node) {
	more := *j
	more.nodes, more.pods = append(slices.Clip(j.nodes), n), slices.Clip(j.pods)
	more.bindDaemons(n)
	more.offer(left, n)
	j.findings = more.findings
}

// startAny starts one of the machines the claim could become, and returns its
// Node; nil if there is none.
func (j *judge) startAny(l *market, claim *v1.NodeClaim, choose func([]cloud.Choice) cloud.Choice) *corev1.Node {
	machines := l.machinesFor(claim)
	if len(machines) == 0 {
		return nil
	}
	for _, c := range append(machines[:len(machines):len(machines)], l.soldOut(claim)...) {
		j.could[claim.Name] = append(j.could[claim.Name], started(claim, c, claim.Name))
	}
	n := started(claim, choose(machines), claim.Name)
	j.nodes = append(j.nodes, n)
	return n
}

// machinesFor returns all machines the claim allows.
func (l *market) machinesFor(claim *v1.NodeClaim) []cloud.Choice {
	var out []cloud.Choice
	for c := range cloud.Choices(l.offered, cloud.Demand(claim), claim.Spec.Resources.Requests) {
		out = append(out, c)
	}
	return out
}

// soldOut returns the machines that a claim on its way may have become before
// they were sold out.
func (l *market) soldOut(claim *v1.NodeClaim) []cloud.Choice {
	if !slices.Contains(l.inFlight, claim) {
		return nil
	}
	then := &market{}
	for _, t := range l.offered {
		kind := *t
		kind.Offerings = slices.Clone(t.Offerings)
		for i := range kind.Offerings {
			kind.Offerings[i].Available = !kind.Offerings[i].Available
		}
		then.offered = append(then.offered, &kind)
	}
	return then.machinesFor(claim)
}

// started returns the Node of a machine launched for the claim.
func started(claim *v1.NodeClaim, c cloud.Choice, name string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Labels: c.Labels(claim)}}
	n.Labels[corev1.LabelHostname] = name
	n.Labels[v1.NodeRegisteredLabelKey], n.Labels[v1.NodeInitializedLabelKey] = "true", "true"
	n.Spec.Taints = v1.CoreTaints(claim.Spec.Taints)
	n.Status.Capacity, n.Status.Allocatable = c.Capacity(), c.Allocatable()
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return n
}

// launchable returns a node of each kind the pools could launch.
func (l *market) launchable() []*corev1.Node {
	var out []*corev1.Node
	for _, pool := range l.pools {
		spec, _ := l.convert.Pool(pool)
		for _, labelled := range settle(spec.Requirements) {
			launch := &model.Launch{Pool: pool.Name, Requirements: labelled, CapacityTypes: capacityTypes(labelled)}
			claim := l.convert.NodeClaimFor(launch, pool, nil)
			for _, c := range l.machinesFor(claim) {
				out = append(out, started(claim, c, fmt.Sprintf("new-%d", len(out))))
			}
		}
	}
	return out
}

// places returns a full node for everywhere that the pools can launch one.
func (l *market) places() []*corev1.Node {
	out := l.launchable()
	for i, n := range out {
		out[i] = full(n, fmt.Sprintf("place-%d", i))
	}
	return out
}

// full returns another such node that has no room.
func full(n *corev1.Node, name string) *corev1.Node {
	n = n.DeepCopy()
	n.Name, n.UID = name, types.UID("uid-"+name)
	n.Labels[corev1.LabelHostname] = name
	n.Status.Allocatable = nil
	return n
}

func capacityTypes(rs model.Requirements) []string {
	return slices.DeleteFunc([]string{v1.CapacityTypeOnDemand, v1.CapacityTypeSpot}, func(t string) bool {
		r, ok := rs.Get(model.LabelCapacityType)
		return ok && !r.Has(t)
	})
}

// settle returns the requirements once for each value that the label "team",
// which is nobody's but the user's, may have.
func settle(rs model.Requirements) []model.Requirements {
	r, ok := rs.Get("team")
	if !ok || r.Complement {
		return []model.Requirements{rs}
	}
	var out []model.Requirements
	for _, v := range r.Values {
		out = append(out, rs.And(model.NewRequirement("team", model.In, v)))
	}
	return out
}

// town draws pools and nodes with pods on them.
func (g dice) town(t *testing.T) *market {
	t.Helper()
	catalogue, err := kwok.NewCatalogue(g.fewTypes())
	if err != nil {
		t.Fatal(err)
	}
	l := &market{situation: &situation{namespaces: namespaces()}, convert: converter(v1.DefaultLabels().With(catalogue.Labels())), offered: catalogue.Types()}
	if g.maybe(30) {
		o := pick(g, pick(g, l.offered...).Offerings...)
		for _, t := range l.offered {
			for i := range t.Offerings { // a zone where some kind of capacity is sold out
				if t.Offerings[i].Zone() == o.Zone() && t.Offerings[i].CapacityType() == o.CapacityType() {
					t.Offerings[i].Available = false
				}
			}
		}
	}
	l.types = cloud.Types(l.convert.Axis, l.offered)
	for i := range pick(g, 1, 1, 2, 3) {
		l.pools = append(l.pools, g.plainPool(fmt.Sprintf("pool-%d", i)))
	}
	g.streets(l.situation, pick(g, 0, 1, 2, 3, 4, 6))
	for _, n := range l.nodes {
		if g.maybe(50) {
			g.adopt(l, n)
		}
	}
	for i := range pick(g, 0, 0, 0, 1, 2) {
		g.order(l, fmt.Sprintf("ordered-%d", i))
	}
	if g.maybe(20) {
		l.daemons = append(l.daemons, g.porter())
	}
	return l
}

// adopt makes the node one that was launched for a pool; now and then one that
// is going away.
func (g dice) adopt(l *market, n *corev1.Node) {
	pool := pick(g, l.pools...)
	n.Spec.ProviderID = "machine://" + n.Name
	n.Labels[corev1.LabelInstanceTypeStable] = pick(g, l.offered...).Name
	n.Labels[v1.CapacityTypeLabelKey] = pick(g, v1.CapacityTypeOnDemand, v1.CapacityTypeSpot)
	n.Labels[v1.NodePoolLabelKey] = pool.Name
	n.Labels[v1.NodeRegisteredLabelKey], n.Labels[v1.NodeInitializedLabelKey] = "true", "true"
	c := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim-of-" + n.Name, UID: types.UID("uid-claim-" + n.Name), Labels: n.Labels}}
	c.Spec.NodeClassRef = pool.Spec.Template.Spec.NodeClassRef
	c.Status.ProviderID, c.Status.NodeName = n.Spec.ProviderID, n.Name
	c.Status.Capacity, c.Status.Allocatable = n.Status.Capacity, n.Status.Allocatable
	if g.maybe(15) {
		c.DeletionTimestamp, n.DeletionTimestamp = ptr.To(metav1.NewTime(now())), ptr.To(metav1.NewTime(now()))
	}
	l.claims = append(l.claims, c)
}

// order makes a claim of a pool that is on its way: it may become several
// machines, and has room for two small pods.
func (g dice) order(l *market, name string) {
	pool := pick(g, l.pools...)
	spec, _ := l.convert.Pool(pool)
	launch := &model.Launch{
		Pool: pool.Name, Requirements: pick(g, settle(spec.Requirements)...), CapacityTypes: capacityTypes(spec.Requirements),
		Requests: model.Resources{}.With(model.CPU, 200).With(model.Pods, 2),
	}
	if g.maybe(40) {
		launch.Requirements = launch.Requirements.And(model.NewRequirement(model.LabelZone, model.In, pick(g, zones()...)))
	}
	for _, t := range l.offered {
		pods := t.Allocatable()[corev1.ResourcePods]
		if _, ok := t.Requirements.Intersects(launch.Requirements); ok && pods.Value() >= 2 {
			launch.Types = append(launch.Types, t.Name)
		}
	}
	claim := l.convert.NodeClaimFor(launch, pool, nil)
	claim.Name, claim.UID = name, types.UID("uid-"+name)
	if len(l.machinesFor(claim)) > 0 {
		l.claims = append(l.claims, claim)
		l.inFlight = append(l.inFlight, claim)
	}
}

// fewTypes draws two or three types in three zones.
func (g dice) fewTypes() []kwok.Entry {
	var out []kwok.Entry
	for i, name := range []string{"small", "medium", "large"}[:2+g.IntN(2)] {
		e := kwok.Entry{
			Name: name, Architecture: pick(g, "amd64", "amd64", "arm64"), OperatingSystems: []corev1.OSName{corev1.Linux},
			Resources: corev1.ResourceList{
				corev1.ResourceCPU:    resource.MustParse(fmt.Sprint(2 << i)),
				corev1.ResourceMemory: resource.MustParse("8Gi"),
				corev1.ResourcePods:   *resource.NewQuantity(int64(1+g.IntN(3<<i)), resource.DecimalSI),
			},
		}
		for _, zone := range zones()[pick(g, 0, 0, 0, 1, 2):] {
			for _, capacityType := range []string{v1.CapacityTypeOnDemand, v1.CapacityTypeSpot}[g.IntN(2):] {
				e.Offerings = append(e.Offerings, kwok.NewOffering(zone, capacityType, float64(1+g.IntN(20))/10))
			}
		}
		out = append(out, e)
	}
	return out
}

func (g dice) plainPool(name string) *v1.NodePool {
	class := nodeClass()
	p := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)}}
	if g.maybe(40) {
		p.Spec.Weight = ptr.To(int32(1 + g.IntN(2)))
	}
	spec := &p.Spec.Template.Spec
	spec.NodeClassRef = &class
	demand := func(percent int, key string, values ...string) {
		if chosen := some(g, 60, values...); g.maybe(percent) && len(chosen) > 0 {
			spec.Requirements = append(spec.Requirements, v1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn, Values: chosen})
		}
	}
	demand(40, corev1.LabelTopologyZone, zones()...)
	demand(20, v1.CapacityTypeLabelKey, v1.CapacityTypeOnDemand, v1.CapacityTypeSpot)
	demand(50, "team", "red", "blue")
	if g.maybe(20) {
		spec.Taints = []v1.Taint{{Key: "dedicated", Value: "x", Effect: pick(g, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule)}}
	}
	p.StatusConditions(now()).SetTrue(v1.ValidationSucceededCondition)
	p.StatusConditions(now()).SetTrue(v1.NodeClassReadyCondition)
	return p
}

// porter draws a DaemonSet that takes a port of every node it runs on.
func (g dice) porter() *appsv1.DaemonSet {
	d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "porter", UID: "uid-porter"}}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main"}}
	d.Spec.Template.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 8080, Protocol: corev1.ProtocolTCP, HostIP: pick(g, "", "10.0.0.1")}}
	if g.maybe(30) {
		d.Spec.Template.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: pick(g, zones()...)}
	}
	return d
}
