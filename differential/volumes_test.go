// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// Volumes: the same as of whole plans, of pods that have some.
func TestVolumes(t *testing.T) {
	testPlans(t, 1000, func(g dice) *market {
		l := g.town(t)
		g.shelves(l.situation)
		for _, p := range l.pods {
			if p.Spec.NodeName != "" {
				g.mount(l.situation, []*corev1.Pod{p})
			}
		}
		for i := range 1 + g.IntN(3) {
			pods := g.deployment(fmt.Sprintf("web%d", i), pick(g, 1, 1, 2, 3))
			for _, p := range pods { // what they want of each other is in the way here
				p.Spec.Affinity.PodAffinity, p.Spec.TopologySpreadConstraints = nil, nil
			}
			g.mount(l.situation, pods)
			l.pods = append(l.pods, waiting(pods...)...)
		}
		return l
	}, except(localMoves(), staticWaits()).rarely(oneByOne(), 495393820041).
		rarely(daemonsOfSomeZones(), 495393820235).rarely(leavingDrawsNobody(), 495393819682).rarely(sharedCountsOnce(), 294306935512).
		also(everyPlaceCounts(), leavingKeepsAway(), daemonsToCome(), undecidedMachines()))
}

// storage is what pods' volumes are made of.
type storage struct {
	classes []*storagev1.StorageClass
	claims  []*corev1.PersistentVolumeClaim
	volumes []*corev1.PersistentVolume
	nodes   []*storagev1.CSINode
}

const driver = "disks.example.com"

func (s *storage) class(name string) *storagev1.StorageClass {
	i := slices.IndexFunc(s.classes, func(c *storagev1.StorageClass) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return s.classes[i]
}

// after returns the storage once the volumes of pods that are bound have been
// made: where their node is or, when many nodes can have them, wherever their class
// allows.
func (s *storage) after(pods []*corev1.Pod, nodes []*corev1.Node) *storage {
	out := *s
	for i, c := range s.claims {
		class := s.class(ptr.Deref(c.Spec.StorageClassName, ""))
		if c.Spec.VolumeName != "" || class == nil || ptr.Deref(class.VolumeBindingMode, "") != storagev1.VolumeBindingWaitForFirstConsumer {
			continue
		}
		at := slices.IndexFunc(pods, func(p *corev1.Pod) bool { return p.Spec.NodeName != "" && uses(p, c) })
		if at < 0 {
			continue
		}
		node := nodes[slices.IndexFunc(nodes, func(n *corev1.Node) bool { return n.Name == pods[at].Spec.NodeName })]
		made := disk("made-" + c.Namespace + "-" + c.Name)
		zone, zonal := node.Labels[corev1.LabelTopologyZone]
		zones := []string{zone}
		if slices.Contains(c.Spec.AccessModes, corev1.ReadWriteMany) {
			zones = zonesOf(class)
			zonal = len(zones) > 0
		}
		if zonal {
			made = disk(made.Name, inZone(zones...))
		}
		bound := c.DeepCopy()
		bindClaim(bound, made)
		out.claims = slices.Clone(out.claims)
		out.claims[i], out.volumes = bound, append(slices.Clip(out.volumes), made)
	}
	return &out
}

// attaching returns how many volumes the new ones among the nodes will attach: as
// few as any node of their type that is there (spec 46/134).
func (s *situation) attaching(nodes []*corev1.Node) []*storagev1.CSINode {
	var out []*storagev1.CSINode
	for _, n := range nodes {
		if s.node(n.Name) != nil {
			continue
		}
		for _, c := range s.storage.nodes {
			if other := s.node(c.Name); other.Labels[corev1.LabelInstanceTypeStable] != n.Labels[corev1.LabelInstanceTypeStable] || c.Spec.Drivers[0].Allocatable == nil {
				continue
			}
			if last := len(out) - 1; last < 0 || out[last].Name != n.Name {
				out = append(out, &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: n.Name}, Spec: c.Spec})
			} else if *c.Spec.Drivers[0].Allocatable.Count < *out[last].Spec.Drivers[0].Allocatable.Count {
				out[last].Spec = c.Spec
			}
		}
	}
	return out
}

// zonesOf returns the zones the class allows; none = all.
func zonesOf(c *storagev1.StorageClass) []string {
	var out []string
	for _, t := range c.AllowedTopologies {
		out = append(out, t.MatchLabelExpressions[0].Values...)
	}
	return out
}

func uses(p *corev1.Pod, c *corev1.PersistentVolumeClaim) bool {
	return p.Namespace == c.Namespace && slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == c.Name || v.Ephemeral != nil && p.Name+"-"+v.Name == c.Name
	})
}

// claimsOf returns the claims the pod uses.
func (s *storage) claimsOf(p *corev1.Pod) []*corev1.PersistentVolumeClaim {
	return slices.DeleteFunc(slices.Clone(s.claims), func(c *corev1.PersistentVolumeClaim) bool { return !uses(p, c) })
}

// isLocal reports whether the claim is bound to a volume that lives on a node.
func (s *storage) isLocal(c *corev1.PersistentVolumeClaim) bool {
	return slices.ContainsFunc(s.volumes, func(v *corev1.PersistentVolume) bool { return v.Name == c.Spec.VolumeName && v.Spec.Local != nil })
}

func bindClaim(c *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
	c.Spec.VolumeName, c.Status.Phase = v.Name, corev1.ClaimBound
	c.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
	v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: c.Namespace, Name: c.Name, UID: c.UID}
	v.Status.Phase = corev1.VolumeBound
	if c.Spec.StorageClassName != nil {
		v.Spec.StorageClassName = *c.Spec.StorageClassName
	}
}

// disk returns a volume that can be used where one of the terms holds; none
// is anywhere.
func disk(name string, terms ...corev1.NodeSelectorTerm) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)}}
	v.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	v.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	v.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: name}
	if len(terms) > 0 {
		v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: terms}}
	}
	return v
}

func in(key string, values ...string) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}}}
}

func inZone(zones ...string) corev1.NodeSelectorTerm { return in(corev1.LabelTopologyZone, zones...) }

// shelves draws storage classes and the limits of nodes.
func (g dice) shelves(s *situation) {
	s.storage = &storage{}
	for _, name := range []string{"wait", "wait-a", "wait-ab", "immediate", "static"} {
		c := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)}, Provisioner: driver}
		c.VolumeBindingMode = ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)
		switch name {
		case "wait-a":
			c.AllowedTopologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: corev1.LabelTopologyZone, Values: []string{"a"}}}}}
		case "wait-ab":
			for _, zone := range []string{"a", "b"} {
				c.AllowedTopologies = append(c.AllowedTopologies, corev1.TopologySelectorTerm{
					MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: corev1.LabelTopologyZone, Values: []string{zone}}},
				})
			}
		case "immediate":
			c.VolumeBindingMode = ptr.To(storagev1.VolumeBindingImmediate)
		case "static":
			c.Provisioner = "kubernetes.io/no-provisioner"
		}
		s.storage.classes = append(s.storage.classes, c)
	}
	for _, n := range s.nodes {
		if !g.maybe(70) {
			continue
		}
		c := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: n.Name, UID: types.UID("uid-csi-" + n.Name)}}
		c.Spec.Drivers = []storagev1.CSINodeDriver{{Name: driver, NodeID: n.Name}}
		if g.maybe(80) {
			c.Spec.Drivers[0].Allocatable = &storagev1.VolumeNodeResources{Count: ptr.To(int32(1 + g.IntN(4)))}
		}
		s.storage.nodes = append(s.storage.nodes, c)
	}
}

// mount gives the pods, copies of one, volumes: the same for all or each its
// own.
func (g dice) mount(s *situation, pods []*corev1.Pod) {
	for i := range pick(g, 0, 1, 1, 2) {
		name, shared := fmt.Sprintf("data%d", i), g.maybe(35)
		kind, common := g.IntN(100), pick(g, "shared-0", "shared-1", pods[0].GenerateName+name)
		for _, p := range pods {
			v := corev1.Volume{Name: name}
			switch claim := p.Name + "-" + name; {
			case kind < 10:
				v.EmptyDir = &corev1.EmptyDirVolumeSource{}
			case kind < 20:
				v.Ephemeral = &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{}}
				g.claim(s, p, claim, true)
				p.GenerateName = ""
			case shared:
				v.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: common}
				g.claim(s, p, common, false)
			default:
				v.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}
				g.claim(s, p, claim, false)
				p.GenerateName = ""
			}
			p.Spec.Volumes = append(p.Spec.Volumes, v)
		}
	}
}

// claim draws a claim for the pod, unless it is there.
func (g dice) claim(s *situation, p *corev1.Pod, name string, owned bool) {
	at := &s.storage.claims
	if slices.ContainsFunc(*at, func(c *corev1.PersistentVolumeClaim) bool { return c.Namespace == p.Namespace && c.Name == name }) {
		return
	}
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: name, UID: types.UID("uid-" + p.Namespace + "-" + name)}}
	c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{pick(g, corev1.ReadWriteOnce, corev1.ReadWriteMany)}
	c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	c.Spec.StorageClassName, c.Status.Phase = ptr.To("wait"), corev1.ClaimPending
	if owned {
		c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID, Controller: ptr.To(true)}}
	}
	switch {
	case g.maybe(3) && p.Spec.NodeName == "":
		return // nobody has made it
	case p.Spec.NodeName != "" || g.maybe(60):
		v := g.volume(s, "volume-"+c.Namespace+"-"+name)
		c.Spec.StorageClassName = pick(g, ptr.To("wait"), ptr.To("immediate"), ptr.To(""), ptr.To("nobody-has-it"), nil)
		bindClaim(c, v)
		s.storage.volumes = append(s.storage.volumes, v)
		if p.Spec.NodeName == "" {
			g.spoil(s, c)
		}
	default:
		c.Spec.StorageClassName = pick(g, ptr.To("wait"), ptr.To("wait"), ptr.To("wait-a"), ptr.To("wait-ab"), ptr.To("wait-ab"), ptr.To("static"), ptr.To("immediate"), ptr.To(""), ptr.To("nobody-has-it"), nil)
	}
	*at = append(*at, c)
}

// spoil makes something wrong with a bound claim now and then.
func (g dice) spoil(s *situation, c *corev1.PersistentVolumeClaim) {
	switch g.IntN(40) {
	case 0:
		c.Annotations = nil
	case 1:
		c.Status.Phase = corev1.ClaimLost
	case 2:
		c.DeletionTimestamp, c.Finalizers = ptr.To(metav1.NewTime(now())), []string{"kubernetes.io/pvc-protection"}
	case 3:
		s.storage.volumes = s.storage.volumes[:len(s.storage.volumes)-1]
	case 4:
		c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
	}
}

// volume draws a volume of some kind.
func (g dice) volume(s *situation, name string) *corev1.PersistentVolume {
	zone := pick(g, zones()...)
	switch g.IntN(12) {
	case 0:
		return disk(name)
	case 1:
		v := disk(name)
		v.Spec.CSI, v.Spec.NFS = nil, &corev1.NFSVolumeSource{Server: "nfs.example.com", Path: "/"}
		return v
	case 2:
		return disk(name, inZone("a"), inZone("b"))
	case 3:
		return disk(name, inZone("a", "c"))
	case 4:
		t := inZone(zone)
		t.MatchExpressions = append(t.MatchExpressions, in(corev1.LabelArchStable, "amd64").MatchExpressions...)
		return disk(name, t)
	case 5:
		if len(s.nodes) == 0 {
			break
		}
		v := disk(name, in(corev1.LabelHostname, pick(g, s.nodes...).Labels[corev1.LabelHostname]))
		if g.maybe(50) {
			v.Spec.CSI, v.Spec.Local = nil, &corev1.LocalVolumeSource{Path: "/disk"}
		}
		return v
	}
	return disk(name, inZone(zone))
}
