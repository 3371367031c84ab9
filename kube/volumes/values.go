// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"cmp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Annotations of claims and classes.
const (
	bindCompleted    = "pv.kubernetes.io/bind-completed"
	selectedNode     = "volume.kubernetes.io/selected-node"
	isDefault        = "storageclass.kubernetes.io/is-default-class"
	isDefaultBefore  = "storageclass.beta.kubernetes.io/is-default-class"
	zonesOfOneVolume = "__" // between the zones in a label of a volume
)

// claim is a PersistentVolumeClaim, or the template of one that is still to be
// made.
type claim struct {
	name     string // namespace/name
	class    *string
	volume   string
	complete bool      // the binding to volume is complete
	selected string    // node the scheduler wants it provisioned for
	owner    types.UID // pod it was made for
	once     bool      // one pod at a time may use it
	many     bool      // many nodes at a time may
	lost     bool
	deleting bool
}

func claimOf(c *corev1.PersistentVolumeClaim) *claim {
	out := &claim{
		name:   c.Namespace + "/" + c.Name,
		volume: c.Spec.VolumeName, selected: c.Annotations[selectedNode],
		lost: c.Status.Phase == corev1.ClaimLost, deleting: c.DeletionTimestamp != nil,
	}
	out.class = className(c.Annotations, c.Spec.StorageClassName)
	_, out.complete = c.Annotations[bindCompleted]
	if o := metav1.GetControllerOf(c); o != nil {
		out.owner = o.UID
	}
	for _, mode := range c.Spec.AccessModes {
		out.once = out.once || mode == corev1.ReadWriteOncePod
		out.many = out.many || mode == corev1.ReadWriteMany || mode == corev1.ReadOnlyMany
	}
	return out
}

// className returns the class that a claim names, or nil for the cluster's
// default class. Old claims name the class in an annotation.
func className(annotations map[string]string, inSpec *string) *string {
	if name, ok := annotations[corev1.BetaStorageClassAnnotation]; ok {
		return &name
	}
	return inSpec
}

func (c *claim) bound() bool { return c.volume != "" }

// volume is a PersistentVolume.
type volume struct {
	driver   string
	terms    []term // of its node affinity; none = anywhere
	nowhere  bool   // it has an affinity that no node can meet
	deleting bool
}

func (s *Store) volumeOf(v *corev1.PersistentVolume) *volume {
	out := &volume{driver: driverOf(provisionerOf(&v.Spec.PersistentVolumeSource)), deleting: v.DeletionTimestamp != nil}
	if a := v.Spec.NodeAffinity; a != nil && a.Required != nil {
		out.terms = s.affinity(a.Required.NodeSelectorTerms, v.Spec.Local != nil || v.Spec.HostPath != nil)
		out.nowhere = len(out.terms) == 0
	}
	out.terms = both(out.terms, s.zones(v.Labels))
	return out
}

// class is a StorageClass.
type class struct {
	name      string
	driver    string
	immediate bool
	isDefault bool
	created   time.Time
	keys      []string // of allowedTopologies, as written
	terms     []term
}

func (s *Store) classOf(c *storagev1.StorageClass) *class {
	out := &class{
		name: c.Name, driver: driverOf(c.Provisioner), created: c.CreationTimestamp.Time,
		immediate: c.VolumeBindingMode == nil || *c.VolumeBindingMode == storagev1.VolumeBindingImmediate,
		isDefault: c.Annotations[isDefault] == "true" || c.Annotations[isDefaultBefore] == "true",
	}
	out.terms, out.keys = s.topologies(c.AllowedTopologies)
	return out
}

// newest orders classes as the API server does to choose a default.
func newest(a, b *class) int {
	return cmp.Or(b.created.Compare(a.created), strings.Compare(a.name, b.name))
}
