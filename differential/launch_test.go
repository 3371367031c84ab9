// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/kwok"
	"karpenter/kube/convert"
	"karpenter/model"
)

// New nodes: whatever a launch becomes, the scheduler accepts all its pods on
// the Node, beside the daemons that run there; and of a machine a pool could
// launch it accepts no pod that we leave.
func TestLaunches(t *testing.T) {
	scheduler, scheme, total := newScheduler(t), allTypes(t), tally{}
	used := except().rarely(greedyDaemons(), 759004961646).also(perNode(), naturalNumbers(), everyPlaceCounts())
	each(t, 130, mayForget, used, func(seed int) (*situation, *model.Snapshot, findings) {
		g := newDice(seed, launchKeys())
		l := g.market(t, scheme)
		snapshot := l.situation.world(l.convert).Snapshot(now())
		j := judge{scheduler: scheduler, situation: l.situation, snapshot: snapshot, used: used, tally: total}
		made, err := attempt(snapshot)
		if err != nil {
			return l.situation, nil, findings{wrong: []string{err.Error()}}
		}
		j.launches(l, made)
		j.others(g, l, j.leftovers(made))
		return l.situation, snapshot, j.findings
	})
	total.check(t, used)
}

// attempt plans, and returns an error where planning panics.
func attempt(snapshot *model.Snapshot) (made *model.Plan, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("planning panics: %v", r)
		}
	}()
	return plan(snapshot), nil
}

func launchKeys() []string {
	return append(labelKeys(), corev1.LabelInstanceTypeStable, v1.CapacityTypeLabelKey,
		"beta.kubernetes.io/arch", corev1.LabelInstanceType, corev1.LabelFailureDomainBetaZone)
}

// market is a situation without nodes in which some can be bought.
type market struct {
	*situation
	machines *machines
	convert  convert.Converter
	offered  []*cloud.InstanceType
	inFlight []*v1.NodeClaim // of claims, those that are not launched
}

func (g dice) market(t *testing.T, scheme *runtime.Scheme) *market {
	t.Helper()
	catalogue, err := kwok.NewCatalogue(g.entries())
	if err != nil {
		t.Fatal(err)
	}
	l := &market{
		situation: &situation{}, machines: newMachines(t, scheme, catalogue),
		convert: converter(v1.DefaultLabels().With(catalogue.Labels())),
		offered: catalogue.Types(),
	}
	l.situation.types = cloud.Types(l.convert.Axis, l.offered)
	for i := range 1 + g.IntN(2) {
		l.pools = append(l.pools, g.pool(fmt.Sprintf("pool-%d", i), l.convert.Labels))
	}
	for i := range pick(g, 0, 0, 1, 2) {
		l.daemons = append(l.daemons, g.daemon(i))
	}
	for i := range 1 + g.IntN(5) {
		l.pods = append(l.pods, g.pending(fmt.Sprintf("pending-%d", i), nil))
	}
	return l
}

func (g dice) entries() []kwok.Entry {
	var out []kwok.Entry
	for i, name := range []string{"small", "medium", "large"} {
		e := kwok.Entry{
			Name: name, Architecture: pick(g, "amd64", "amd64", "arm64"), OperatingSystems: []corev1.OSName{corev1.Linux},
			Resources: corev1.ResourceList{
				corev1.ResourceCPU:              resource.MustParse(fmt.Sprint(2 << i)),
				corev1.ResourceMemory:           resource.MustParse(pick(g, "2Gi", "8Gi", "15G")),
				corev1.ResourcePods:             *resource.NewQuantity(2+g.Int64N(9), resource.DecimalSI),
				corev1.ResourceEphemeralStorage: resource.MustParse("20Gi"),
			},
		}
		if g.maybe(40) {
			e.Resources[gpu] = *resource.NewQuantity(1+g.Int64N(4), resource.DecimalSI)
		}
		if g.maybe(30) { // a label of the type's own
			e.Requirements = append(e.Requirements, kwok.In("team", pick(g, "red", "blue")))
		}
		for _, zone := range []string{"a", "b"}[g.IntN(2):] {
			for _, capacityType := range []string{v1.CapacityTypeOnDemand, v1.CapacityTypeSpot}[g.IntN(2):] {
				o := kwok.NewOffering(zone, capacityType, float64(1+g.IntN(20))/10)
				if g.maybe(20) {
					o.LaunchError = kwok.InsufficientCapacity
				}
				e.Offerings = append(e.Offerings, o)
			}
		}
		out = append(out, e)
	}
	return out
}

func (g dice) pool(name string, labels v1.Labels) *v1.NodePool {
	class := nodeClass()
	for {
		p := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)}}
		if g.maybe(50) {
			p.Spec.Weight = ptr.To(int32(1 + g.IntN(2)))
		}
		spec := &p.Spec.Template.Spec
		spec.NodeClassRef = &class
		for range pick(g, 0, 1, 1, 2, 3) {
			e := g.expression()
			if slices.ContainsFunc(spec.Requirements, func(r v1.NodeSelectorRequirementWithMinValues) bool { return r.Key == e.Key }) || unmet(e) {
				continue // a pool that contradicts itself means nothing
			}
			spec.Requirements = append(spec.Requirements, v1.NodeSelectorRequirementWithMinValues{Key: e.Key, Operator: e.Operator, Values: e.Values})
		}
		if g.maybe(30) {
			const color = "example.com/color"
			value := pick(g, labelValues(color)...)
			if !slices.ContainsFunc(spec.Requirements, func(r v1.NodeSelectorRequirementWithMinValues) bool { return r.Key == color }) {
				p.Spec.Template.Labels = map[string]string{color: value}
			}
		}
		for _, t := range some(g, 7, taintPool()[:5]...) {
			spec.Taints = append(spec.Taints, v1.Taint(t))
		}
		if g.maybe(20) {
			spec.StartupTaints = []v1.Taint{{Key: "example.com/starting", Effect: corev1.TaintEffectNoSchedule}}
		}
		p.StatusConditions(now()).SetTrue(v1.ValidationSucceededCondition)
		p.StatusConditions(now()).SetTrue(v1.NodeClassReadyCondition)
		if v1.ValidateNodePool(p, labels) == nil {
			return p
		}
	}
}

// unmet reports whether no label and no lack of it meets the expression, such as
// a number above the largest there is.
func unmet(e corev1.NodeSelectorRequirement) bool {
	r := model.NewRequirement(e.Key, model.Operator(e.Operator), e.Values...)
	return r.Operator() == model.DoesNotExist && !r.AllowsAbsence()
}

func (l *market) pool(name string) *v1.NodePool {
	for _, p := range l.pools {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// launches carries the plan's launches out and binds their pods.
func (j *judge) launches(l *market, plan *model.Plan) {
	j.pods = j.situation.pods
	var want []binding
	for i := range plan.Launches {
		launch := &plan.Launches[i]
		node, err := l.machines.start(l.convert.NodeClaimFor(launch, l.pool(launch.Pool), nil))
		if err != nil {
			j.fail("launch %d does not start: %v", i, err)
		}
		if node == nil {
			continue // everything it lists is sold out
		}
		j.nodes = append(j.nodes, node)
		j.bindDaemons(node)
		for _, ref := range launch.Pods {
			want = append(want, binding{j.situation.unbound(ref.Key()), node.Name})
		}
	}
	j.bind(want)
}

// others launches a machine that each pool could launch beside those of the
// plan, and offers it to the pods that are left.
func (j *judge) others(g dice, l *market, left []leftover) {
	if len(left) == 0 {
		return
	}
	for _, p := range l.pools {
		t := pick(g, l.offered...)
		o := pick(g, t.Offerings...)
		requirements := j.pool(p.Name).Requirements
		if _, ok := t.Requirements.Intersects(requirements); !ok {
			continue
		}
		if !slices.Contains(capacityTypes(requirements), o.CapacityType()) {
			continue
		}
		claim := l.convert.NodeClaimFor(&model.Launch{
			Pool: p.Name, Types: []string{t.Name}, CapacityTypes: []string{o.CapacityType()},
			Requirements: requirements.And(model.NewRequirement(model.LabelZone, model.In, o.Zone())),
		}, p, nil)
		node, err := l.machines.start(claim)
		if err != nil {
			j.fail("a %s of %s does not start: %v", t.Name, p.Name, err)
		}
		if node == nil {
			continue // the pool excludes it, or it is sold out
		}
		j.offerNew(left, node)
	}
}

// pool returns the pool of the snapshot.
func (j *judge) pool(name string) *model.Pool {
	return &j.snapshot.Pools[slices.IndexFunc(j.snapshot.Pools, func(p model.Pool) bool { return p.Name == name })]
}
