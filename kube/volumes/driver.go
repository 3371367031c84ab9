// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"karpenter/world"
)

// noProvisioner is the provisioner of classes whose volumes are created by
// hand.
const noProvisioner = "kubernetes.io/no-provisioner"

// driverOf returns the CSI driver that serves the volumes of a provisioner.
// The provisioners that once were part of Kubernetes have been replaced by
// drivers, whatever the class still says; the list is closed.
func driverOf(provisioner string) string {
	switch provisioner {
	case noProvisioner:
		return ""
	case "kubernetes.io/aws-ebs":
		return "ebs.csi.aws.com"
	case "kubernetes.io/gce-pd":
		return "pd.csi.storage.gke.io"
	case "kubernetes.io/azure-disk":
		return "disk.csi.azure.com"
	case "kubernetes.io/azure-file":
		return "file.csi.azure.com"
	case "kubernetes.io/cinder":
		return "cinder.csi.openstack.org"
	case "kubernetes.io/vsphere-volume":
		return "csi.vsphere.vmware.com"
	case "kubernetes.io/portworx-volume":
		return "pxd.portworx.com"
	}
	return provisioner
}

// provisionerOf returns the provisioner whose volumes v is one of: the name of
// a CSI driver or of what was part of Kubernetes; "" = neither.
func provisionerOf(v *corev1.PersistentVolumeSource) string {
	switch {
	case v.CSI != nil:
		return v.CSI.Driver
	case v.AWSElasticBlockStore != nil:
		return "kubernetes.io/aws-ebs"
	case v.GCEPersistentDisk != nil:
		return "kubernetes.io/gce-pd"
	case v.AzureDisk != nil:
		return "kubernetes.io/azure-disk"
	case v.AzureFile != nil:
		return "kubernetes.io/azure-file"
	case v.Cinder != nil:
		return "kubernetes.io/cinder"
	case v.VsphereVolume != nil:
		return "kubernetes.io/vsphere-volume"
	case v.PortworxVolume != nil:
		return "kubernetes.io/portworx-volume"
	}
	return noProvisioner
}

// Limits returns how many volumes of each driver the node can attach. Drivers
// without a limit are left out.
func Limits(n *storagev1.CSINode) map[string]int {
	out := map[string]int{}
	for _, d := range n.Spec.Drivers {
		out[d.Name] = world.NoVolumeLimit
		if d.Allocatable != nil && d.Allocatable.Count != nil {
			out[d.Name] = int(*d.Allocatable.Count)
		}
	}
	return out
}
