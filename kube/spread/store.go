// SPDX-License-Identifier: Apache-2.0

package spread

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Store holds the objects from which the selectors of default constraints are
// derived. Create one with New. It is for one goroutine at a time.
type Store struct {
	constraints []corev1.TopologySpreadConstraint
	spaces      map[string]*space // by namespace
}

// space is what is in one namespace.
type space struct {
	services map[string]map[string]string     // selectors by name
	owners   map[owner]*metav1.LabelSelector  // selectors
	pods     map[string]*corev1.Pod           // that have no constraints of their own
	owned    map[owner]map[string]*corev1.Pod // those of pods that have an owner
}

// owner is a controller of pods.
type owner struct{ kind, name string }

// The controllers whose selectors count, as kind in apiVersion.
const (
	replicationController = "ReplicationController in v1"
	replicaSet            = "ReplicaSet in apps/v1"
	statefulSet           = "StatefulSet in apps/v1"
)

// New returns a store for default constraints, which have no selectors.
func New(constraints []corev1.TopologySpreadConstraint) *Store {
	return &Store{constraints: constraints, spaces: map[string]*space{}}
}

func (s *Store) space(namespace string) *space {
	out := s.spaces[namespace]
	if out == nil {
		out = &space{
			services: map[string]map[string]string{}, owners: map[owner]*metav1.LabelSelector{},
			pods: map[string]*corev1.Pod{}, owned: map[owner]map[string]*corev1.Pod{},
		}
		s.spaces[namespace] = out
	}
	return out
}

// dropEmpty forgets a namespace of which nothing is known.
func (s *Store) dropEmpty(namespace string) {
	if in := s.spaces[namespace]; in != nil && len(in.services)+len(in.owners)+len(in.pods) == 0 {
		delete(s.spaces, namespace)
	}
}

// Of returns the default constraints for a pod that has no constraints itself.
// They share a selector. Of returns nil if no Service and no controller gives a
// selector.
func (s *Store) Of(p *corev1.Pod) []corev1.TopologySpreadConstraint {
	in := s.spaces[p.Namespace]
	if in == nil || !subject(p) {
		return nil
	}
	selector := in.selector(p)
	if selector == nil {
		return nil
	}
	out := slices.Clone(s.constraints)
	for i := range out {
		out[i].LabelSelector = selector
	}
	return out
}

// subject reports whether default constraints are for the pod.
func subject(p *corev1.Pod) bool { return len(p.Spec.TopologySpreadConstraints) == 0 }

// selector returns the selector of the pods that p is spread over; nil = none.
func (in *space) selector(p *corev1.Pod) *metav1.LabelSelector {
	out := &metav1.LabelSelector{MatchLabels: map[string]string{}}
	for _, name := range slices.Sorted(maps.Keys(in.services)) {
		if selects(in.services[name], p) {
			maps.Copy(out.MatchLabels, in.services[name])
		}
	}
	o := ownerOf(p)
	of := in.owners[o]
	if of != nil && o.kind == replicationController {
		maps.Copy(out.MatchLabels, of.MatchLabels)
	} else if of != nil {
		out.MatchExpressions = expressions(of)
	}
	if len(out.MatchLabels)+len(out.MatchExpressions) == 0 {
		return nil
	}
	return out
}

// selects reports whether a Service with the selector selects the pod. One
// without a selector selects nothing.
func selects(selector map[string]string, p *corev1.Pod) bool {
	return selector != nil && labels.SelectorFromSet(selector).Matches(labels.Set(p.Labels))
}

// expressions returns the whole selector as expressions, so that it can be
// combined with other expressions on the same keys.
func expressions(s *metav1.LabelSelector) []metav1.LabelSelectorRequirement {
	out := slices.Clone(s.MatchExpressions)
	for _, key := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		out = append(out, metav1.LabelSelectorRequirement{
			Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{s.MatchLabels[key]},
		})
	}
	return out
}

func ownerOf(p *corev1.Pod) owner {
	if o := metav1.GetControllerOfNoCopy(p); o != nil {
		return owner{o.Kind + " in " + o.APIVersion, o.Name}
	}
	return owner{}
}

// SetPod records a new or changed pod. The store keeps it.
func (s *Store) SetPod(p *corev1.Pod) {
	s.DeletePod(p)
	if !subject(p) || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return
	}
	in := s.space(p.Namespace)
	in.pods[p.Name] = p
	o := ownerOf(p)
	if o == (owner{}) {
		return
	}
	if in.owned[o] == nil {
		in.owned[o] = map[string]*corev1.Pod{}
	}
	in.owned[o][p.Name] = p
}

// DeletePod records that the pod was deleted.
func (s *Store) DeletePod(p *corev1.Pod) {
	in := s.spaces[p.Namespace]
	if in == nil || in.pods[p.Name] == nil {
		return
	}
	o := ownerOf(in.pods[p.Name])
	delete(in.pods, p.Name)
	delete(in.owned[o], p.Name)
	if len(in.owned[o]) == 0 {
		delete(in.owned, o)
	}
	s.dropEmpty(p.Namespace)
}

// SetService records a new or changed Service, and returns the pods
// whose constraints that changes.
func (s *Store) SetService(v *corev1.Service) []*corev1.Pod {
	in := s.space(v.Namespace)
	old, known := in.services[v.Name]
	if known && maps.Equal(old, v.Spec.Selector) && (old == nil) == (v.Spec.Selector == nil) {
		return nil
	}
	in.services[v.Name] = v.Spec.Selector
	return in.selected(old, v.Spec.Selector)
}

// DeleteService records that the Service was deleted, and returns the pods whose
// constraints that changes.
func (s *Store) DeleteService(v *corev1.Service) []*corev1.Pod {
	in := s.space(v.Namespace)
	old := in.services[v.Name]
	delete(in.services, v.Name)
	defer s.dropEmpty(v.Namespace)
	return in.selected(old, nil)
}

// selected returns the pods either selector selects, sorted by name.
func (in *space) selected(a, b map[string]string) []*corev1.Pod {
	var out []*corev1.Pod
	if len(a)+len(b) == 0 {
		return nil // an empty selector adds nothing
	}
	for _, p := range in.pods {
		if selects(a, p) || selects(b, p) {
			out = append(out, p)
		}
	}
	return sorted(out)
}

func sorted(pods []*corev1.Pod) []*corev1.Pod {
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return pods
}

// SetReplicaSet records a new or changed ReplicaSet, and returns the
// pods whose constraints that changes.
func (s *Store) SetReplicaSet(r *appsv1.ReplicaSet) []*corev1.Pod {
	return s.setOwner(r, replicaSet, r.Spec.Selector)
}

// DeleteReplicaSet records that the ReplicaSet was deleted, and returns the pods
// whose constraints that changes.
func (s *Store) DeleteReplicaSet(r *appsv1.ReplicaSet) []*corev1.Pod {
	return s.setOwner(r, replicaSet, nil)
}

// SetStatefulSet records a new or changed StatefulSet, and returns the
// pods whose constraints that changes.
func (s *Store) SetStatefulSet(r *appsv1.StatefulSet) []*corev1.Pod {
	return s.setOwner(r, statefulSet, r.Spec.Selector)
}

// DeleteStatefulSet records that the StatefulSet was deleted, and returns the pods
// whose constraints that changes.
func (s *Store) DeleteStatefulSet(r *appsv1.StatefulSet) []*corev1.Pod {
	return s.setOwner(r, statefulSet, nil)
}

// SetReplicationController records a new or changed ReplicationController, and
// returns the pods whose constraints that changes.
func (s *Store) SetReplicationController(r *corev1.ReplicationController) []*corev1.Pod {
	return s.setOwner(r, replicationController, &metav1.LabelSelector{MatchLabels: r.Spec.Selector})
}

// DeleteReplicationController records that the ReplicationController was deleted,
// and returns the pods whose constraints that changes.
func (s *Store) DeleteReplicationController(r *corev1.ReplicationController) []*corev1.Pod {
	return s.setOwner(r, replicationController, nil)
}

// setOwner sets the selector of a controller; one that is nil or cannot be read
// says nothing.
func (s *Store) setOwner(obj client.Object, kind string, selector *metav1.LabelSelector) []*corev1.Pod {
	if _, err := metav1.LabelSelectorAsSelector(selector); err != nil {
		selector = nil
	}
	in, o := s.space(obj.GetNamespace()), owner{kind, obj.GetName()}
	defer s.dropEmpty(obj.GetNamespace())
	old := in.owners[o]
	if text(old) == text(selector) {
		return nil
	}
	if in.owners[o] = selector; selector == nil {
		delete(in.owners, o)
	}
	return sorted(slices.Collect(maps.Values(in.owned[o])))
}

// text is equal for equal selectors.
func text(s *metav1.LabelSelector) string {
	if s == nil {
		return ""
	}
	return strings.TrimSpace("selector " + metav1.FormatLabelSelector(s))
}
