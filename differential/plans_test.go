package differential

import (
	"fmt"
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
	})
}

func testPlans(t *testing.T, n int, draw func(dice) *market) {
	scheduler, used, total := newScheduler(t), excuses{}, tally{}
	each(t, n, func(seed int) (*situation, *model.Snapshot, []string) {
		g := newDice(seed, nil)
		l := draw(g)
		snapshot := l.situation.world(l.convert).Snapshot(now())
		made, err := attempt(snapshot)
		if err != nil {
			return l.situation, nil, []string{err.Error()}
		}
		scheduler.know(l.situation.namespaces, l.situation.storage)
		for _, choose := range []func(launch *model.Launch, from []cloud.Choice) cloud.Choice{
			planned,
			func(_ *model.Launch, from []cloud.Choice) cloud.Choice { return pick(g, from...) },
		} {
			j := judge{scheduler: scheduler, situation: l.situation, snapshot: snapshot, used: used, tally: total}
			j.whole(l, made, choose)
			if len(j.wrong) > 0 {
				return l.situation, snapshot, j.wrong
			}
		}
		return l.situation, snapshot, nil
	})
	total.check(t, used)
}

// planned chooses the machine the plan counts on.
func planned(launch *model.Launch, from []cloud.Choice) cloud.Choice {
	for _, c := range from {
		if c.Type.Name == launch.Type && c.Offering.Zone() == launch.Zone && c.Offering.CapacityType() == launch.CapacityType {
			return c
		}
	}
	panic(fmt.Sprintf("the claim does not allow the planned %s in %s as %s", launch.Type, launch.Zone, launch.CapacityType))
}

// whole carries out a plan, launches becoming what choose says.
func (j *judge) whole(l *market, plan *model.Plan, choose func(*model.Launch, []cloud.Choice) cloud.Choice) {
	j.nodes, j.pods = j.situation.settled(), j.situation.pods
	want := j.placements(plan)
	for i := range plan.Launches {
		launch := &plan.Launches[i]
		claim := l.convert.NodeClaimFor(launch, l.pool(launch.Pool), nil)
		machines := l.machinesFor(claim)
		if len(machines) == 0 {
			j.fail("launch %d can become no machine", i)
			return
		}
		node := started(claim, choose(launch, machines), fmt.Sprintf("launch-%d", i))
		j.nodes = append(j.nodes, node)
		for _, ref := range launch.Pods {
			want = append(want, binding{j.situation.pod(ref.Key()), node.Name})
		}
	}
	for _, n := range j.nodes {
		j.bindDaemons(n)
	}
	j.bind(want)
	if len(j.wrong) > 0 {
		return
	}
	left := j.leftovers(plan)
	if len(left) == 0 {
		return
	}
	j.offer(left, j.nodes...)
	for _, n := range l.launchable(j.snapshot) {
		with := *j
		with.nodes = append(with.nodes[:len(with.nodes):len(with.nodes)], n)
		with.pods = with.pods[:len(with.pods):len(with.pods)]
		with.bindDaemons(n)
		with.offer(left, n)
		j.wrong = with.wrong
	}
}

// machinesFor returns all machines the claim allows.
func (l *market) machinesFor(claim *v1.NodeClaim) []cloud.Choice {
	var out []cloud.Choice
	for c := range cloud.Choices(l.offered, cloud.Demand(claim), claim.Spec.Resources.Requests) {
		out = append(out, c)
	}
	return out
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
func (l *market) launchable(s *model.Snapshot) []*corev1.Node {
	var out []*corev1.Node
	for i := range s.Pools {
		for _, labelled := range settle(s.Pools[i].Requirements) {
			launch := &model.Launch{Pool: s.Pools[i].Name, Requirements: labelled}
			for _, t := range []string{v1.CapacityTypeOnDemand, v1.CapacityTypeSpot} {
				if r, ok := labelled.Get(model.LabelCapacityType); !ok || r.Has(t) {
					launch.CapacityTypes = append(launch.CapacityTypes, t)
				}
			}
			claim := l.convert.NodeClaimFor(launch, l.pool(launch.Pool), nil)
			for _, c := range l.machinesFor(claim) {
				out = append(out, started(claim, c, fmt.Sprintf("new-%d", len(out))))
			}
		}
	}
	return out
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
	if g.maybe(20) {
		l.daemons = append(l.daemons, g.porter())
	}
	return l
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
