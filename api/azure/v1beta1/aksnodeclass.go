// SPDX-License-Identifier: Apache-2.0

package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Kind of the node class, as NodePools refer to it.
const Kind = "AKSNodeClass"

// AKSNodeClass configures how Azure virtual machines become nodes of an AKS
// cluster: image, disk, network, kubelet, operating system. NodePools refer to
// it.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=aksnodeclasses,scope=Cluster,categories={karpenter,nap},shortName={aksnc,aksncs}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].status",description=""
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description=""
// +kubebuilder:printcolumn:name="ImageFamily",type="string",JSONPath=".spec.imageFamily",priority=1,description=""
type AKSNodeClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   AKSNodeClassSpec   `json:"spec,omitempty"`
	Status AKSNodeClassStatus `json:"status,omitempty"`
}

// AKSNodeClassList is a list of AKSNodeClasses.
//
// +kubebuilder:object:root=true
type AKSNodeClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AKSNodeClass `json:"items"`
}

// AKSNodeClassSpec is the wanted configuration of nodes. A change of any field
// but tags drifts the nodes that were launched before it.
//
// +kubebuilder:validation:XValidation:rule="!has(self.fipsMode) || self.fipsMode != 'FIPS' || (has(self.imageFamily) && self.imageFamily != 'Ubuntu2404')",message="FIPS is not yet supported for Ubuntu2404"
// +kubebuilder:validation:XValidation:rule="!has(self.fipsMode) || self.fipsMode != 'FIPS' || !has(self.imageFamily) || self.imageFamily != 'Ubuntu2204' || (has(self.security) && has(self.security.trustedLaunch) && ((has(self.security.trustedLaunch.vtpm) && self.security.trustedLaunch.vtpm) || (has(self.security.trustedLaunch.secureBoot) && self.security.trustedLaunch.secureBoot)))",message="TrustedLaunch is required for FIPS support with Ubuntu2204"
// +kubebuilder:validation:XValidation:rule="!has(self.fipsMode) || self.fipsMode != 'FIPS' || !has(self.security) || !has(self.security.trustedLaunch) || !((has(self.security.trustedLaunch.vtpm) && self.security.trustedLaunch.vtpm) || (has(self.security.trustedLaunch.secureBoot) && self.security.trustedLaunch.secureBoot)) || !has(self.imageFamily) || self.imageFamily in ['Ubuntu', 'Ubuntu2204']",message="TrustedLaunch with FIPSMode FIPS is only supported for Ubuntu and Ubuntu2204"
// +kubebuilder:validation:XValidation:rule="!has(self.linuxOSConfig) || !has(self.linuxOSConfig.swapFileSize) || (has(self.kubelet) && has(self.kubelet.failSwapOn) && !self.kubelet.failSwapOn)",message="kubelet.failSwapOn must be set to false when linuxOSConfig.swapFileSize is specified"
type AKSNodeClassSpec struct {
	// VNETSubnetID is the ARM ID of the subnet that nodes join. It must be in
	// the virtual network of the cluster. Unset means the subnet of the setting
	// vnetSubnetID.
	// +kubebuilder:validation:Pattern=`(?i)^\/subscriptions\/[^\/]+\/resourceGroups\/[a-zA-Z0-9_\-().]{0,89}[a-zA-Z0-9_\-()]\/providers\/Microsoft\.Network\/virtualNetworks\/[^\/]+\/subnets\/[^\/]+$`
	// +optional
	VNETSubnetID *string `json:"vnetSubnetID,omitempty"`
	// OSDiskSizeGB is the size of the disk of nodes in GB. The disk is ephemeral
	// (on the host) if the VM size has a local disk that is large enough. Default
	// 128.
	// +kubebuilder:default=128
	// +kubebuilder:validation:Minimum=30
	// +kubebuilder:validation:Maximum=2048
	// +optional
	OSDiskSizeGB *int32 `json:"osDiskSizeGB,omitempty"`
	// ImageFamily is the operating system of nodes. Ubuntu means Ubuntu 24.04
	// from Kubernetes 1.34 on, and Ubuntu 22.04 before. AzureLinux means Azure
	// Linux 3 from Kubernetes 1.32 on, and Azure Linux 2 before. Default Ubuntu.
	// +kubebuilder:default=Ubuntu
	// +kubebuilder:validation:Enum=Ubuntu;Ubuntu2204;Ubuntu2404;AzureLinux
	// +optional
	ImageFamily *string `json:"imageFamily,omitempty"`
	// FIPSMode FIPS makes nodes boot images with cryptographic modules that are
	// validated according to FIPS 140. The images need the shared image gallery.
	// Unset means Disabled.
	// +kubebuilder:validation:Enum=FIPS;Disabled
	// +optional
	FIPSMode *FIPSMode `json:"fipsMode,omitempty"`
	// Tags of all Azure resources of nodes, besides the tags of Karpenter. A
	// slash in a key becomes an underscore. A change updates the resources in
	// place, and drifts no node.
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 512)",message="tags keys must be less than 512 characters"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.matches('[<>%&?]'))",message="tags keys must not contain '<', '>', '%', '&', or '?'"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.contains('\\\\'))",message="tags keys must not contain '\\'"
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(self[k]) <= 256)",message="tags values must be less than 256 characters"
	// +optional
	Tags map[string]string `json:"tags,omitempty" hash:"ignore"`
	// Kubelet is the configuration of the kubelet of nodes.
	// +kubebuilder:validation:XValidation:rule="has(self.imageGCHighThresholdPercent) && has(self.imageGCLowThresholdPercent) ? self.imageGCHighThresholdPercent > self.imageGCLowThresholdPercent : true",message="imageGCHighThresholdPercent must be greater than imageGCLowThresholdPercent"
	// +optional
	Kubelet *KubeletConfiguration `json:"kubelet,omitempty"`
	// MaxPods is the largest number of pods on a node. Unset means 30 for Azure
	// CNI without overlay, 250 for Azure CNI with overlay and for no network
	// plugin, and 110 otherwise.
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=250
	// +optional
	MaxPods *int32 `json:"maxPods,omitempty"`
	// Security hardens nodes.
	// +optional
	Security *Security `json:"security,omitempty"`
	// LocalDNS configures a DNS cache on each node.
	// +optional
	LocalDNS *LocalDNS `json:"localDNS,omitempty"`
	// GPU configures nodes with GPUs.
	// +optional
	GPU *GPU `json:"gpu,omitempty"`
	// ArtifactStreaming starts containers before their images are pulled
	// completely.
	// +optional
	ArtifactStreaming *ArtifactStreaming `json:"artifactStreaming,omitempty"`
	// LinuxOSConfig configures the operating system of nodes.
	// +optional
	LinuxOSConfig *LinuxOSConfiguration `json:"linuxOSConfig,omitempty"`
}

// The image families.
const (
	UbuntuImageFamily     = "Ubuntu"
	Ubuntu2204ImageFamily = "Ubuntu2204"
	Ubuntu2404ImageFamily = "Ubuntu2404"
	AzureLinuxImageFamily = "AzureLinux"
)

// FIPSMode is whether images are FIPS-validated.
type FIPSMode string

// The FIPS modes.
const (
	FIPSModeFIPS     FIPSMode = "FIPS"
	FIPSModeDisabled FIPSMode = "Disabled"
)

// Security hardens nodes.
type Security struct {
	// EncryptionAtHost encrypts the data of all disks on the host. VM sizes
	// without this capability are not used. Unset means false.
	// +optional
	EncryptionAtHost *bool `json:"encryptionAtHost,omitempty"`
	// TrustedLaunch protects the boot of nodes. VM sizes without this capability
	// are not used.
	// +optional
	TrustedLaunch *TrustedLaunch `json:"trustedLaunch,omitempty"`
}

// TrustedLaunch protects the boot of nodes.
type TrustedLaunch struct {
	// VTPM gives nodes a virtual Trusted Platform Module. Unset means false.
	// +optional
	VTPM *bool `json:"vtpm,omitempty"`
	// SecureBoot lets only signed operating systems and drivers boot. Unset means
	// false.
	// +optional
	SecureBoot *bool `json:"secureBoot,omitempty"`
}

// TrustsLaunch reports whether the class asks for trusted launch.
func (c *AKSNodeClass) TrustsLaunch() bool {
	s := c.Spec.Security
	if s == nil || s.TrustedLaunch == nil {
		return false
	}
	return isTrue(s.TrustedLaunch.VTPM) || isTrue(s.TrustedLaunch.SecureBoot)
}

// EncryptsAtHost reports whether the class asks for encryption at host.
func (c *AKSNodeClass) EncryptsAtHost() bool {
	return c.Spec.Security != nil && isTrue(c.Spec.Security.EncryptionAtHost)
}

// StreamsArtifacts reports whether the class asks for artifact streaming.
func (c *AKSNodeClass) StreamsArtifacts() bool {
	return c.Spec.ArtifactStreaming != nil && isTrue(c.Spec.ArtifactStreaming.Enabled)
}

// FIPS reports whether the class asks for FIPS images.
func (c *AKSNodeClass) FIPS() bool {
	return c.Spec.FIPSMode != nil && *c.Spec.FIPSMode == FIPSModeFIPS
}

// InstallsGPUDriver reports whether nodes with GPUs get their driver.
func (c *AKSNodeClass) InstallsGPUDriver() bool {
	return c.Spec.GPU == nil || c.Spec.GPU.Mode == nil || *c.Spec.GPU.Mode == GPUModeDriver
}

func isTrue(b *bool) bool { return b != nil && *b }

// GPU configures nodes with GPUs.
type GPU struct {
	// Mode Driver installs the driver of the GPU; only NVIDIA GPUs have one. Mode
	// None leaves the installation to you, for example with the NVIDIA GPU
	// operator. Default Driver.
	// +kubebuilder:default=Driver
	// +kubebuilder:validation:Enum=Driver;None
	// +optional
	Mode *GPUMode `json:"mode,omitempty"`
}

// GPUMode is who installs the driver of a GPU.
type GPUMode string

// The GPU modes.
const (
	GPUModeDriver GPUMode = "Driver"
	GPUModeNone   GPUMode = "None"
)

// ArtifactStreaming starts containers before their images are pulled completely.
type ArtifactStreaming struct {
	// Enabled switches artifact streaming on. VM sizes with arm64 processors are
	// not used then. Unset means false.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
}
