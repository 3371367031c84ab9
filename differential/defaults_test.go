// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"karpenter/kube/spread"
)

// Default constraints: pods without constraints of their own are spread as the
// configuration of the scheduler says, over what Services and owners select.
func TestDefaultConstraints(t *testing.T) {
	testExisting(t, 2000, func(g dice) *situation {
		s := g.neighbourhood()
		s.defaults = &defaults{constraints: defaultConstraints()}
		for i := range pick(g, 0, 1, 2) {
			s.defaults.services = append(s.defaults.services, g.service(fmt.Sprintf("service-%d", i)))
		}
		for _, p := range s.pods {
			if g.maybe(70) {
				p.Spec.TopologySpreadConstraints = nil
			}
			p.Spec.Affinity.PodAffinity, p.Spec.Affinity.PodAntiAffinity = nil, nil
			if g.maybe(60) {
				s.defaults.own(g, p)
			}
		}
		return s
	}, except(), defaultConstraints()...)
}

func defaultConstraints() []corev1.TopologySpreadConstraint {
	return []corev1.TopologySpreadConstraint{
		{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, MinDomains: ptr.To[int32](2)},
		{MaxSkew: 2, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule, NodeAffinityPolicy: ptr.To(corev1.NodeInclusionPolicyIgnore)},
		{MaxSkew: 1, TopologyKey: corev1.LabelArchStable, WhenUnsatisfiable: corev1.ScheduleAnyway},
	}
}

// defaults is what default constraints are made of.
type defaults struct {
	constraints  []corev1.TopologySpreadConstraint
	services     []*corev1.Service
	controllers  []*corev1.ReplicationController
	replicaSets  []*appsv1.ReplicaSet
	statefulSets []*appsv1.StatefulSet
}

// service draws a Service.
func (g dice) service(name string) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: pick(g, "default", "default", "other", "third"), Name: name, UID: types.UID("uid-" + name)}}
	s.Spec.Selector = pick(g, nil, map[string]string{}, map[string]string{"app": "web"}, map[string]string{"app": "db"}, map[string]string{"version": "1"}, map[string]string{"app": "web", "version": "2"})
	return s
}

// own gives the pod an owner, which is there more often than not.
func (d *defaults) own(g dice, p *corev1.Pod) {
	kind := pick(g, "ReplicaSet", "ReplicaSet", "StatefulSet", "ReplicationController", "Job")
	meta := metav1.ObjectMeta{Namespace: p.Namespace, Name: "owner-of-" + p.Name, UID: types.UID("uid-owner-of-" + p.Name)}
	version := "apps/v1"
	selector := pick(g, selecting("app", p.Labels["app"]), selecting("version", p.Labels["version"]),
		&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"web", "db"}}}})
	switch there := g.maybe(80); {
	case kind == "ReplicaSet" && there:
		d.replicaSets = append(d.replicaSets, &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Selector: selector}})
	case kind == "StatefulSet" && there:
		d.statefulSets = append(d.statefulSets, &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Selector: selector}})
	case kind == "ReplicationController":
		version = "v1"
		if there {
			d.controllers = append(d.controllers, &corev1.ReplicationController{ObjectMeta: meta, Spec: corev1.ReplicationControllerSpec{Selector: map[string]string{"app": p.Labels["app"]}}})
		}
	case kind == "Job":
		version = "batch/v1"
	}
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: meta.Name, UID: meta.UID, Controller: ptr.To(g.maybe(90))}}
}

// spread takes in what default constraints are made of.
func (s *situation) spread() *spread.Store {
	out := spread.New(s.defaults.constraints)
	for _, v := range s.defaults.services {
		out.SetService(v)
	}
	for _, v := range s.defaults.controllers {
		out.SetReplicationController(v)
	}
	for _, v := range s.defaults.replicaSets {
		out.SetReplicaSet(v)
	}
	for _, v := range s.defaults.statefulSets {
		out.SetStatefulSet(v)
	}
	for _, p := range s.pods {
		out.SetPod(p)
	}
	return out
}
