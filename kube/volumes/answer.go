// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"karpenter/model"
)

// Answer is what the persistent volumes of a pod mean for where it can run.
type Answer struct {
	// Refused says why no node can take the pod now, in words that follow
	// "pods with": one for each claim that is in the way.
	Refused []string
	Volumes []model.Volumes      // that it attaches, by driver
	Terms   []model.Requirements // of which one must hold; none = anywhere
	Claims  []string             // namespace/name of those that Terms come from

	// Together names unbound claims in the pod's namespace that other pods use,
	// too. The volume is provisioned in the zone of the first pod, and the
	// others must follow it.
	Together []string
}

// Of returns the Answer for the pod, which need not be in the Store. Only pods
// in the Store count as other users of its claims.
func (s *Store) Of(p *corev1.Pod) Answer {
	list := uses(p)
	if len(list) == 0 {
		return Answer{}
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out Answer
	byDriver := map[string]*model.Volumes{}
	for _, u := range list {
		v, problem := s.settle(p, u)
		if problem != "" && p.Spec.NodeName == "" {
			out.Refused = append(out.Refused, "PersistentVolumeClaim "+u.claim+problem)
		}
		if v.driver != "" {
			s.count(p, u, v.driver, byDriver)
		}
		if v.open && s.shared(u.claim, keyOf(p)) {
			out.Together = append(out.Together, strings.TrimPrefix(u.claim, p.Namespace+"/"))
		}
		if constrains(v.terms) {
			out.Terms = both(out.Terms, v.terms)
			out.Claims = append(out.Claims, u.claim)
		}
	}
	for _, driver := range slices.Sorted(maps.Keys(byDriver)) {
		slices.Sort(byDriver[driver].Shared)
		out.Volumes = append(out.Volumes, *byDriver[driver])
	}
	return out
}

// constrains reports whether the terms can exclude a node.
func constrains(terms []term) bool { return len(terms) > 0 && len(terms[0]) > 0 }

func (s *Store) count(p *corev1.Pod, u use, driver string, into map[string]*model.Volumes) {
	v := into[driver]
	if v == nil {
		v = &model.Volumes{Driver: driver}
		into[driver] = v
	}
	if s.shared(u.claim, keyOf(p)) {
		v.Shared = append(v.Shared, u.claim)
	} else {
		v.Own++
	}
}

// settled is a claim's volume, or what is known of a volume that is not
// provisioned yet.
type settled struct {
	driver string
	terms  []term
	open   bool // it is still to be made, anywhere in terms, for one node at a time
}

// settle returns the volume of the claim, or what is wrong with the claim, in
// words that follow its name.
func (s *Store) settle(p *corev1.Pod, u use) (v settled, problem string) {
	c := s.claims[u.claim]
	switch {
	case c == nil && u.made == nil:
		return v, ", which does not exist"
	case c == nil:
		c = &claim{class: className(u.made.Annotations, u.made.Spec.StorageClassName)}
	case u.made != nil && c.owner != p.UID:
		return v, ", which was not made for the pod"
	}
	if c.bound() {
		v, problem = s.settleBound(c)
	} else {
		v, problem = s.settleWaiting(c)
	}
	switch {
	case c.lost:
		problem = ", which has lost its PersistentVolume " + c.volume
	case c.deleting:
		problem = ", which is being deleted"
	case s.rules.Drivers.Has(v.driver):
		problem = " of driver " + v.driver + ", which no node can use"
	case problem == "" && c.once:
		problem = s.taken(p, u.claim)
	}
	return v, problem
}

func (s *Store) settleBound(c *claim) (settled, string) {
	v := s.volumes[c.volume]
	if v == nil {
		return settled{}, ", whose PersistentVolume " + c.volume + " does not exist"
	}
	out := settled{driver: v.driver, terms: v.terms}
	switch {
	case v.deleting:
		return out, ", whose PersistentVolume " + c.volume + " is being deleted"
	case !c.complete:
		return out, ", whose binding to PersistentVolume " + c.volume + " is not complete"
	case v.nowhere:
		return out, ", whose PersistentVolume " + c.volume + " has a nodeAffinity that no node meets"
	}
	return out, ""
}

func (s *Store) settleWaiting(c *claim) (settled, string) {
	k, problem := s.classFor(c)
	if k == nil {
		return settled{}, problem
	}
	out := settled{driver: k.driver, terms: k.terms, open: c.selected == "" && k.driver != "" && !k.immediate && !c.many}
	if c.selected != "" {
		out.terms = both(out.terms, []term{{model.NewRequirement(model.FieldName, model.In, c.selected)}})
	}
	if k.immediate {
		return out, ", which is not bound, and will not be by a pod's coming: StorageClass " + k.name + " binds immediately; see why it has not, or use one with volumeBindingMode WaitForFirstConsumer"
	}
	for _, key := range k.keys {
		if s.rules.TopologyKeys.Has(key) {
			return out, ", whose StorageClass " + k.name + " has allowedTopologies of " + key + ", which no node has"
		}
	}
	return out, ""
}

// classFor returns the class of a claim that is not bound, or nil and why
// there is none.
func (s *Store) classFor(c *claim) (*class, string) {
	switch {
	case c.class == nil:
		if k := s.defaultClass(); k != nil {
			return k, ""
		}
		return nil, ", which is not bound and names no StorageClass, of which none is the default"
	case *c.class == "":
		return nil, `, which is not bound and asks for no StorageClass (storageClassName: "")`
	}
	if k := s.classes[*c.class]; k != nil {
		return k, ""
	}
	return nil, ", whose StorageClass " + *c.class + " does not exist"
}

// taken returns the problem if a pod on a node uses the claim, and only one pod
// at a time may use it.
func (s *Store) taken(p *corev1.Pod, claim string) string {
	var by []string
	for _, other := range s.others(keyOf(p), []string{claim}) {
		if other.Spec.NodeName != "" {
			by = append(by, keyOf(other))
		}
	}
	if len(by) == 0 {
		return ""
	}
	return ", which is ReadWriteOncePod and in use by pod " + strings.Join(by, ", ")
}
