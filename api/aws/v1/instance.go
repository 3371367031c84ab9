// SPDX-License-Identifier: Apache-2.0

package v1

import "k8s.io/apimachinery/pkg/api/resource"

// BlockDeviceMapping is one disk of a node.
type BlockDeviceMapping struct {
	// DeviceName is the name the instance sees. The root volume of AL2, AL2023 and
	// Bottlerocket is /dev/xvda, Bottlerocket's data are on /dev/xvdb, the root
	// volume of Windows is /dev/sda1.
	// +optional
	DeviceName *string `json:"deviceName,omitempty"`
	// EBS is the volume of the Elastic Block Store.
	// +kubebuilder:validation:XValidation:rule="has(self.snapshotID) || has(self.volumeSize)",message="snapshotID or volumeSize must be defined"
	// +kubebuilder:validation:XValidation:rule="!has(self.volumeInitializationRate) || (has(self.snapshotID) && self.snapshotID != '')",message="snapshotID must be set when volumeInitializationRate is set"
	// +optional
	EBS *BlockDevice `json:"ebs,omitempty"`
	// RootVolume marks the disk for the ephemeral storage of pods, whose size
	// decides how many pods fit. Without a mark, it is the disk that the AMI family
	// uses for this. With the family Custom, it is the last disk.
	// +optional
	RootVolume bool `json:"rootVolume,omitempty"`
}

// BlockDevice is a volume of the Elastic Block Store.
type BlockDevice struct {
	// DeleteOnTermination says whether the volume is deleted with the instance. If
	// unset, EC2 and the image decide.
	// +optional
	DeleteOnTermination *bool `json:"deleteOnTermination,omitempty"`
	// Encrypted says whether the volume is encrypted. If unset, the snapshot and
	// the account decide.
	// +optional
	Encrypted *bool `json:"encrypted,omitempty"`
	// IOPS the volume is provisioned with, for io1, io2 and gp3. Zero is the same
	// as unset.
	// +optional
	IOPS *int64 `json:"iops,omitempty"`
	// KMSKeyID is the ID, the alias or the ARN of the key the volume is encrypted
	// with. Unset means the account's.
	// +optional
	KMSKeyID *string `json:"kmsKeyID,omitempty"`
	// SnapshotID is the snapshot the volume starts from.
	// +optional
	SnapshotID *string `json:"snapshotID,omitempty"`
	// Throughput in MiB/s the volume is provisioned with, for gp3. Zero is the
	// same as unset.
	// +optional
	Throughput *int64 `json:"throughput,omitempty"`
	// VolumeInitializationRate is the rate in MiB/s at which the snapshot is read.
	// +kubebuilder:validation:Minimum=100
	// +kubebuilder:validation:Maximum=300
	// +optional
	VolumeInitializationRate *int32 `json:"volumeInitializationRate,omitempty"`
	// VolumeSize is the size with the unit Gi, G, Ti or T. It is rounded up to GiB.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^((59000|5[0-8][0-9]{3}|[1-4][0-9]{4}|[1-9][0-9]{0,3})Gi|(64000|6[0-3][0-9]{3}|[1-5][0-9]{4}|[1-9][0-9]{0,3})G|(5[0-8]|[1-4][0-9]|[1-9])Ti|(6[0-4]|[1-5][0-9]|[1-9])T)$`
	// +optional
	VolumeSize *resource.Quantity `json:"volumeSize,omitempty" hash:"string"`
	// VolumeType of the volume: gp3, gp2, io1, io2, st1, sc1 or standard. Unset
	// means EC2's own default.
	// +kubebuilder:validation:Enum=standard;io1;io2;gp2;sc1;st1;gp3
	// +optional
	VolumeType *string `json:"volumeType,omitempty"`
}

// NetworkInterface is one network interface of a node.
type NetworkInterface struct {
	// NetworkCardIndex is the network card the interface is on; 0 is the first.
	// +kubebuilder:validation:Minimum=0
	// +required
	NetworkCardIndex int32 `json:"networkCardIndex"`
	// DeviceIndex is its place among the interfaces of the card; the first on card
	// 0 is 0.
	// +kubebuilder:validation:Minimum=0
	// +required
	DeviceIndex int32 `json:"deviceIndex"`
	// InterfaceType is interface, or efa-only for one that has no IP address and
	// carries only traffic of the Elastic Fabric Adapter.
	// +kubebuilder:validation:Enum=interface;efa-only
	// +required
	InterfaceType InterfaceType `json:"interfaceType"`
}

// InterfaceType is what a network interface is for.
type InterfaceType string

// The types of network interfaces.
const (
	InterfaceTypeInterface InterfaceType = "interface"
	InterfaceTypeEFAOnly   InterfaceType = "efa-only"
)

// MetadataOptions say how the instance metadata service is reached.
type MetadataOptions struct {
	// HTTPEndpoint enables or disables the service. Default enabled.
	// +kubebuilder:default=enabled
	// +kubebuilder:validation:Enum=enabled;disabled
	// +optional
	HTTPEndpoint *string `json:"httpEndpoint,omitempty"`
	// HTTPProtocolIPv6 enables or disables its IPv6 endpoint. Default disabled.
	// +kubebuilder:default=disabled
	// +kubebuilder:validation:Enum=enabled;disabled
	// +optional
	HTTPProtocolIPv6 *string `json:"httpProtocolIPv6,omitempty"`
	// HTTPPutResponseHopLimit is how many hops an answer of the service can take.
	// With 1, only pods on the network of the host reach it. With 2, all pods do.
	// Default 1.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	// +optional
	HTTPPutResponseHopLimit *int64 `json:"httpPutResponseHopLimit,omitempty"`
	// HTTPTokens says whether requests need a token: required is IMDSv2 alone,
	// optional allows IMDSv1. Default required.
	// +kubebuilder:default=required
	// +kubebuilder:validation:Enum=required;optional
	// +optional
	HTTPTokens *string `json:"httpTokens,omitempty"`
}

// ConnectionTracking sets how many seconds idle connections are remembered.
//
// +kubebuilder:validation:XValidation:rule="has(self.tcpEstablishedTimeout) || has(self.udpStreamTimeout) || has(self.udpTimeout)",message="at least one of tcpEstablishedTimeout, udpStreamTimeout, or udpTimeout must be set"
type ConnectionTracking struct {
	// TCPEstablishedTimeout for established TCP connections, in seconds.
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=432000
	// +optional
	TCPEstablishedTimeout *int32 `json:"tcpEstablishedTimeout,omitempty"`
	// UDPStreamTimeout for UDP flows with several packets both ways, in
	// seconds.
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=180
	// +optional
	UDPStreamTimeout *int32 `json:"udpStreamTimeout,omitempty"`
	// UDPTimeout for other UDP flows, in seconds.
	// +kubebuilder:validation:Minimum=30
	// +kubebuilder:validation:Maximum=60
	// +optional
	UDPTimeout *int32 `json:"udpTimeout,omitempty"`
}

// EnclaveOptions of an instance.
type EnclaveOptions struct {
	// Enabled launches only instance types that support Nitro Enclaves, with
	// enclaves enabled. Declare the resources that pods request for enclaves with a
	// NodeOverlay.
	// +required
	Enabled bool `json:"enabled"`
}

// CPUOptions of an instance.
type CPUOptions struct {
	// NestedVirtualization enables or disables nested virtualization.
	// +kubebuilder:validation:Enum=enabled;disabled
	// +optional
	NestedVirtualization *string `json:"nestedVirtualization,omitempty"`
}
