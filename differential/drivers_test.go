// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	csitranslation "k8s.io/csi-translation-lib"
	"k8s.io/utils/ptr"

	v1 "karpenter/api/v1"
	"karpenter/kube/volumes"
)

// spec 20/84: volumes of what was part of Kubernetes count as those of the
// drivers Kubernetes itself puts in their place.
func TestDrivers(t *testing.T) {
	translator := csitranslation.New()
	for _, provisioner := range []string{
		"kubernetes.io/aws-ebs", "kubernetes.io/gce-pd", "kubernetes.io/azure-disk", "kubernetes.io/azure-file",
		"kubernetes.io/cinder", "kubernetes.io/vsphere-volume", "kubernetes.io/portworx-volume",
	} {
		want, err := translator.GetCSINameFromInTreeName(provisioner)
		if err != nil {
			t.Fatal(err)
		}
		s := volumes.New(v1.DefaultLabels(), volumes.Rules{})
		wait := storagev1.VolumeBindingWaitForFirstConsumer
		s.SetClass(&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Provisioner: provisioner, VolumeBindingMode: &wait})
		p := &corev1.Pod{}
		p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
			VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To("c")}},
		}}}}
		if got := s.Of(p).Volumes; len(got) != 1 || got[0].Driver != want {
			t.Errorf("%s: volumes %v, want one of %s", provisioner, got, want)
		}
	}
	sources := map[string]corev1.PersistentVolumeSource{
		"ebs.csi.aws.com":          {AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{}},
		"pd.csi.storage.gke.io":    {GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{}},
		"disk.csi.azure.com":       {AzureDisk: &corev1.AzureDiskVolumeSource{}},
		"file.csi.azure.com":       {AzureFile: &corev1.AzureFilePersistentVolumeSource{}},
		"cinder.csi.openstack.org": {Cinder: &corev1.CinderPersistentVolumeSource{}},
		"csi.vsphere.vmware.com":   {VsphereVolume: &corev1.VsphereVirtualDiskVolumeSource{}},
		"pxd.portworx.com":         {PortworxVolume: &corev1.PortworxVolumeSource{}},
	}
	for driver, source := range sources {
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: source}}
		if !translator.IsPVMigratable(pv) {
			t.Errorf("Kubernetes does not know %s", driver)
		}
		s := volumes.New(v1.DefaultLabels(), volumes.Rules{})
		s.SetVolume(pv)
		s.SetClaim(&corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: "c", Annotations: map[string]string{"pv.kubernetes.io/bind-completed": "yes"}},
			Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: "pv"},
		})
		p := &corev1.Pod{}
		p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}}}
		if got := s.Of(p).Volumes; len(got) != 1 || got[0].Driver != driver {
			t.Errorf("volumes %v, want one of %s", got, driver)
		}
	}
}
