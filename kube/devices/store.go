// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/kube/selectors"
)

// Store holds the devices of the cluster and the pods that claim some. Create
// one with New. It is safe for concurrent use. It keeps the objects that it
// gets, so callers must not modify them afterwards.
type Store struct {
	labels v1.Labels
	judge  *selectors.Judge

	mu      sync.RWMutex
	slices  map[string]*resourcev1.ResourceSlice
	claims  map[string]*resourcev1.ResourceClaim // by namespace/name
	classes map[string]*resourcev1.DeviceClass
	serving map[string]*resourcev1.DeviceClass // by the extended resource that it serves
	rules   map[string]*resourcev1.DeviceTaintRule
	byUse   map[string]map[string]*corev1.Pod // claim, or use of a resource → key → pod that has not ended
	byPod   map[string][]string               // pod's key → what byUse has it under
	made    map[string]string                 // pod's key → claim that the scheduler has made for its extended resources

	parts  map[poolKey]sets.Set[string] // names of the slices of each pool
	held   map[poolKey]sets.Set[string] // claims that have devices of it
	pools  map[poolKey]*pool            // as built last
	byNode map[string]sets.Set[poolKey] // pools of a node; "" = of the cluster
	kinds  cloud.Kinds                  // of the pools
	ruled  ruled

	nextForget int // number of kinds at which those that are gone are dropped
}

// poolKey identifies a pool.
type poolKey struct{ driver, name string }

// Change lists what a Store answers differently than before.
type Change struct {
	Pods  []*corev1.Pod // whose Answers may differ, by namespace and name; the pod itself is not among them
	Nodes []string      // whose Pools may differ; "" = those of the cluster
}

// New returns an empty Store. Labels and values are replaced by their canonical
// forms.
func New(labels v1.Labels) *Store {
	return &Store{
		labels: labels, judge: selectors.NewJudge(),
		slices: map[string]*resourcev1.ResourceSlice{}, claims: map[string]*resourcev1.ResourceClaim{},
		classes: map[string]*resourcev1.DeviceClass{}, rules: map[string]*resourcev1.DeviceTaintRule{},
		byUse: map[string]map[string]*corev1.Pod{}, byPod: map[string][]string{}, made: map[string]string{},
		parts: map[poolKey]sets.Set[string]{}, held: map[poolKey]sets.Set[string]{}, pools: map[poolKey]*pool{},
		byNode: map[string]sets.Set[poolKey]{}, kinds: cloud.Kinds{}, ruled: newRuled(), nextForget: leastForget,
	}
}

func keyOf(p *corev1.Pod) string { return p.Namespace + "/" + p.Name }

// claimsOf returns namespace/name of the pod's claims that have a name, each once.
func claimsOf(p *corev1.Pod) []string {
	var out []string
	for i := range p.Spec.ResourceClaims {
		if name, _, err := resourceclaim.Name(p, &p.Spec.ResourceClaims[i]); err == nil && name != nil {
			if key := p.Namespace + "/" + *name; !slices.Contains(out, key) {
				out = append(out, key)
			}
		}
	}
	return out
}

// SetPod records a new or changed pod. One that has ended uses nothing any
// more.
func (s *Store) SetPod(p *corev1.Pod) Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	var claims []string
	if p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
		claims = append(claimsOf(p), resourcesOf(p)...)
	}
	return s.setUses(p, claims)
}

// DeletePod records that the pod was deleted.
func (s *Store) DeletePod(p *corev1.Pod) Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.setUses(p, nil)
}

func (s *Store) setUses(p *corev1.Pod, claims []string) Change {
	key := keyOf(p)
	if len(claims)+len(s.byPod[key]) == 0 {
		return Change{}
	}
	touched := slices.Clone(s.byPod[key])
	if len(touched) > 0 && slices.Equal(touched, claims) {
		old := s.byUse[touched[0]][key]
		for _, c := range claims {
			s.byUse[c][key] = p
		}
		if old.Spec.NodeName == p.Spec.NodeName && old.Status.NominatedNodeName == p.Status.NominatedNodeName && old.UID == p.UID {
			return Change{}
		}
	}
	for _, c := range s.byPod[key] {
		if delete(s.byUse[c], key); len(s.byUse[c]) == 0 {
			delete(s.byUse, c)
		}
	}
	delete(s.byPod, key)
	for _, c := range claims {
		if s.byUse[c] == nil {
			s.byUse[c] = map[string]*corev1.Pod{}
		}
		s.byUse[c][key], s.byPod[key] = p, claims
	}
	return Change{Pods: slices.DeleteFunc(s.users(append(touched, claims...)...), func(o *corev1.Pod) bool { return keyOf(o) == key })}
}

// users returns the pods that use any of the claims.
func (s *Store) users(claims ...string) []*corev1.Pod {
	found := map[string]*corev1.Pod{}
	for _, c := range claims {
		maps.Copy(found, s.byUse[c])
	}
	return slices.SortedFunc(maps.Values(found), func(a, b *corev1.Pod) int { return strings.Compare(keyOf(a), keyOf(b)) })
}

// SetClaim records a new or changed ResourceClaim.
func (s *Store) SetClaim(c *resourcev1.ResourceClaim) Change {
	return s.setClaim(c.Namespace+"/"+c.Name, c)
}

// DeleteClaim records that the ResourceClaim was deleted.
func (s *Store) DeleteClaim(c *resourcev1.ResourceClaim) Change {
	return s.setClaim(c.Namespace+"/"+c.Name, nil)
}

func (s *Store) setClaim(name string, c *resourcev1.ResourceClaim) Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	touched := sets.New[poolKey]()
	for _, r := range results(s.claims[name]) {
		k := poolKey{r.Driver, r.Pool}
		if s.held[k].Delete(name); len(s.held[k]) == 0 {
			delete(s.held, k)
		}
		touched.Insert(k)
	}
	users := s.owner(s.claims[name], false)
	if s.claims[name] = c; c == nil {
		delete(s.claims, name)
	}
	users = append(users, s.owner(c, true)...)
	for _, r := range results(c) {
		k := poolKey{r.Driver, r.Pool}
		if s.held[k] == nil {
			s.held[k] = sets.New[string]()
		}
		s.held[k].Insert(name)
		touched.Insert(k)
	}
	return Change{Pods: s.users(append(users, name)...), Nodes: s.build(touched.UnsortedList()...).Nodes}
}

// results returns what is allocated to the claim.
func results(c *resourcev1.ResourceClaim) []resourcev1.DeviceRequestAllocationResult {
	if c == nil || c.Status.Allocation == nil {
		return nil
	}
	return c.Status.Allocation.Devices.Results
}

// SetSlice records a new or changed ResourceSlice.
func (s *Store) SetSlice(slice *resourcev1.ResourceSlice) Change {
	return s.setSlice(slice.Name, slice)
}

// DeleteSlice records that the ResourceSlice was deleted.
func (s *Store) DeleteSlice(slice *resourcev1.ResourceSlice) Change {
	return s.setSlice(slice.Name, nil)
}

func (s *Store) setSlice(name string, slice *resourcev1.ResourceSlice) Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	var touched []poolKey
	if old := s.slices[name]; old != nil {
		k := poolOf(old)
		if s.parts[k].Delete(name); len(s.parts[k]) == 0 {
			delete(s.parts, k)
		}
		touched = append(touched, k)
		delete(s.slices, name)
	}
	if slice != nil {
		k := poolOf(slice)
		if s.parts[k] == nil {
			s.parts[k] = sets.New[string]()
		}
		s.parts[k].Insert(name)
		s.slices[name] = slice
		touched = append(touched, k)
	}
	return s.build(touched...)
}

func poolOf(s *resourcev1.ResourceSlice) poolKey { return poolKey{s.Spec.Driver, s.Spec.Pool.Name} }

// SetRule records a new or changed DeviceTaintRule.
func (s *Store) SetRule(r *resourcev1.DeviceTaintRule) Change { return s.setRule(r.Name, r) }

// DeleteRule records that the DeviceTaintRule was deleted.
func (s *Store) DeleteRule(r *resourcev1.DeviceTaintRule) Change { return s.setRule(r.Name, nil) }

// setRule builds all pools again: rules are few and rare.
func (s *Store) setRule(name string, r *resourcev1.DeviceTaintRule) Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rules[name] = r; r == nil {
		delete(s.rules, name)
	}
	s.ruled = newRuled()
	return s.build(slices.Collect(maps.Keys(s.parts))...)
}

// SetClass records a new or changed DeviceClass.
func (s *Store) SetClass(c *resourcev1.DeviceClass) Change { return s.setClass(c.Name, c) }

// DeleteClass records that the DeviceClass was deleted.
func (s *Store) DeleteClass(c *resourcev1.DeviceClass) Change { return s.setClass(c.Name, nil) }

// setClass concerns every pod with claims, or with extended resources: classes are few
// and rare.
func (s *Store) setClass(name string, c *resourcev1.DeviceClass) Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.classes[name] = c; c == nil {
		delete(s.classes, name)
	}
	s.serving = serving(s.classes)
	return Change{Pods: s.users(slices.Collect(maps.Keys(s.byUse))...)}
}
