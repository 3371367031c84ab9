// SPDX-License-Identifier: Apache-2.0

package v1beta1

import karpenterv1 "karpenter/api/v1"

// LocalDNS configures a DNS cache on each node.
type LocalDNS struct {
	// Mode Required switches the cache on, Disabled switches it off, and
	// Preferred switches it on if the cluster supports it. VM sizes with fewer
	// than 4 vCPUs are not used while it is on.
	// +kubebuilder:validation:Enum=Preferred;Required;Disabled
	// +required
	Mode LocalDNSMode `json:"mode"`
	// VnetDNSOverrides are the rules, by zone, for pods and processes that use
	// the DNS of the virtual network (dnsPolicy Default).
	// +kubebuilder:validation:XValidation:rule="['.', 'cluster.local'].all(z, self.exists(x, x.zone == z))",message="must contain required zones '.' and 'cluster.local'"
	// +kubebuilder:validation:XValidation:rule="!self.exists(x, x.zone == '.' && x.forwardDestination == 'ClusterCoreDNS')",message="root zone '.' cannot be forwarded to ClusterCoreDNS from vnetDNSOverrides"
	// +kubebuilder:validation:XValidation:rule="!self.exists(x, x.zone != '.' && !x.zone.endsWith('cluster.local') && x.forwardDestination == 'ClusterCoreDNS')",message="external domains cannot be forwarded to ClusterCoreDNS from vnetDNSOverrides"
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=zone
	// +required
	VnetDNSOverrides []LocalDNSZoneOverride `json:"vnetDNSOverrides"`
	// KubeDNSOverrides are the rules, by zone, for pods that use the DNS of the
	// cluster (dnsPolicy ClusterFirst).
	// +kubebuilder:validation:XValidation:rule="['.', 'cluster.local'].all(z, self.exists(x, x.zone == z))",message="must contain required zones '.' and 'cluster.local'"
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=zone
	// +required
	KubeDNSOverrides []LocalDNSZoneOverride `json:"kubeDNSOverrides"`
}

// LocalDNSMode is when the DNS cache runs.
type LocalDNSMode string

// The modes of the DNS cache.
const (
	LocalDNSModePreferred LocalDNSMode = "Preferred"
	LocalDNSModeRequired  LocalDNSMode = "Required"
	LocalDNSModeDisabled  LocalDNSMode = "Disabled"
)

// LocalDNSState is whether the DNS cache runs on new nodes.
type LocalDNSState string

// The states of the DNS cache.
const (
	LocalDNSStateEnabled  LocalDNSState = "Enabled"
	LocalDNSStateDisabled LocalDNSState = "Disabled"
)

// LocalDNSZoneOverride says how the DNS cache resolves names in a zone.
//
// +kubebuilder:validation:XValidation:rule="!self.zone.endsWith('cluster.local') || self.forwardDestination != 'VnetDNS'",message="'cluster.local' cannot be forwarded to VnetDNS"
// +kubebuilder:validation:XValidation:rule="!(self.serveStale == 'Verify' && self.protocol == 'ForceTCP')",message="serveStale Verify cannot be used with protocol ForceTCP"
type LocalDNSZoneOverride struct {
	// Zone is a DNS zone, or a single dot for all names without a rule.
	// +kubebuilder:validation:Pattern=`^(\.|[A-Za-z0-9]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?)*\.?)$`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=254
	// +required
	Zone string `json:"zone"`
	// QueryLogging is which queries are logged: Error or Log, which means all.
	// +kubebuilder:validation:Enum=Error;Log
	// +required
	QueryLogging string `json:"queryLogging"`
	// Protocol to the forward destination: PreferUDP or ForceTCP.
	// +kubebuilder:validation:Enum=PreferUDP;ForceTCP
	// +required
	Protocol string `json:"protocol"`
	// ForwardDestination answers queries that are not cached: ClusterCoreDNS or
	// VnetDNS.
	// +kubebuilder:validation:Enum=ClusterCoreDNS;VnetDNS
	// +required
	ForwardDestination string `json:"forwardDestination"`
	// ForwardPolicy chooses among the servers of the destination: Sequential,
	// RoundRobin or Random.
	// +kubebuilder:validation:Enum=Sequential;RoundRobin;Random
	// +required
	ForwardPolicy string `json:"forwardPolicy"`
	// MaxConcurrent is the largest number of concurrent queries to the
	// destination.
	// +kubebuilder:validation:Minimum=0
	// +required
	MaxConcurrent *int32 `json:"maxConcurrent"`
	// CacheDuration is how long answers are cached.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(s|m|h))+$`
	// +required
	CacheDuration karpenterv1.NillableDuration `json:"cacheDuration"`
	// ServeStaleDuration is how long cached answers are used while the
	// destination does not answer.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(s|m|h))+$`
	// +required
	ServeStaleDuration karpenterv1.NillableDuration `json:"serveStaleDuration"`
	// ServeStale is when stale answers are used: Verify asks the destination
	// first, Immediate answers first, Disable never uses them.
	// +kubebuilder:validation:Enum=Verify;Immediate;Disable
	// +required
	ServeStale string `json:"serveStale"`
}
