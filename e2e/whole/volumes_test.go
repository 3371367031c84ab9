// SPDX-License-Identifier: Apache-2.0

package whole

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestVolumes has a pod wait for a claim that no one has made, and then for a
// volume that its class allows in one zone only, where its node must be. The
// test makes the volume when the scheduler asks for it, as a driver would.
func TestVolumes(t *testing.T) {
	f := setUp(t, 0)
	f.StartController(t)
	f.pool(nil)
	v := f.Watch(t, f.oneToOne)
	f.pod("db", func(s *corev1.PodSpec) {
		s.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
		}}}
	})
	v.Until("the pod is refused", patience, func() string {
		told := v.Events("FailedScheduling", "db")
		if strings.Contains(strings.Join(told, "\n"), "PersistentVolumeClaim "+f.name+"/data, which does not exist") {
			return ""
		}
		return fmt.Sprintf("the events say %q", told)
	})

	const zone = "test-zone-c"
	f.create(&storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: f.name}, Provisioner: "disks.example.com",
		VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer),
		AllowedTopologies: []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: corev1.LabelTopologyZone, Values: []string{zone}}}}},
	})
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: f.name, Name: "data"}}
	claim.Spec.StorageClassName = ptr.To(f.name)
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: quantity("1Gi")}
	f.create(claim)
	chosen := ""
	v.Until("the scheduler asks for the volume", patience, func() string {
		if err := f.Client.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil {
			return err.Error()
		}
		if chosen = claim.Annotations["volume.kubernetes.io/selected-node"]; chosen == "" {
			return fmt.Sprintf("the claim has annotations %v, and there are %d nodes", claim.Annotations, len(f.nodes(v)))
		}
		return ""
	})
	f.provision(claim, zone)
	v.Until("the pod runs", patience, f.running(v, 1))
	nodes := f.nodes(v)
	if len(nodes) != 1 {
		t.Fatalf("%d nodes, want 1", len(nodes))
	}
	if got := nodes[0].Labels[corev1.LabelTopologyZone]; got != zone || nodes[0].Name != chosen {
		t.Errorf("the pod runs on %s in zone %s, want %s in %s", nodes[0].Name, got, chosen, zone)
	}
}

// provision makes a volume for the claim in the zone.
func (f *fixture) provision(claim *corev1.PersistentVolumeClaim, zone string) {
	f.Helper()
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: f.name}}
	pv.Spec.Capacity, pv.Spec.AccessModes = claim.Spec.Resources.Requests, claim.Spec.AccessModes
	pv.Spec.StorageClassName = *claim.Spec.StorageClassName
	pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	pv.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID}
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "disks.example.com", VolumeHandle: "disk"}
	pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}},
	}}}}
	f.create(pv)
}
