// SPDX-License-Identifier: Apache-2.0

package instancetype

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"karpenter/api/azure/v1beta1"
	"karpenter/cloud"
	"karpenter/model"
)

// requirements are the labels of the type's nodes, each with the values it may
// have. A label without any is said not to exist. What differs by offering is the
// union over the available ones.
func requirements(facts *Facts, class *Class, cluster *Cluster, offerings []cloud.Offering) model.Requirements {
	vCPUs, memory := strconv.FormatInt(facts.VCPUs, 10), strconv.FormatInt(facts.memoryMiB(), 10)
	fips := ""
	if class.Image.FIPS {
		fips = "true"
	}
	disk, _ := EphemeralDisk(facts)
	all := []model.Requirement{
		model.NewRequirement(model.LabelInstanceType, model.In, facts.Name),
		optional(model.LabelArch, facts.Arch),
		model.NewRequirement(model.LabelOS, model.In, string(corev1.Linux)),
		model.NewRequirement(model.LabelRegion, model.In, cluster.Region),
		model.NewRequirement(v1beta1.SKUNameLabelKey, model.In, facts.Name),
		model.NewRequirement(v1beta1.SKUFamilyLabelKey, model.In, facts.Parts.Family),
		model.NewRequirement(v1beta1.SKUSeriesLabelKey, model.In, facts.Parts.Series),
		model.NewRequirement(v1beta1.SKUVersionLabelKey, model.In, facts.Parts.Version),
		model.NewRequirement(v1beta1.SKUCPULabelKey, model.In, vCPUs),
		model.NewRequirement(v1beta1.AKSCPULabelKey, model.In, vCPUs),
		model.NewRequirement(v1beta1.SKUMemoryLabelKey, model.In, memory),
		model.NewRequirement(v1beta1.AKSMemoryLabelKey, model.In, memory),
		truth(v1beta1.SKUAcceleratedNetworkingLabelKey, facts.AcceleratedNetworking),
		truth(v1beta1.SKUPremiumStorageLabelKey, facts.PremiumIO),
		number(v1beta1.SKUEphemeralOSMaxSizeLabelKey, disk),
		model.NewRequirement(v1beta1.SKUHyperVGenerationLabelKey, model.In, facts.generations()...),
		model.NewRequirement(v1beta1.AKSClusterLabelKey, model.In, NameLabel(cluster.NodeResourceGroup)),
		model.NewRequirement(v1beta1.AKSModeLabelKey, model.In, v1beta1.ModeSystem, v1beta1.ModeUser),
		model.NewRequirement(v1beta1.AKSOSSKULabelKey, model.In, class.OSSKU),
		optional(v1beta1.AKSFIPSEnabledLabelKey, fips),
	}
	all = append(all, gpuLabels(facts)...)
	all = append(all, unions(offerings)...)
	return model.NewRequirements(all...)
}

func gpuLabels(facts *Facts) []model.Requirement {
	var name, manufacturer string
	var count int64
	if facts.GPU != nil {
		name, manufacturer, count = facts.Parts.Accelerator, facts.GPU.Manufacturer, facts.SKU.GPUs
	}
	return []model.Requirement{
		optional(v1beta1.SKUGPUNameLabelKey, name),
		optional(v1beta1.SKUGPUManufacturerLabelKey, manufacturer),
		model.NewRequirement(v1beta1.SKUGPUCountLabelKey, model.In, strconv.FormatInt(count, 10)),
	}
}

// unions are the labels that differ by offering.
func unions(offerings []cloud.Offering) []model.Requirement {
	var out []model.Requirement
	for _, key := range []string{
		model.LabelZone, model.LabelCapacityType, v1beta1.PlacementScopeLabelKey,
		v1beta1.AKSScaleSetPriorityLabelKey, v1beta1.AKSPriorityLabelKey, v1beta1.SKUUltraSSDLabelKey,
	} {
		var values []string
		for i := range offerings {
			r, _ := offerings[i].Requirements.Get(key)
			values = append(values, r.Values...)
		}
		out = append(out, model.NewRequirement(key, model.In, values...))
	}
	return out
}

// optional is absent without a value.
func optional(key, value string) model.Requirement {
	if value == "" {
		return model.NewRequirement(key, model.DoesNotExist)
	}
	return model.NewRequirement(key, model.In, value)
}

func number(key string, n int64) model.Requirement {
	if n == 0 {
		return optional(key, "")
	}
	return optional(key, strconv.FormatInt(n, 10))
}

func truth(key string, b bool) model.Requirement { return optional(key, strconv.FormatBool(b)) }

// longestLabel is the length of the longest value a label can have.
const longestLabel = 63

// NameLabel returns the name of a resource in Azure as far as the value of a label can hold
// it, in the way of AKS: the label kubernetes.azure.com/cluster has the resource group of the
// nodes.
func NameLabel(name string) string {
	label := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_.", c) {
			return c
		}
		return '-'
	}, name)
	label = strings.TrimLeft(label, "-_.")
	if len(label) > longestLabel {
		label = label[:longestLabel]
	}
	if label == "" || !strings.ContainsAny(label[len(label)-1:], "-_.") {
		return label
	}
	if len(label) == longestLabel {
		label = label[:longestLabel-1]
	}
	return label + "z"
}
