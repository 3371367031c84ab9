// SPDX-License-Identifier: Apache-2.0

package instancetype

import (
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	awsv1 "karpenter/api/aws/v1"
	karpenterv1 "karpenter/api/v1"
	"karpenter/cloud/ec2"
	"karpenter/model"
)

// requirements are the labels of the type's nodes, each with the values it may
// have. A label without values has the operator DoesNotExist. Without an
// operating system, a zone or a capacity type, no node can be of the type.
func (s *sizing) requirements() model.Requirements {
	d := &s.facts.Description
	all := []model.Requirement{
		model.NewRequirement(model.LabelInstanceType, model.In, d.InstanceType),
		optional(model.LabelArch, architecture(d)),
		mandatory(model.LabelOS, s.operatingSystems()),
		model.NewRequirement(model.LabelRegion, model.In, s.cluster.Region),
		mandatory(model.LabelCapacityType, s.capacityTypes()),
		model.NewRequirement(awsv1.InstanceTenancyLabelKey, model.In, awsv1.InstanceTenancyDefault, awsv1.InstanceTenancyDedicated),
		model.NewRequirement(awsv1.InstanceHypervisorLabelKey, model.In, d.Hypervisor), // also when empty
	}
	if build := s.traits.windowsBuild; build != "" {
		all = append(all, model.NewRequirement(corev1.LabelWindowsBuild, model.In, build))
	}
	all = append(all, s.zones()...)
	all = append(all, naming(d.InstanceType)...)
	all = append(all, s.hardware()...)
	all = append(all, deviceLabels(d)...)
	all = append(all, s.reservations()...)
	all = append(all, s.placement()...)
	return model.NewRequirements(all...)
}

// optional is absent without a value.
func optional(key, value string) model.Requirement {
	if value == "" {
		return model.NewRequirement(key, model.DoesNotExist)
	}
	return model.NewRequirement(key, model.In, value)
}

// mandatory is never met without a value.
func mandatory(key string, values []string) model.Requirement {
	r := model.NewRequirement(key, model.In, values...)
	r.Present = len(values) == 0
	return r
}

func number(key string, n int64) model.Requirement {
	if n == 0 {
		return optional(key, "")
	}
	return optional(key, strconv.FormatInt(n, 10))
}

func truth(key string, b bool) model.Requirement { return optional(key, strconv.FormatBool(b)) }

// kebab is how EC2's names become label values.
func kebab(name string) string { return strings.ReplaceAll(strings.ToLower(name), " ", "-") }

// architecture is the first one that Kubernetes knows too, or "".
func architecture(d *ec2.Description) string {
	for _, a := range d.ProcessorInfo.SupportedArchitectures {
		switch a {
		case "x86_64":
			return "amd64"
		case "arm64":
			return "arm64"
		}
	}
	return ""
}

func (s *sizing) operatingSystems() []string {
	switch {
	case s.traits.windowsBuild == "":
		return []string{string(corev1.Linux)}
	case architecture(&s.facts.Description) == "amd64":
		return []string{string(corev1.Windows)}
	}
	return nil
}

func (s *sizing) capacityTypes() []string {
	out := usageClasses(&s.facts.Description)
	if len(reserved(s.facts, s.class)) > 0 {
		out = append(out, karpenterv1.CapacityTypeReserved)
	}
	return out
}

// usageClasses are the capacity types that need no reservation.
func usageClasses(d *ec2.Description) []string {
	var out []string
	for _, class := range []string{karpenterv1.CapacityTypeOnDemand, karpenterv1.CapacityTypeSpot} {
		if slices.Contains(d.SupportedUsageClasses, class) {
			out = append(out, class)
		}
	}
	return out
}

// reserved returns the class's reservations for the type.
func reserved(facts *Facts, class *Class) []awsv1.CapacityReservation {
	var out []awsv1.CapacityReservation
	for _, r := range class.Reservations {
		if r.InstanceType == facts.InstanceType {
			out = append(out, r)
		}
	}
	return out
}

// zones are those that offer the type and have a subnet of the class.
func (s *sizing) zones() []model.Requirement {
	var names, ids []string
	for _, zone := range s.class.Zones {
		if slices.Contains(s.facts.Zones, zone.Name) {
			names = append(names, zone.Name)
			if zone.ID != "" {
				ids = append(ids, zone.ID)
			}
		}
	}
	out := []model.Requirement{mandatory(model.LabelZone, names)}
	if len(ids) > 0 {
		out = append(out, model.NewRequirement(awsv1.ZoneIDLabelKey, model.In, ids...))
	}
	return out
}

// split returns what stands before and after the one dot of a type's name.
func split(name string) (family, size string) {
	family, size, _ = strings.Cut(name, ".")
	if family == "" || size == "" || strings.Contains(size, ".") {
		return "", ""
	}
	return family, size
}

// naming is what the name tells: m5.large is of category m and generation 5,
// u-6tb1.112xlarge of category u and generation 1.
func naming(name string) []model.Requirement {
	family, size := split(name)
	category, generation := lineage(name)
	return []model.Requirement{
		optional(awsv1.InstanceFamilyLabelKey, family),
		optional(awsv1.InstanceSizeLabelKey, size),
		optional(awsv1.InstanceCategoryLabelKey, category),
		optional(awsv1.InstanceGenerationLabelKey, generation),
		truth(awsv1.InstanceCapabilityFlexLabelKey, strings.Contains(family, "-flex")),
	}
}

// lineage reads the letters a name begins with, passes over "-<n>tb", and reads
// the digits that follow. Without both there is neither.
func lineage(name string) (category, generation string) {
	stem, _, dotted := strings.Cut(name, ".")
	rest := strings.TrimLeft(stem, "abcdefghijklmnopqrstuvwxyz")
	category = stem[:len(stem)-len(rest)]
	if size, ok := strings.CutPrefix(rest, "-"); ok {
		if after, ok := strings.CutPrefix(strings.TrimLeft(size, digits), "tb"); ok {
			rest = after
		}
	}
	generation = rest[:len(rest)-len(strings.TrimLeft(rest, digits))]
	if category == "" || generation == "" || !dotted {
		return "", ""
	}
	return category, generation
}

const digits = "0123456789"

func (s *sizing) hardware() []model.Requirement {
	d := &s.facts.Description
	var ebs, nvme int64
	if d.EbsInfo.EbsOptimizedSupport == "default" {
		ebs = d.EbsInfo.EbsOptimizedInfo.MaximumBandwidthInMbps
	}
	if local := d.InstanceStorageInfo; local != nil && local.NvmeSupport != "" && local.NvmeSupport != "unsupported" {
		nvme = local.TotalSizeInGB
	}
	return []model.Requirement{
		number(awsv1.InstanceCPULabelKey, d.VCpuInfo.DefaultVCpus),
		optional(awsv1.InstanceCPUManufacturerLabelKey, kebab(d.ProcessorInfo.Manufacturer)),
		// Upstream's label is 0 where EC2 tells no clock speed: c1, m1, m2, t1 and i3.metal.
		optional(awsv1.InstanceCPUSustainedClockSpeedMHzLabelKey, strconv.FormatInt(int64(math.Round(d.ProcessorInfo.SustainedClockSpeedInGhz*1000)), 10)),
		number(awsv1.InstanceMemoryLabelKey, d.MemoryInfo.SizeInMiB),
		number(awsv1.InstanceEBSBandwidthLabelKey, ebs),
		number(awsv1.InstanceNetworkBandwidthLabelKey, s.facts.NetworkMbps),
		number(awsv1.InstanceLocalNVMELabelKey, nvme),
		truth(awsv1.InstanceEncryptionInTransitSupportedLabelKey, d.NetworkInfo.EncryptionInTransitSupported),
	}
}

// deviceLabels describe GPUs and accelerators if there is one kind of them.
func deviceLabels(d *ec2.Description) []model.Requirement {
	var gpu, accelerator [4]string // name, manufacturer, count, memory
	if gpus := d.GpuInfo.Gpus; len(gpus) == 1 {
		gpu = [4]string{kebab(gpus[0].Name), kebab(gpus[0].Manufacturer),
			strconv.FormatInt(gpus[0].Count, 10), strconv.FormatInt(gpus[0].MemoryInfo.SizeInMiB, 10)}
	}
	neurons, others := d.NeuronInfo.NeuronDevices, d.InferenceAcceleratorInfo.Accelerators
	switch {
	case len(neurons) == 1:
		accelerator = [4]string{kebab(neurons[0].Name), "aws", strconv.FormatInt(neurons[0].Count, 10)}
	case len(neurons) == 0 && len(others) == 1:
		accelerator = [4]string{kebab(others[0].Name), kebab(others[0].Manufacturer), strconv.FormatInt(others[0].Count, 10)}
	}
	return []model.Requirement{
		optional(awsv1.InstanceGPUNameLabelKey, gpu[0]),
		optional(awsv1.InstanceGPUManufacturerLabelKey, gpu[1]),
		optional(awsv1.InstanceGPUCountLabelKey, gpu[2]),
		optional(awsv1.InstanceGPUMemoryLabelKey, gpu[3]),
		optional(awsv1.InstanceAcceleratorNameLabelKey, accelerator[0]),
		optional(awsv1.InstanceAcceleratorManufacturerLabelKey, accelerator[1]),
		optional(awsv1.InstanceAcceleratorCountLabelKey, accelerator[2]),
	}
}

func (s *sizing) reservations() []model.Requirement {
	var ids, kinds, interruptible []string
	for _, r := range reserved(s.facts, s.class) {
		ids = append(ids, r.ID)
		kinds = append(kinds, string(kind(r)))
		interruptible = append(interruptible, strconv.FormatBool(r.Interruptible))
	}
	return []model.Requirement{
		model.NewRequirement(awsv1.CapacityReservationIDLabelKey, model.In, ids...),
		model.NewRequirement(awsv1.CapacityReservationTypeLabelKey, model.In, kinds...),
		model.NewRequirement(awsv1.CapacityReservationInterruptibleLabelKey, model.In, interruptible...),
	}
}

// kind is the reservation's type; objects of before there was a choice have none.
func kind(r awsv1.CapacityReservation) awsv1.CapacityReservationType {
	if r.ReservationType == "" {
		return awsv1.CapacityReservationTypeDefault
	}
	return r.ReservationType
}

func (s *sizing) placement() []model.Requirement {
	group := s.class.PlacementGroup
	if group == nil {
		return nil
	}
	out := []model.Requirement{model.NewRequirement(awsv1.PlacementGroupIDLabelKey, model.In, group.ID)}
	if names := partitions(group); len(names) > 0 {
		out = append(out, model.NewRequirement(awsv1.PlacementGroupPartitionLabelKey, model.In, names...))
	}
	return out
}

// partitions are the names of the group's partitions, in order; none but with
// the strategy partition.
func partitions(group *PlacementGroup) []string {
	if group == nil || group.Strategy != "partition" {
		return nil
	}
	var out []string
	for i := range group.Partitions {
		out = append(out, strconv.Itoa(i+1))
	}
	return out
}
