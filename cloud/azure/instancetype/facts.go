// SPDX-License-Identifier: Apache-2.0

package instancetype

import (
	"fmt"
	"slices"
	"strings"

	"karpenter/api/azure/v1beta1"
	"karpenter/cloud/azure/image"
	"karpenter/cloud/azurevm"
)

// Facts are what is known of a size in a region.
type Facts struct {
	azurevm.SKU
	Parts azurevm.Name
	GPU   *azurevm.GPU // nil without GPUs
}

// The smallest sizes that are used.
const (
	leastVCPUs     = 2
	leastMemoryGiB = 3.5
)

// restricted lists sizes that AKS does not support, and two that are other sizes
// under another name.
func restricted() []string {
	return []string{
		"Standard_A0", "Standard_A1", "Standard_A1_v2", "Standard_B1s", "Standard_B1ms", "Standard_F1", "Standard_F1s",
		"Basic_A0", "Basic_A1", "Basic_A2", "Basic_A3", "Basic_A4",
		"Standard_E64i_v3", "Standard_E64is_v3",
	}
}

// NewFacts returns what is known of the SKU, or an error that says why Karpenter
// does not use it.
func NewFacts(sku azurevm.SKU, gpus azurevm.GPUs) (*Facts, error) {
	parts, ok := azurevm.ParseName(sku.Name)
	gpu, registered := gpus.Of(sku.Name)
	switch {
	case slices.Contains(restricted(), sku.Name):
		return nil, fmt.Errorf("%s is not supported by AKS", sku.Name)
	case sku.Restricted:
		return nil, fmt.Errorf("%s is not available to the subscription in the region", sku.Name)
	case sku.VCPUs < leastVCPUs:
		return nil, fmt.Errorf("%s has fewer than %d vCPUs", sku.Name, leastVCPUs)
	case sku.MemoryGiB < leastMemoryGiB:
		return nil, fmt.Errorf("%s has less than %v GiB of memory", sku.Name, leastMemoryGiB)
	case sku.GPUs > 0 && !registered:
		return nil, fmt.Errorf("%s has GPUs that AKS does not support", sku.Name)
	case !ok:
		return nil, fmt.Errorf("%s does not follow the naming scheme of sizes", sku.Name)
	case parts.Constrained:
		return nil, fmt.Errorf("%s has constrained vCPUs", sku.Name)
	case parts.Confidential():
		return nil, fmt.Errorf("%s is a confidential virtual machine", sku.Name)
	}
	facts := &Facts{SKU: sku, Parts: parts}
	if registered {
		facts.GPU = &gpu
	}
	return facts, nil
}

// Cluster is what all node classes have in common.
type Cluster struct {
	Region            string
	NodeResourceGroup string
	MemoryOverhead    float64 // share of memory that nodes don't see; ≥ 0
	NetworkPlugin     string  // azure, none
	NetworkPluginMode string  // overlay, or ""
	UltraSSD          bool    // instances can be launched with ultra disks
}

// Class is everything of an AKSNodeClass that its instance types depend on.
type Class struct {
	OSSKU             string
	Image             image.Wanted
	OSDiskGB          int64
	MaxPods           int64 // 0 = as the network plugin says
	EncryptionAtHost  bool
	ArtifactStreaming bool
	GPUDriver         bool // AKS installs it
	LocalDNS          bool // runs on nodes
}

// defaultOSDiskGB is the size of the disk of a class that was stored without one.
const defaultOSDiskGB = 128

// NewClass returns what the class says, for nodes with a version of Kubernetes.
func NewClass(c *v1beta1.AKSNodeClass, kubernetes string) Class {
	out := Class{
		OSSKU:             v1beta1.OSSKU(""),
		Image:             image.Of(c, kubernetes),
		OSDiskGB:          defaultOSDiskGB,
		EncryptionAtHost:  c.EncryptsAtHost(),
		ArtifactStreaming: c.StreamsArtifacts(),
		GPUDriver:         c.InstallsGPUDriver(),
		LocalDNS:          c.Status.LocalDNSState != nil && *c.Status.LocalDNSState == v1beta1.LocalDNSStateEnabled,
	}
	if c.Spec.ImageFamily != nil {
		out.OSSKU = v1beta1.OSSKU(*c.Spec.ImageFamily)
	}
	if c.Spec.OSDiskSizeGB != nil {
		out.OSDiskGB = int64(*c.Spec.OSDiskSizeGB)
	}
	if c.Spec.MaxPods != nil {
		out.MaxPods = int64(*c.Spec.MaxPods)
	}
	return out
}

// What the DNS cache on nodes needs.
const (
	localDNSVCPUs     = 4
	localDNSMemoryMiB = 244
)

// Supported reports whether the class can launch nodes of the size. Sizes that it
// cannot launch are not among its instance types.
func Supported(facts *Facts, class *Class) bool {
	switch {
	case facts.GPU != nil && !slices.Contains(facts.GPU.OS, class.Image.Family.GPUSystem()):
		return false
	case facts.GPU != nil && class.GPUDriver && facts.GPU.Manufacturer != v1beta1.ManufacturerNVIDIA:
		return false
	case class.EncryptionAtHost && !facts.EncryptionAtHost:
		return false
	case class.LocalDNS && (facts.VCPUs < localDNSVCPUs || facts.memoryMiB() < localDNSMemoryMiB):
		return false
	case class.ArtifactStreaming && facts.Arch == "arm64":
		return false
	case class.Image.TrustedLaunch && facts.TrustedLaunchDisabled:
		return false
	}
	return slices.ContainsFunc(class.Image.Definitions(), func(d image.Definition) bool {
		return d.Arch == facts.Arch && slices.Contains(facts.generations(), d.Generation)
	})
}

// generations are the generations of virtual machines, "1" and "2", that the
// size can boot. A size of which Azure does not tell them boots the first.
func (f *Facts) generations() []string {
	var out []string
	for _, g := range f.HyperVGenerations {
		out = append(out, strings.TrimPrefix(g, "V"))
	}
	if out == nil {
		out = []string{"1"}
	}
	return out
}

func (f *Facts) memoryMiB() int64 { return int64(f.MemoryGiB * 1024) }

// zones are the numbers of the zones that the subscription can use.
func (f *Facts) zones() []string {
	return slices.DeleteFunc(slices.Clone(f.Zones), func(zone string) bool {
		return slices.Contains(f.RestrictedZones, zone)
	})
}
