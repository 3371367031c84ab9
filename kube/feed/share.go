// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "karpenter/api/v1"
)

// mostShared is how many different values of one sort are known to be shared, at
// most twice. What comes back after that many others is kept twice.
const mostShared = 1 << 14

// shared makes objects share their equal parts, to save memory: pods of one
// workload differ in little but their names. This is safe, because caches
// return copies and no object in a cache is modified. It is safe for concurrent
// use.
type shared struct {
	mu      sync.Mutex
	texts   known[string]
	specs   known[*corev1.PodSpec]
	labels  known[map[string]string]
	owners  known[[]metav1.OwnerReference]
	amounts known[corev1.ResourceList]
	wishes  known[[]v1.NodeSelectorRequirementWithMinValues]
}

// known holds values by key. It forgets values that were not used for a while.
type known[T any] struct{ young, old map[string]T }

// of returns the known value for the key. If there is none, it returns v and
// remembers it.
func (k *known[T]) of(key string, v T) T {
	if was, ok := k.young[key]; ok {
		return was
	}
	if was, ok := k.old[key]; ok {
		v = was
	}
	if k.young == nil || len(k.young) >= mostShared {
		k.young, k.old = map[string]T{}, k.young
	}
	k.young[key] = v
	return v
}

// marshaler is a message of Kubernetes' API, whose encoding is the same for
// equal ones.
type marshaler interface{ Marshal() ([]byte, error) }

// one returns the known value with the encoding of the message, or else v.
func one[T any](k *known[T], message marshaler, v T) T {
	key, err := message.Marshal()
	if err != nil {
		return v
	}
	return k.of(string(key), v)
}

func (s *shared) text(t string) string {
	if t == "" {
		return ""
	}
	return s.texts.of(t, t)
}

// pairs returns a map that holds the same, with keys and values that are shared.
func (s *shared) pairs(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]string, len(m))
	for key, value := range m {
		out[s.text(key)] = s.text(value)
	}
	return out
}

// pod makes the trimmed pod share its equal parts with other pods.
func (s *shared) pod(p *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.Namespace = s.text(p.Namespace)
	p.Labels = one(&s.labels, &metav1.ObjectMeta{Labels: p.Labels}, p.Labels)
	p.OwnerReferences = one(&s.owners, &metav1.ObjectMeta{OwnerReferences: p.OwnerReferences}, p.OwnerReferences)
	node, volumes := s.text(p.Spec.NodeName), p.Spec.Volumes
	p.Spec.NodeName, p.Spec.Volumes = "", nil
	key, err := p.Spec.Marshal()
	if err == nil {
		p.Spec = *s.spec(string(key), &p.Spec)
	}
	p.Spec.NodeName, p.Spec.Volumes = node, volumes
	for i := range p.Status.Conditions {
		c := &p.Status.Conditions[i]
		c.Type, c.Status, c.Reason = corev1.PodConditionType(s.text(string(c.Type))), corev1.ConditionStatus(s.text(string(c.Status))), s.text(c.Reason)
	}
	p.Status.Phase = corev1.PodPhase(s.text(string(p.Status.Phase)))
	p.Status.NominatedNodeName = s.text(p.Status.NominatedNodeName)
}

// spec returns a copy of the spec that is known by the key, else of this one.
func (s *shared) spec(key string, now *corev1.PodSpec) *corev1.PodSpec {
	kept := *now // not all of the pod
	return s.specs.of(key, &kept)
}

// node makes the Node share its equal parts with other Nodes.
func (s *shared) node(n *corev1.Node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n.Labels, n.Annotations = s.pairs(n.Labels), s.pairs(n.Annotations)
	n.Status.Capacity, n.Status.Allocatable = s.list(n.Status.Capacity), s.list(n.Status.Allocatable)
	for i := range n.Status.Conditions {
		c := &n.Status.Conditions[i]
		c.Type, c.Status = corev1.NodeConditionType(s.text(string(c.Type))), corev1.ConditionStatus(s.text(string(c.Status)))
		c.Reason, c.Message = s.text(c.Reason), s.text(c.Message)
	}
	i := &n.Status.NodeInfo
	for _, text := range []*string{
		&i.KernelVersion, &i.OSImage, &i.ContainerRuntimeVersion, &i.KubeletVersion, &i.KubeProxyVersion, &i.OperatingSystem, &i.Architecture,
	} {
		*text = s.text(*text)
	}
}

func (s *shared) list(l corev1.ResourceList) corev1.ResourceList {
	return one(&s.amounts, &corev1.ResourceRequirements{Requests: l}, l)
}

// claim makes the NodeClaim share its equal parts with other claims: claims of
// one plan name the same hundred instance types.
func (s *shared) claim(n *v1.NodeClaim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n.Labels, n.Annotations = s.pairs(n.Labels), s.pairs(n.Annotations)
	n.Spec.Requirements = s.wishes.of(wishesKey(n.Spec.Requirements), n.Spec.Requirements)
	n.Spec.Resources.Requests = s.list(n.Spec.Resources.Requests)
	n.Status.Capacity, n.Status.Allocatable = s.list(n.Status.Capacity), s.list(n.Status.Allocatable)
	for i := range n.Status.Conditions {
		c := &n.Status.Conditions[i]
		c.Type, c.Status = s.text(c.Type), metav1.ConditionStatus(s.text(string(c.Status)))
		c.Reason, c.Message = s.text(c.Reason), s.text(c.Message)
	}
}

// wishesKey returns a text that is the same for equal requirements only.
func wishesKey(all []v1.NodeSelectorRequirementWithMinValues) string {
	var key strings.Builder
	for i := range all {
		r := &all[i]
		key.WriteString(r.Key)
		key.WriteByte(0)
		key.WriteString(string(r.Operator))
		key.WriteByte(0)
		if r.MinValues != nil {
			key.WriteString(strconv.Itoa(int(*r.MinValues)))
		}
		for _, v := range r.Values {
			key.WriteByte(0)
			key.WriteString(v)
		}
		key.WriteByte(1)
	}
	return key.String()
}
