// SPDX-License-Identifier: Apache-2.0

package v1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kind of the node class, as NodePools refer to it.
const Kind = "EC2NodeClass"

// EC2NodeClass configures the EC2 instances of nodes: image, network, disks,
// identity, kubelet. NodePools refer to it.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=ec2nodeclasses,scope=Cluster,categories=karpenter,shortName={ec2nc,ec2ncs}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].status",description=""
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description=""
// +kubebuilder:printcolumn:name="Role",type="string",JSONPath=".spec.role",priority=1,description=""
type EC2NodeClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   EC2NodeClassSpec   `json:"spec,omitempty"`
	Status EC2NodeClassStatus `json:"status,omitempty"`
}

// EC2NodeClassList is a list of EC2NodeClasses.
//
// +kubebuilder:object:root=true
type EC2NodeClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []EC2NodeClass `json:"items"`
}

// EC2NodeClassSpec is the desired state of an EC2NodeClass. A change makes the
// existing nodes drift, unless the field says otherwise.
//
// +kubebuilder:validation:XValidation:rule="has(self.role) != has(self.instanceProfile)",message="must specify exactly one of ['role', 'instanceProfile']"
// +kubebuilder:validation:XValidation:rule="has(self.amiFamily) || self.amiSelectorTerms.exists(x, has(x.alias))",message="must specify amiFamily if amiSelectorTerms does not contain an alias"
// +kubebuilder:validation:XValidation:rule="!has(self.amiFamily) || self.amiFamily in ['AL2', 'Custom'] || !self.amiSelectorTerms.exists(x, has(x.alias) && x.alias.find('^[^@]+') == 'al2')",message="if set, amiFamily must be 'AL2' or 'Custom' when using a AL2 alias"
// +kubebuilder:validation:XValidation:rule="!has(self.amiFamily) || self.amiFamily in ['AL2023', 'Custom'] || !self.amiSelectorTerms.exists(x, has(x.alias) && x.alias.find('^[^@]+') == 'al2023')",message="if set, amiFamily must be 'AL2023' or 'Custom' when using a AL2023 alias"
// +kubebuilder:validation:XValidation:rule="!has(self.amiFamily) || self.amiFamily in ['Bottlerocket', 'Custom'] || !self.amiSelectorTerms.exists(x, has(x.alias) && x.alias.find('^[^@]+') == 'bottlerocket')",message="if set, amiFamily must be 'Bottlerocket' or 'Custom' when using a Bottlerocket alias"
// +kubebuilder:validation:XValidation:rule="!has(self.amiFamily) || self.amiFamily in ['Windows2019', 'Custom'] || !self.amiSelectorTerms.exists(x, has(x.alias) && x.alias.find('^[^@]+') == 'windows2019')",message="if set, amiFamily must be 'Windows2019' or 'Custom' when using a Windows2019 alias"
// +kubebuilder:validation:XValidation:rule="!has(self.amiFamily) || self.amiFamily in ['Windows2022', 'Custom'] || !self.amiSelectorTerms.exists(x, has(x.alias) && x.alias.find('^[^@]+') == 'windows2022')",message="if set, amiFamily must be 'Windows2022' or 'Custom' when using a Windows2022 alias"
// +kubebuilder:validation:XValidation:rule="!has(self.amiFamily) || self.amiFamily in ['Windows2025', 'Custom'] || !self.amiSelectorTerms.exists(x, has(x.alias) && x.alias.find('^[^@]+') == 'windows2025')",message="if set, amiFamily must be 'Windows2025' or 'Custom' when using a Windows2025 alias"
type EC2NodeClassSpec struct {
	// SubnetSelectorTerms select the subnets of nodes, and so the zones. A subnet
	// is selected if any term matches. If several subnets of a zone match,
	// Karpenter uses the one with the most free addresses. A node drifts if its
	// subnet is no longer selected.
	// +kubebuilder:validation:XValidation:rule="self.size() != 0",message="subnetSelectorTerms cannot be empty"
	// +kubebuilder:validation:XValidation:rule="self.all(x, has(x.tags) || has(x.id))",message="expected at least one, got none, ['tags', 'id']"
	// +kubebuilder:validation:XValidation:rule="self.size() == 0 || !self.all(x, has(x.id) && has(x.tags))",message="'id' is mutually exclusive, cannot be set with a combination of other fields in a subnet selector term"
	// +kubebuilder:validation:MaxItems=30
	// +required
	SubnetSelectorTerms []SubnetSelectorTerm `json:"subnetSelectorTerms" hash:"ignore"`
	// SecurityGroupSelectorTerms select the security groups of nodes. Nodes get all
	// security groups that any term matches. A node drifts if its security groups
	// differ.
	// +kubebuilder:validation:XValidation:rule="self.size() != 0",message="securityGroupSelectorTerms cannot be empty"
	// +kubebuilder:validation:XValidation:rule="self.all(x, has(x.tags) || has(x.id) || has(x.name))",message="expected at least one, got none, ['tags', 'id', 'name']"
	// +kubebuilder:validation:XValidation:rule="self.size() == 0 || !self.all(x, has(x.id) && (has(x.tags) || has(x.name)))",message="'id' is mutually exclusive, cannot be set with a combination of other fields in a security group selector term"
	// +kubebuilder:validation:XValidation:rule="self.size() == 0 || !self.all(x, has(x.name) && (has(x.tags) || has(x.id)))",message="'name' is mutually exclusive, cannot be set with a combination of other fields in a security group selector term"
	// +kubebuilder:validation:MaxItems=30
	// +required
	SecurityGroupSelectorTerms []SecurityGroupSelectorTerm `json:"securityGroupSelectorTerms" hash:"ignore"`
	// CapacityReservationSelectorTerms select the capacity reservations that nodes
	// can use, with the capacity type reserved. A reservation is selected if any
	// term matches. A node drifts if its reservation is no longer selected. Needs
	// the feature gate ReservedCapacity, which is on by default.
	// +kubebuilder:validation:XValidation:rule="self.all(x, has(x.tags) || has(x.id) || has(x.instanceMatchCriteria))",message="expected at least one, got none, ['tags', 'id', 'instanceMatchCriteria']"
	// +kubebuilder:validation:XValidation:rule="self.size() == 0 || !self.all(x, has(x.id) && (has(x.tags) || has(x.ownerID) || has(x.instanceMatchCriteria)))",message="'id' is mutually exclusive, cannot be set along with other fields in a capacity reservation selector term"
	// +kubebuilder:validation:MaxItems=30
	// +optional
	CapacityReservationSelectorTerms []CapacityReservationSelectorTerm `json:"capacityReservationSelectorTerms" hash:"ignore"`
	// PlacementGroupSelector names the placement group that nodes are launched
	// into. Nodes outside of it drift.
	// +optional
	PlacementGroupSelector *PlacementGroupSelector `json:"placementGroupSelector,omitempty"`
	// AMISelectorTerms select the images of nodes. An image is selected if any term
	// matches. For each instance type, Karpenter uses the newest image that suits
	// it. A node drifts if its image is another one. So an alias with the version
	// latest replaces nodes whenever AWS publishes an image.
	// +kubebuilder:validation:XValidation:rule="self.size() != 0",message="amiSelectorTerms cannot be empty"
	// +kubebuilder:validation:XValidation:rule="self.all(x, has(x.tags) || has(x.id) || has(x.name) || has(x.alias) || has(x.ssmParameter))",message="expected at least one, got none, ['tags', 'id', 'name', 'alias', 'ssmParameter']"
	// +kubebuilder:validation:XValidation:rule="!self.exists(x, has(x.id) && (has(x.alias) || has(x.tags) || has(x.name) || has(x.owner)))",message="'id' is mutually exclusive, cannot be set with a combination of other fields in amiSelectorTerms"
	// +kubebuilder:validation:XValidation:rule="!self.exists(x, has(x.alias) && (has(x.id) || has(x.tags) || has(x.name) || has(x.owner)))",message="'alias' is mutually exclusive, cannot be set with a combination of other fields in amiSelectorTerms"
	// +kubebuilder:validation:XValidation:rule="!(self.exists(x, has(x.alias)) && self.size() != 1)",message="'alias' is mutually exclusive, cannot be set with a combination of other amiSelectorTerms"
	// +kubebuilder:validation:MaxItems=30
	// +required
	AMISelectorTerms []AMISelectorTerm `json:"amiSelectorTerms" hash:"ignore"`
	// AMIFamily decides how nodes boot, the format of the user data, the default
	// disks and the supported kubelet settings: AL2, AL2023, Bottlerocket,
	// Windows2019, Windows2022, Windows2025, or Custom, which passes the user data
	// on unchanged. Unset means the family of the alias. Without an alias, it is
	// required.
	// +kubebuilder:validation:Enum=AL2;AL2023;Bottlerocket;Custom;Windows2019;Windows2022;Windows2025
	// +optional
	AMIFamily *AMIFamily `json:"amiFamily,omitempty" hash:"ignore"`
	// AssociatePublicIPAddress says whether nodes get a public IPv4 address. If
	// unset, the subnet decides.
	// +optional
	AssociatePublicIPAddress *bool `json:"associatePublicIPAddress,omitempty"`
	// IPPrefixCount is how many IP prefixes the network interface of a node gets at
	// launch, of /28 with IPv4 and /80 with IPv6. It does not change how many pods
	// fit on a node: set kubelet.maxPods for that. A change makes no node drift.
	// +kubebuilder:validation:Minimum=0
	// +optional
	IPPrefixCount *int32 `json:"ipPrefixCount,omitempty" hash:"ignore"`
	// UserData is what nodes run or read when they boot, in the format of the AMI
	// family: a shell script or MIME (AL2), also a NodeConfig (AL2023), TOML
	// (Bottlerocket), PowerShell (Windows). Karpenter merges it with the settings
	// that the family needs, which take precedence. With the family Custom, it is
	// the whole user data. EC2 allows 16 KiB in total.
	// +optional
	UserData *string `json:"userData,omitempty"`
	// Role is the name of the IAM role of nodes. Karpenter creates an instance
	// profile for it, and deletes the profile later. Set either role or
	// instanceProfile.
	// +kubebuilder:validation:XValidation:rule="self != ''",message="role cannot be empty"
	// +optional
	Role string `json:"role,omitempty"`
	// InstanceProfile is the name of an existing instance profile for nodes. Set
	// either role or instanceProfile. If the VPC cannot reach IAM, use
	// instanceProfile.
	// +kubebuilder:validation:XValidation:rule="self != ''",message="instanceProfile cannot be empty"
	// +optional
	InstanceProfile *string `json:"instanceProfile,omitempty"`
	// Tags of all EC2 resources for nodes: instances, volumes, network interfaces,
	// fleets, Spot requests, launch templates. A tag Name replaces Karpenter's.
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != '')",message="empty tag keys aren't supported"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != 'eks:eks-cluster-name')",message="tag contains a restricted tag matching eks:eks-cluster-name"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('kubernetes.io/cluster'))",message="tag contains a restricted tag matching kubernetes.io/cluster/"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != 'karpenter.sh/nodepool')",message="tag contains a restricted tag matching karpenter.sh/nodepool"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != 'karpenter.sh/nodeclaim')",message="tag contains a restricted tag matching karpenter.sh/nodeclaim"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != 'karpenter.k8s.aws/ec2nodeclass')",message="tag contains a restricted tag matching karpenter.k8s.aws/ec2nodeclass"
	// +optional
	Tags map[string]string `json:"tags,omitempty"`
	// Kubelet is the configuration of the kubelet of nodes, in the format of
	// kubelet.config.k8s.io/v1beta1 KubeletConfiguration. Every family supports
	// clusterDNS, maxPods, podsPerCore (not Bottlerocket), systemReserved,
	// kubeReserved, evictionHard, evictionSoft, evictionSoftGracePeriod,
	// evictionMaxPodGracePeriod, imageGCHighThresholdPercent,
	// imageGCLowThresholdPercent and cpuCFSQuota. AL2023 supports all fields. If
	// the family does not support a field, the condition ValidationSucceeded is
	// False.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Kubelet KubeletConfiguration `json:"kubelet,omitempty" hash:"ignore"`
	// BlockDeviceMappings are the disks of nodes. An empty list means those of the
	// AMI family: one of 20Gi (Bottlerocket: 6Gi and 20Gi, Windows: 50Gi), gp3,
	// encrypted. Any other replaces them all.
	// +kubebuilder:validation:XValidation:rule="self.filter(x, has(x.rootVolume) && x.rootVolume).size() <= 1",message="must have only one blockDeviceMappings with rootVolume"
	// +kubebuilder:validation:MaxItems=50
	// +optional
	BlockDeviceMappings []*BlockDeviceMapping `json:"blockDeviceMappings,omitempty"`
	// InstanceStorePolicy says how to use the local disks of the instance type.
	// RAID0 combines them into one disk for ephemeral storage of pods, images and
	// logs. If unset, they are not used. Windows and Custom ignore this field.
	// +kubebuilder:validation:Enum=RAID0
	// +optional
	InstanceStorePolicy *InstanceStorePolicy `json:"instanceStorePolicy,omitempty"`
	// NetworkInterfaces of nodes. An empty list means one network interface, and as
	// many of the Elastic Fabric Adapter as the pods of the node request
	// (vpc.amazonaws.com/efa). Karpenter does not use instance types without these
	// network cards or devices.
	// +kubebuilder:validation:XValidation:rule="self.size() == 0 || self.exists(x, x.networkCardIndex == 0 && x.deviceIndex == 0 && x.interfaceType == 'interface')",message="networkInterfaces must include a primary interface with interfaceType='interface'"
	// +kubebuilder:validation:XValidation:rule="self.all(x, self.exists_one(y, y.networkCardIndex == x.networkCardIndex && y.deviceIndex == x.deviceIndex) && (x.interfaceType != 'efa-only' || self.exists_one(y, y.interfaceType == 'efa-only' && y.networkCardIndex == x.networkCardIndex)))",message="networkInterfaces must not have duplicate networkCardIndex and deviceIndex pairs, and can have at most one efa device per network card"
	// +kubebuilder:validation:MaxItems=150
	// +optional
	NetworkInterfaces []*NetworkInterface `json:"networkInterfaces,omitempty"`
	// DetailedMonitoring enables detailed monitoring of CloudWatch: a value every
	// minute instead of every five minutes. AWS charges for it. Unset means false.
	// +optional
	DetailedMonitoring *bool `json:"detailedMonitoring,omitempty"`
	// MetadataOptions configure the instance metadata service. With the defaults,
	// which require a token and allow one hop, pods cannot get the credentials of
	// the node, unless they use the network of the host.
	// +kubebuilder:default={"httpEndpoint":"enabled","httpProtocolIPv6":"disabled","httpPutResponseHopLimit":1,"httpTokens":"required"}
	// +optional
	MetadataOptions *MetadataOptions `json:"metadataOptions,omitempty"`
	// ConnectionTracking sets how long security groups remember idle connections.
	// Only instance types on the Nitro hypervisor support it. Karpenter then uses
	// no others, and no bare metal.
	// +optional
	ConnectionTracking *ConnectionTracking `json:"connectionTracking,omitempty"`
	// EnclaveOptions say whether nodes can run Nitro Enclaves.
	// +optional
	EnclaveOptions *EnclaveOptions `json:"enclaveOptions,omitempty"`
	// Context is passed to CreateFleet unchanged. It is an identifier that AWS
	// gives to some customers.
	// +optional
	Context *string `json:"context,omitempty"`
	// CPUOptions are options of the processors of nodes.
	// +optional
	CPUOptions *CPUOptions `json:"cpuOptions,omitempty"`
}

// KubeletConfiguration is a KubeletConfiguration of kubelet.config.k8s.io/v1beta1
// as the user wrote it, by field name. Beyond what such a configuration can
// hold, maxPods and the values of kubeReserved and systemReserved may be
// expressions.
type KubeletConfiguration map[string]apiextensionsv1.JSON

// AMIFamily says how a node boots.
type AMIFamily string

// The AMI families.
const (
	AMIFamilyAL2          AMIFamily = "AL2"
	AMIFamilyAL2023       AMIFamily = "AL2023"
	AMIFamilyBottlerocket AMIFamily = "Bottlerocket"
	AMIFamilyWindows2019  AMIFamily = "Windows2019"
	AMIFamilyWindows2022  AMIFamily = "Windows2022"
	AMIFamilyWindows2025  AMIFamily = "Windows2025"
	// AMIFamilyCustom passes the user data on as it is.
	AMIFamilyCustom AMIFamily = "Custom"
)

// InstanceStorePolicy says how to use disks that come with the instance.
type InstanceStorePolicy string

// InstanceStorePolicyRAID0 makes one disk of them, for pods and images.
const InstanceStorePolicyRAID0 InstanceStorePolicy = "RAID0"
