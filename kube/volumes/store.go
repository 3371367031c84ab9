// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/storage/ephemeral"

	v1 "karpenter/api/v1"
)

// Rules lists what a cloud provider does not support. The zero value excludes
// nothing.
type Rules struct {
	Drivers      sets.Set[string] // CSI drivers whose volumes its nodes cannot use
	TopologyKeys sets.Set[string] // labels its nodes do not get, as classes may write them
}

// Store holds persistent volumes and the pods that use them. Create one with
// New. It is safe for concurrent use.
//
// Each Set and Delete method returns the other pods whose Answers may differ
// now, sorted by namespace and name; they belong to the caller that added them,
// and must not be modified.
type Store struct {
	labels v1.Labels
	rules  Rules

	mu      sync.RWMutex
	claims  map[string]*claim
	volumes map[string]*volume
	classes map[string]*class
	byUse   map[string]map[string]*corev1.Pod // claim → key → pod that has not ended
	byPod   map[string][]string               // pod's key → claims, as entered in byUse
	bound   map[string]sets.Set[string]       // volume → claims that name it
}

// New returns an empty Store. Labels and values are replaced by their
// canonical forms.
func New(labels v1.Labels, rules Rules) *Store {
	return &Store{
		labels: labels, rules: rules,
		claims: map[string]*claim{}, volumes: map[string]*volume{}, classes: map[string]*class{},
		byUse: map[string]map[string]*corev1.Pod{}, byPod: map[string][]string{}, bound: map[string]sets.Set[string]{},
	}
}

// use is one of a pod's volumes that stands for a claim.
type use struct {
	claim string // namespace/name
	made  *corev1.PersistentVolumeClaimTemplate
}

// uses returns the claims of the pod, each once, in the order of its volumes.
func uses(p *corev1.Pod) []use {
	var out []use
	for i := range p.Spec.Volumes {
		v := &p.Spec.Volumes[i]
		var u use
		switch {
		case v.PersistentVolumeClaim != nil:
			u = use{claim: p.Namespace + "/" + v.PersistentVolumeClaim.ClaimName}
		case v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil:
			u = use{claim: p.Namespace + "/" + ephemeral.VolumeClaimName(p, v), made: v.Ephemeral.VolumeClaimTemplate}
		default:
			continue
		}
		if !slices.ContainsFunc(out, func(other use) bool { return other.claim == u.claim }) {
			out = append(out, u)
		}
	}
	return out
}

func keyOf(p *corev1.Pod) string { return p.Namespace + "/" + p.Name }

// SetPod records a new or changed pod. One that has ended uses
// nothing any more.
func (s *Store) SetPod(p *corev1.Pod) []*corev1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	var claims []string
	if p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
		for _, u := range uses(p) {
			claims = append(claims, u.claim)
		}
	}
	key := keyOf(p)
	var touched []string
	for _, c := range s.byPod[key] {
		if !slices.Contains(claims, c) && s.leave(c, key) {
			touched = append(touched, c)
		}
	}
	delete(s.byPod, key)
	for _, c := range claims {
		if s.enter(c, p) {
			touched = append(touched, c)
		}
		s.byPod[key] = claims
	}
	return s.others(key, touched)
}

// DeletePod records that the pod was deleted.
func (s *Store) DeletePod(p *corev1.Pod) []*corev1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := keyOf(p)
	var touched []string
	for _, c := range s.byPod[key] {
		if s.leave(c, key) {
			touched = append(touched, c)
		}
	}
	delete(s.byPod, key)
	return s.others(key, touched)
}

// enter records that the pod uses the claim, and reports whether that affects
// other pods: the pod is the second user, or only one pod may use the claim.
func (s *Store) enter(claim string, p *corev1.Pod) bool {
	pods, key := s.byUse[claim], keyOf(p)
	if pods == nil {
		pods = map[string]*corev1.Pod{}
		s.byUse[claim] = pods
	}
	old := pods[key]
	pods[key] = p
	return old == nil && len(pods) == 2 || s.once(claim) && (old == nil || old.Spec.NodeName != p.Spec.NodeName)
}

// leave undoes enter, and reports whether that affects other pods.
func (s *Store) leave(claim, pod string) bool {
	pods := s.byUse[claim]
	delete(pods, pod)
	if len(pods) == 0 {
		delete(s.byUse, claim)
	}
	return len(pods) == 1 || s.once(claim)
}

// once reports whether one pod at a time may use the claim.
func (s *Store) once(claim string) bool {
	c := s.claims[claim]
	return c != nil && c.once
}

// shared reports whether other pods use the claim.
func (s *Store) shared(claim, pod string) bool {
	pods := s.byUse[claim]
	_, own := pods[pod]
	return len(pods) > 1 || len(pods) == 1 && !own
}

// others returns the pods but one that use any of the claims.
func (s *Store) others(pod string, claims []string) []*corev1.Pod {
	return slices.DeleteFunc(s.users(claims...), func(p *corev1.Pod) bool { return keyOf(p) == pod })
}

// users returns the pods that use any of the claims.
func (s *Store) users(claims ...string) []*corev1.Pod {
	found := map[string]*corev1.Pod{}
	for _, c := range claims {
		maps.Copy(found, s.byUse[c])
	}
	return slices.SortedFunc(maps.Values(found), func(a, b *corev1.Pod) int { return strings.Compare(keyOf(a), keyOf(b)) })
}

// SetClaim records a new or changed PersistentVolumeClaim.
func (s *Store) SetClaim(c *corev1.PersistentVolumeClaim) []*corev1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := claimOf(c)
	old := s.claims[next.name]
	if same(old, next) {
		return nil
	}
	s.dropBound(old)
	s.claims[next.name] = next
	if next.bound() {
		if s.bound[next.volume] == nil {
			s.bound[next.volume] = sets.New[string]()
		}
		s.bound[next.volume].Insert(next.name)
	}
	return s.users(next.name)
}

// DeleteClaim records that the PersistentVolumeClaim was deleted.
func (s *Store) DeleteClaim(c *corev1.PersistentVolumeClaim) []*corev1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := c.Namespace + "/" + c.Name
	s.dropBound(s.claims[name])
	delete(s.claims, name)
	return s.users(name)
}

func (s *Store) dropBound(c *claim) {
	if c == nil || !c.bound() {
		return
	}
	s.bound[c.volume].Delete(c.name)
	if len(s.bound[c.volume]) == 0 {
		delete(s.bound, c.volume)
	}
}

// SetVolume records a new or changed PersistentVolume.
func (s *Store) SetVolume(v *corev1.PersistentVolume) []*corev1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.volumeOf(v)
	if same(s.volumes[v.Name], next) {
		return nil
	}
	s.volumes[v.Name] = next
	return s.users(s.bound[v.Name].UnsortedList()...)
}

// DeleteVolume records that the PersistentVolume was deleted.
func (s *Store) DeleteVolume(v *corev1.PersistentVolume) []*corev1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.volumes, v.Name)
	return s.users(s.bound[v.Name].UnsortedList()...)
}

// SetClass records a new or changed StorageClass.
func (s *Store) SetClass(c *storagev1.StorageClass) []*corev1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.classOf(c)
	if same(s.classes[c.Name], next) {
		return nil
	}
	s.classes[c.Name] = next
	return s.waiting()
}

// DeleteClass records that the StorageClass was deleted.
func (s *Store) DeleteClass(c *storagev1.StorageClass) []*corev1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.classes, c.Name)
	return s.waiting()
}

// same reports whether the new value equals the known one.
func same[T any](known, next *T) bool { return known != nil && reflect.DeepEqual(*known, *next) }

// waiting returns the pods with unbound claims. A change of one class concerns
// all of them, because the default class can change. Classes change rarely.
func (s *Store) waiting() []*corev1.Pod {
	var names []string
	for name := range s.byUse {
		if c := s.claims[name]; c == nil || !c.bound() {
			names = append(names, name)
		}
	}
	return s.users(names...)
}

// defaultClass returns the class of claims that name none, nil if there is
// none.
func (s *Store) defaultClass() *class {
	var out *class
	for _, c := range s.classes {
		if c.isDefault && (out == nil || newest(c, out) < 0) {
			out = c
		}
	}
	return out
}
