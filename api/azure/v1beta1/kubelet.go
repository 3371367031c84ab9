// SPDX-License-Identifier: Apache-2.0

package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// KubeletConfiguration is the part of the kubelet's configuration that AKS lets
// users set.
type KubeletConfiguration struct {
	// CPUManagerPolicy static gives containers of Guaranteed pods with whole CPUs
	// CPUs of their own. Default none.
	// +kubebuilder:default=none
	// +kubebuilder:validation:Enum=none;static
	// +optional
	CPUManagerPolicy *string `json:"cpuManagerPolicy,omitempty"`
	// CPUCFSQuota enforces CPU limits with CFS quotas. Default true.
	// +kubebuilder:default=true
	// +optional
	CPUCFSQuota *bool `json:"cpuCFSQuota,omitempty"`
	// CPUCFSQuotaPeriod is the period of CFS quotas. Default 100ms.
	// +kubebuilder:default="100ms"
	// +optional
	CPUCFSQuotaPeriod metav1.Duration `json:"cpuCFSQuotaPeriod,omitempty"`
	// ImageGCHighThresholdPercent is the disk usage from which images are always
	// garbage collected. It must be above imageGCLowThresholdPercent.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	ImageGCHighThresholdPercent *int32 `json:"imageGCHighThresholdPercent,omitempty"`
	// ImageGCLowThresholdPercent is the disk usage below which images are never
	// garbage collected.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	ImageGCLowThresholdPercent *int32 `json:"imageGCLowThresholdPercent,omitempty"`
	// TopologyManagerPolicy aligns CPUs and devices of pods by NUMA node. Default
	// none.
	// +kubebuilder:default=none
	// +kubebuilder:validation:Enum=restricted;best-effort;none;single-numa-node
	// +optional
	TopologyManagerPolicy *string `json:"topologyManagerPolicy,omitempty"`
	// AllowedUnsafeSysctls are unsafe sysctls, or patterns of them that end with
	// an asterisk, that pods may set.
	// +optional
	AllowedUnsafeSysctls []string `json:"allowedUnsafeSysctls,omitempty"`
	// ContainerLogMaxSize is the size at which the log of a container is rotated.
	// Default 50Mi.
	// +kubebuilder:default="50Mi"
	// +kubebuilder:validation:Pattern=`^\d+(E|P|T|G|M|K|Ei|Pi|Ti|Gi|Mi|Ki)$`
	// +optional
	ContainerLogMaxSize *string `json:"containerLogMaxSize,omitempty"`
	// ContainerLogMaxFiles is the largest number of log files of a container.
	// Default 5.
	// +kubebuilder:default=5
	// +kubebuilder:validation:Minimum=2
	// +optional
	ContainerLogMaxFiles *int32 `json:"containerLogMaxFiles,omitempty"`
	// PodPidsLimit is the largest number of processes in a pod.
	// +optional
	PodPidsLimit *int64 `json:"podPidsLimit,omitempty"`
	// FailSwapOn keeps the kubelet from starting on a node with swap. It must be
	// false if linuxOSConfig.swapFileSize is set.
	// +optional
	FailSwapOn *bool `json:"failSwapOn,omitempty"`
}
