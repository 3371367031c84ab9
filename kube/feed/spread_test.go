// SPDX-License-Identifier: Apache-2.0

package feed_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "karpenter/api/v1"
	"karpenter/kube/convert"
	"karpenter/kube/feed"
	"karpenter/kube/spread"
	"karpenter/kube/volumes"
	"karpenter/model"
	"karpenter/scenario"
	"karpenter/world"
)

// spreading is a fixture with default constraints.
func spreading(t *testing.T) *fixture {
	t.Helper()
	c := convert.Converter{Axis: model.NewAxis(), Labels: v1.DefaultLabels()}
	x := &fixture{t: t, informers: &informertest.FakeInformers{Scheme: newScheme(t)}, world: world.New(c.Axis, c.WellKnown())}
	defaults := []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule}}
	var err error
	x.feed, err = feed.Start(t.Context(), x.informers, x.world, c, feed.Sources{
		Volumes: volumes.New(c.Labels, volumes.Rules{}), Spread: spread.New(defaults),
	})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// spreads tells by which selectors pending pods are spread.
func (x *fixture) spreads() string {
	var out []string
	for _, p := range x.world.Snapshot(now()).Pending {
		for _, s := range p.Shape.Spread {
			out = append(out, s.Select.Labels.String())
		}
	}
	return strings.Join(out, "; ")
}

// spec 20/113: the planner hears which constraints may be abandoned.
func TestDefaultSpreadIsHardOrSoft(t *testing.T) {
	c := convert.Converter{Axis: model.NewAxis(), Labels: v1.DefaultLabels()}
	c.Spread = func(*corev1.Pod) []corev1.TopologySpreadConstraint {
		return []corev1.TopologySpreadConstraint{
			{MaxSkew: 1, MinDomains: ptr.To[int32](3), TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{}},
			{MaxSkew: 2, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: &metav1.LabelSelector{}},
		}
	}
	got := scenario.ShapeText(c.Pod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default"}}).Shape, c.Axis.Names())
	if want := `spread="zone skew=1 min=3 of any; host skew=2 soft of any"`; got != want {
		t.Errorf("the shape is %s, want %s", got, want)
	}
}

// spec 20/107 spec 20/108 spec 20/110: a pod is spread as soon as anything says
// over what, in whatever order the news comes, and no longer than that. What it
// says itself comes first.
func TestDefaultSpread(t *testing.T) {
	x := spreading(t)
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "web-1", UID: "u", Labels: map[string]string{"app": "web"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", Controller: ptr.To(true)}},
		},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Reason: corev1.PodReasonUnschedulable}}},
	}
	meta := metav1.ObjectMeta{Namespace: "default", Name: "web"}
	replicas := &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}
	service := &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "web"}}}
	other := service.DeepCopy()
	other.Name, other.Spec.Selector = "other", map[string]string{"app": "other"}
	own := p.DeepCopy()
	own.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 2, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"own": "yes"}},
	}}
	for i, step := range []struct {
		event string
		obj   client.Object
		want  string
	}{
		{"add", p, ""},
		{"add", replicas, "app In [web]"},
		{"delete", replicas, ""},
		{"add", service, "app In [web]"},
		{"add", other, "app In [web]"},
		{"delete", service, ""},
		{"add", replicas, "app In [web]"},
		{"update", own, "own In [yes]"},
		{"delete", replicas, "own In [yes]"},
		{"add", service, "own In [yes]"},
		{"update", p, "app In [web]"},
		{"delete", p, ""},
	} {
		x.tell(step.event, step.obj)
		if got := x.spreads(); got != step.want {
			t.Errorf("step %d: after %s of %T the pod is spread over %q, want %q", i, step.event, step.obj, got, step.want)
		}
	}
}
