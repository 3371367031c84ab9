// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	aks "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerservice/armcontainerservice/v8"
	corev1 "k8s.io/api/core/v1"

	"karpenter/api/azure/v1beta1"
	"karpenter/api/quantity"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/azure/image"
	"karpenter/cloud/azure/instancetype"
	"karpenter/cloud/azure/launch"
	"karpenter/cloud/azurevm"
	"karpenter/model"
)

// Want is a machine that is to be launched.
type Want struct {
	Claim      *v1.NodeClaim
	Class      *v1beta1.AKSNodeClass
	Kubernetes string // version
	Image      v1beta1.NodeImage
	Choice     cloud.Choice
	SKU        azurevm.SKU
	GPU        *azurevm.GPU // nil without GPUs
	Tags       map[string]string
}

// Body returns the request that creates the machine.
func (w *Want) Body() (aks.Machine, error) {
	version, err := image.NodeImageVersion(w.Image.ID)
	if err != nil {
		return aks.Machine{}, err
	}
	system, err := w.operatingSystem()
	if err != nil {
		return aks.Machine{}, err
	}
	kubernetes, err := w.kubernetes()
	if err != nil {
		return aks.Machine{}, err
	}
	return aks.Machine{
		Zones: Zones(w.Choice.Offering.Zone()),
		Properties: &aks.MachineProperties{
			NodeImageVersion: &version,
			Network:          w.network(),
			Hardware:         w.hardware(),
			OperatingSystem:  system,
			Kubernetes:       kubernetes,
			Mode:             to.Ptr(mode(w.Claim)),
			Security:         w.security(),
			Priority:         to.Ptr(priority(w.Choice.Offering.CapacityType())),
			Tags:             pointers(w.Tags),
		},
	}, nil
}

// Zones are the zones of ARM for a zone label; an empty list for regional
// instances.
func Zones(label string) []*string {
	if number := instancetype.ZoneNumber(label); number != "" {
		return []*string{&number}
	}
	return []*string{}
}

func priority(capacityType string) aks.ScaleSetPriority {
	if capacityType == model.Spot {
		return aks.ScaleSetPrioritySpot
	}
	return aks.ScaleSetPriorityRegular
}

func mode(claim *v1.NodeClaim) aks.AgentPoolMode {
	if claim.Labels[v1beta1.AKSModeLabelKey] == v1beta1.ModeSystem {
		return aks.AgentPoolModeSystem
	}
	return aks.AgentPoolModeUser
}

func (w *Want) network() *aks.MachineNetworkProperties {
	if w.Class.Spec.VNETSubnetID == nil {
		return nil
	}
	return &aks.MachineNetworkProperties{VnetSubnetID: w.Class.Spec.VNETSubnetID}
}

func (w *Want) hardware() *aks.MachineHardwareProfile {
	out := &aks.MachineHardwareProfile{VMSize: to.Ptr(w.Choice.Type.Name)}
	if w.GPU != nil {
		driver := aks.GPUDriverNone
		if w.Class.InstallsGPUDriver() {
			driver = aks.GPUDriverInstall
		}
		out.GpuProfile = &aks.GPUProfile{Driver: &driver}
	}
	return out
}

func (w *Want) security() *aks.MachineSecurityProfile {
	out := &aks.MachineSecurityProfile{
		SSHAccess:              to.Ptr(aks.AgentPoolSSHAccessLocalUser),
		EnableEncryptionAtHost: to.Ptr(w.Class.EncryptsAtHost()),
	}
	if s := w.Class.Spec.Security; s != nil && s.TrustedLaunch != nil {
		out.EnableVTPM, out.EnableSecureBoot = s.TrustedLaunch.VTPM, s.TrustedLaunch.SecureBoot
	}
	return out
}

func (w *Want) operatingSystem() (*aks.MachineOSProfile, error) {
	spec := &w.Class.Spec
	if spec.ImageFamily == nil {
		return nil, fmt.Errorf("AKSNodeClass %s has no imageFamily", w.Class.Name)
	}
	facts := instancetype.Facts{SKU: w.SKU}
	diskType := aks.OSDiskTypeManaged
	class := instancetype.NewClass(w.Class, w.Kubernetes)
	if largest, _ := instancetype.EphemeralDisk(&facts); class.OSDiskGB <= largest {
		diskType = aks.OSDiskTypeEphemeral
	}
	out := &aks.MachineOSProfile{
		OSType:       to.Ptr(aks.OSTypeLinux),
		OSSKU:        to.Ptr(osSKU(*spec.ImageFamily, class.Image)),
		OSDiskSizeGB: to.Ptr(int32(class.OSDiskGB)),
		OSDiskType:   &diskType,
		EnableFIPS:   to.Ptr(w.Class.FIPS()),
	}
	if spec.LinuxOSConfig != nil {
		config, err := linuxOSConfig(spec.LinuxOSConfig)
		if err != nil {
			return nil, err
		}
		out.LinuxProfile = &aks.MachineOSProfileLinuxProfile{LinuxOSConfig: config}
	}
	return out, nil
}

// osSKU names the operating system as AKS does.
func osSKU(family string, wanted image.Wanted) aks.OSSKU {
	switch {
	case family != v1beta1.UbuntuImageFamily:
		return aks.OSSKU(family)
	case wanted.Family == image.Ubuntu2004, wanted.FIPS:
		return aks.OSSKUUbuntu
	}
	return aks.OSSKU(wanted.Family)
}

func linuxOSConfig(c *v1beta1.LinuxOSConfiguration) (*aks.LinuxOSConfig, error) {
	swap, err := mebibytes(c.SwapFileSize, "linuxOSConfig.swapFileSize")
	if err != nil {
		return nil, err
	}
	out := &aks.LinuxOSConfig{
		SwapFileSizeMB:             swap,
		TransparentHugePageDefrag:  c.TransparentHugePageDefrag,
		TransparentHugePageEnabled: c.TransparentHugePageEnabled,
	}
	if s := c.Sysctls; s != nil {
		out.Sysctls = &aks.SysctlConfig{
			FsAioMaxNr: s.FsAioMaxNr, FsFileMax: s.FsFileMax, FsInotifyMaxUserWatches: s.FsInotifyMaxUserWatches, FsNrOpen: s.FsNrOpen,
			KernelThreadsMax:        s.KernelThreadsMax,
			NetCoreNetdevMaxBacklog: s.NetCoreNetdevMaxBacklog, NetCoreOptmemMax: s.NetCoreOptmemMax, NetCoreSomaxconn: s.NetCoreSomaxconn,
			NetCoreRmemDefault: s.NetCoreRmemDefault, NetCoreRmemMax: s.NetCoreRmemMax,
			NetCoreWmemDefault: s.NetCoreWmemDefault, NetCoreWmemMax: s.NetCoreWmemMax,
			NetIPv4IPLocalPortRange:      s.NetIPv4IPLocalPortRange,
			NetIPv4NeighDefaultGcThresh1: s.NetIPv4NeighDefaultGcThresh1,
			NetIPv4NeighDefaultGcThresh2: s.NetIPv4NeighDefaultGcThresh2,
			NetIPv4NeighDefaultGcThresh3: s.NetIPv4NeighDefaultGcThresh3,
			NetIPv4TCPFinTimeout:         s.NetIPv4TCPFinTimeout, NetIPv4TCPKeepaliveProbes: s.NetIPv4TCPKeepaliveProbes,
			NetIPv4TCPKeepaliveTime: s.NetIPv4TCPKeepaliveTime, NetIPv4TcpkeepaliveIntvl: s.NetIPv4TCPKeepaliveIntvl,
			NetIPv4TCPMaxSynBacklog: s.NetIPv4TCPMaxSynBacklog, NetIPv4TCPMaxTwBuckets: s.NetIPv4TCPMaxTwBuckets,
			NetIPv4TCPTwReuse:              s.NetIPv4TCPTwReuse,
			NetNetfilterNfConntrackBuckets: s.NetNetfilterNfConntrackBuckets, NetNetfilterNfConntrackMax: s.NetNetfilterNfConntrackMax,
			VMMaxMapCount: s.VMMaxMapCount, VMSwappiness: s.VMSwappiness, VMVfsCachePressure: s.VMVfsCachePressure,
		}
	}
	return out, nil
}

// mebibytes returns the quantity in whole MiB, nil for nil.
func mebibytes(text *string, field string) (*int32, error) {
	if text == nil {
		return nil, nil
	}
	number := *text
	if kilo, ok := strings.CutSuffix(number, "K"); ok {
		number = kilo + "k" // as quantities spell it
	}
	q, err := quantity.Parse(number)
	if err != nil {
		return nil, fmt.Errorf("spec.%s: %w", field, err)
	}
	mib := math.Round(float64(q.Value()) / (1 << 20))
	if mib > math.MaxInt32 {
		return nil, fmt.Errorf("spec.%s: %q is too large", field, *text)
	}
	return to.Ptr(int32(mib)), nil
}

func (w *Want) kubernetes() (*aks.MachineKubernetesProfile, error) {
	out := &aks.MachineKubernetesProfile{
		OrchestratorVersion:      &w.Kubernetes,
		NodeLabels:               pointers(nodeLabels(w.Claim, w.Choice)),
		NodeInitializationTaints: to.SliceOfPtrs(Taints(w.Claim)...), // AKS does not restore them
		NodeTaints:               []*string{},
		MaxPods:                  w.Class.Spec.MaxPods,
	}
	if arch, _ := w.Choice.Type.Requirements.Value(model.LabelArch); w.Class.StreamsArtifacts() && arch != "arm64" {
		out.ArtifactStreamingProfile = &aks.AgentPoolArtifactStreamingProfile{Enabled: to.Ptr(true)}
	}
	if w.Class.Spec.Kubelet != nil {
		config, err := kubeletConfig(w.Class.Spec.Kubelet)
		if err != nil {
			return nil, err
		}
		out.KubeletConfig = config
	}
	return out, nil
}

func kubeletConfig(k *v1beta1.KubeletConfiguration) (*aks.KubeletConfig, error) {
	logs, err := mebibytes(nonEmpty(k.ContainerLogMaxSize), "kubelet.containerLogMaxSize")
	if err != nil {
		return nil, err
	}
	out := &aks.KubeletConfig{
		CPUManagerPolicy:      nonEmpty(k.CPUManagerPolicy),
		CPUCfsQuota:           k.CPUCFSQuota,
		ImageGcHighThreshold:  k.ImageGCHighThresholdPercent,
		ImageGcLowThreshold:   k.ImageGCLowThresholdPercent,
		TopologyManagerPolicy: nonEmpty(k.TopologyManagerPolicy),
		ContainerLogMaxSizeMB: logs,
		ContainerLogMaxFiles:  k.ContainerLogMaxFiles,
		FailSwapOn:            k.FailSwapOn,
	}
	if k.CPUCFSQuotaPeriod.Duration != 0 {
		out.CPUCfsQuotaPeriod = to.Ptr(k.CPUCFSQuotaPeriod.Duration.String())
	}
	for _, name := range k.AllowedUnsafeSysctls {
		out.AllowedUnsafeSysctls = append(out.AllowedUnsafeSysctls, &name)
	}
	if k.PodPidsLimit != nil {
		out.PodMaxPids = to.Ptr(int32(min(max(*k.PodPidsLimit, -1), math.MaxInt32)))
	}
	return out, nil
}

func nonEmpty(text *string) *string {
	if text == nil || *text == "" {
		return nil
	}
	return text
}

// Taints are those that nodes start with, as KEY=VALUE:EFFECT.
func Taints(claim *v1.NodeClaim) []string {
	var out []string
	for _, taint := range slices.Concat(claim.Spec.Taints, claim.Spec.StartupTaints) {
		kubernetes := corev1.Taint{Key: taint.Key, Value: taint.Value, Effect: taint.Effect}
		out = append(out, kubernetes.ToString())
	}
	unregistered := v1.UnregisteredNoExecuteTaint()
	out = append(out, unregistered.ToString())
	slices.Sort(out)
	return slices.Compact(out)
}

// nodeLabels are the labels of the node that AKS does not set itself and lets
// users set.
func nodeLabels(claim *v1.NodeClaim, choice cloud.Choice) map[string]string {
	labels := choice.Labels(claim)
	labels[v1beta1.SKUUltraSSDLabelKey] = strconv.FormatBool(launch.UltraSSD(claim))
	maps.DeleteFunc(labels, func(key, _ string) bool { return reserved(key) })
	return labels
}

// reserved reports whether the label is one that AKS or the kubelet sets, or that
// a kubelet may not set.
func reserved(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	switch key {
	case "agentpool", "storageprofile", "storagetier", "accelerator",
		corev1.LabelHostname, corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelInstanceTypeStable,
		corev1.LabelOSStable, corev1.LabelArchStable, corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion,
		corev1.LabelInstanceType, "beta.kubernetes.io/os", "beta.kubernetes.io/arch":
		return true
	}
	if within(domain, v1beta1.AKSDomain) {
		return true
	}
	if within(domain, "kubelet.kubernetes.io") || within(domain, "node.kubernetes.io") {
		return false
	}
	return within(domain, "kubernetes.io") || within(domain, "k8s.io")
}

// within reports whether the domain is the other one or below it.
func within(domain, of string) bool { return domain == of || strings.HasSuffix(domain, "."+of) }

func pointers(values map[string]string) map[string]*string {
	out := make(map[string]*string, len(values))
	for key, value := range values {
		out[key] = &value
	}
	return out
}
