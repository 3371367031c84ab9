// SPDX-License-Identifier: Apache-2.0

package spread_test

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"karpenter/kube/spread"
)

func constraints() []corev1.TopologySpreadConstraint {
	return []corev1.TopologySpreadConstraint{
		{MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule, MinDomains: ptr.To[int32](2)},
		{MaxSkew: 5, TopologyKey: "host", WhenUnsatisfiable: corev1.ScheduleAnyway},
	}
}

func meta(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "default", Name: name} }

// pairs reads "a=1 b=2".
func pairs(text string) map[string]string {
	out := map[string]string{}
	for _, w := range strings.Fields(text) {
		k, v, _ := strings.Cut(w, "=")
		out[k] = v
	}
	return out
}

// pod has labels and is owned by "apps/v1 ReplicaSet web".
func pod(name, labels, controller string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: meta(name)}
	p.Labels = pairs(labels)
	if f := strings.Fields(controller); len(f) == 3 {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: f[0], Kind: f[1], Name: f[2], Controller: ptr.To(true)}}
	}
	return p
}

func service(name, selector string) *corev1.Service {
	return &corev1.Service{ObjectMeta: meta(name), Spec: corev1.ServiceSpec{Selector: pairs(selector)}}
}

func replicaSet(name, selector string) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{ObjectMeta: meta(name), Spec: appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{MatchLabels: pairs(selector)}}}
}

func statefulSet(name, selector string) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{ObjectMeta: meta(name), Spec: appsv1.StatefulSetSpec{Selector: &metav1.LabelSelector{MatchLabels: pairs(selector)}}}
}

// selectorOf returns the selector of a pod's constraints, "" when it has none.
func selectorOf(t *testing.T, s *spread.Store, p *corev1.Pod) string {
	t.Helper()
	got := s.Of(p)
	if got == nil {
		return ""
	}
	want := constraints()
	for i := range want {
		want[i].LabelSelector = got[0].LabelSelector
		if len(got) != len(want) || got[i].String() != want[i].String() {
			t.Fatalf("constraints are\n%v\nwant the default ones with one selector\n%v", got, want)
		}
	}
	return metav1.FormatLabelSelector(got[0].LabelSelector)
}

// spec 45/56: what pods are spread over by default.
func TestDefaultSpreadOfPods(t *testing.T) {
	s := spread.New(constraints())
	s.SetService(service("web", "app=web"))
	s.SetService(service("web-and-team", "app=web team=a"))
	s.SetService(service("everything", ""))
	nobody := service("nobody", "")
	nobody.Spec.Selector = nil
	s.SetService(nobody)
	s.SetReplicaSet(replicaSet("web-1", "app=web hash=1"))
	s.SetReplicaSet(replicaSet("web-2", "app=web hash=2"))
	s.SetReplicaSet(replicaSet("odd", "app=other"))
	s.SetStatefulSet(statefulSet("db", "app=db"))
	s.SetReplicationController(&corev1.ReplicationController{ObjectMeta: meta("old"), Spec: corev1.ReplicationControllerSpec{Selector: pairs("app=old")}})
	unreadable := replicaSet("unreadable", "")
	unreadable.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}
	s.SetReplicaSet(unreadable)
	elsewhere := service("elsewhere", "app=alone")
	elsewhere.Namespace = "elsewhere"
	s.SetService(elsewhere)

	own := pod("own", "app=web", "")
	own.Spec.TopologySpreadConstraints = constraints()[:1]
	reference := pod("reference", "app=x", "apps/v1 StatefulSet db")
	reference.OwnerReferences[0].Controller = nil
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"spec 20/107: of a ReplicaSet":                    {pod("a", "app=none", "apps/v1 ReplicaSet web-1"), "app in (web),hash in (1)"},
		"spec 20/107: of a StatefulSet":                   {pod("a", "app=none", "apps/v1 StatefulSet db"), "app in (db)"},
		"spec 20/107: of a ReplicationController":         {pod("a", "app=none", "v1 ReplicationController old"), "app=old"},
		"spec 20/108: constraints of its own":             {own, ""},
		"spec 20/109: neither owner nor service":          {pod("a", "app=alone", ""), ""},
		"spec 20/109: an owner that does not count":       {pod("a", "app=alone", "batch/v1 Job j"), ""},
		"spec 20/109: an owner that is not there":         {pod("a", "app=alone", "apps/v1 ReplicaSet gone"), ""},
		"spec 20/109: an owner of another group":          {pod("a", "app=alone", "example.com/v1 ReplicaSet web-1"), ""},
		"spec 20/109: an owner that does not control":     {reference, ""},
		"spec 20/109: an owner with a bad selector":       {pod("a", "app=alone", "apps/v1 ReplicaSet unreadable"), ""},
		"spec 20/110: services alone":                     {pod("a", "app=web", ""), "app=web"},
		"spec 20/110: all services that select the pod":   {pod("a", "app=web team=a", ""), "app=web,team=a"},
		"spec 20/111: a controller overwrites a service":  {pod("a", "app=web team=a", "v1 ReplicationController old"), "app=old,team=a"},
		"spec 20/111: a ReplicaSet narrows it to nothing": {pod("a", "app=web", "apps/v1 ReplicaSet odd"), "app=web,app in (other)"},
		"spec 20/112: revisions are told apart, one":      {pod("a", "app=web hash=1", "apps/v1 ReplicaSet web-1"), "app=web,app in (web),hash in (1)"},
		"spec 20/112: revisions are told apart, two":      {pod("a", "app=web hash=2", "apps/v1 ReplicaSet web-2"), "app=web,app in (web),hash in (2)"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := selectorOf(t, s, test.pod); got != test.want {
				t.Errorf("selector %q, want %q", got, test.want)
			}
		})
	}
}

// Every change names the pods it concerns, and no others.
func TestChanges(t *testing.T) {
	s := spread.New(constraints())
	web, db, own := pod("web", "app=web", "apps/v1 ReplicaSet r"), pod("db", "app=db", "apps/v1 StatefulSet s"), pod("own", "app=web", "")
	own.Spec.TopologySpreadConstraints = constraints()
	old, ended := pod("old", "app=old", "v1 ReplicationController c"), pod("ended", "app=web", "")
	ended.Status.Phase = corev1.PodSucceeded
	for _, p := range []*corev1.Pod{web, db, own, old, ended} {
		s.SetPod(p)
	}
	steps := []struct {
		what string
		got  func() []*corev1.Pod
		want string
	}{
		{"a service for one", func() []*corev1.Pod { return s.SetService(service("v", "app=web")) }, "web"},
		{"the same again", func() []*corev1.Pod { return s.SetService(service("v", "app=web")) }, ""},
		{"for another", func() []*corev1.Pod { return s.SetService(service("v", "app=db")) }, "db web"},
		{"gone", func() []*corev1.Pod { return s.DeleteService(service("v", "app=db")) }, "db"},
		{"for all, which says nothing", func() []*corev1.Pod { return s.SetService(service("v", "")) }, ""},
		{"a ReplicaSet", func() []*corev1.Pod { return s.SetReplicaSet(replicaSet("r", "app=web")) }, "web"},
		{"the same again", func() []*corev1.Pod { return s.SetReplicaSet(replicaSet("r", "app=web")) }, ""},
		{"another's", func() []*corev1.Pod { return s.SetReplicaSet(replicaSet("q", "app=web")) }, ""},
		{"gone", func() []*corev1.Pod { return s.DeleteReplicaSet(replicaSet("r", "")) }, "web"},
		{"a StatefulSet", func() []*corev1.Pod { return s.SetStatefulSet(statefulSet("s", "app=db")) }, "db"},
		{"gone", func() []*corev1.Pod { return s.DeleteStatefulSet(statefulSet("s", "")) }, "db"},
		{"a ReplicationController", func() []*corev1.Pod {
			return s.SetReplicationController(&corev1.ReplicationController{ObjectMeta: meta("c"), Spec: corev1.ReplicationControllerSpec{Selector: pairs("app=old")}})
		}, "old"},
		{"gone", func() []*corev1.Pod {
			return s.DeleteReplicationController(&corev1.ReplicationController{ObjectMeta: meta("c")})
		}, "old"},
		{"when the pod is gone", func() []*corev1.Pod {
			s.DeletePod(web)
			return s.SetReplicaSet(replicaSet("r", "app=web"))
		}, ""},
		{"when the pod is another's", func() []*corev1.Pod {
			s.SetPod(pod("db", "app=db", "apps/v1 ReplicaSet q"))
			return append(s.SetStatefulSet(statefulSet("s", "app=db")), s.DeleteReplicaSet(replicaSet("q", ""))...)
		}, "db"},
	}
	for i, step := range steps {
		var names []string
		for _, p := range step.got() {
			names = append(names, p.Name)
		}
		slices.Sort(names)
		if got := strings.Join(names, " "); got != step.want {
			t.Errorf("step %d, %s: pods %q change, want %q", i, step.what, got, step.want)
		}
	}
}
