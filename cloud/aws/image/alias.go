// SPDX-License-Identifier: Apache-2.0

package image

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	awsv1 "karpenter/api/aws/v1"
)

// Parameter is a parameter of SSM whose value is the ID of an image.
type Parameter struct {
	Name string
	// Mutable parameters follow the releases of the image.
	Mutable bool
	// Uses are what types must have besides the image's architecture, to boot
	// from it: one set for each way to use it.
	Uses [][]corev1.NodeSelectorRequirement
}

// UnsupportedAliasError reports that there are no images of the alias for the
// cluster's version. Retries are useless until one of the two changes.
type UnsupportedAliasError struct {
	Alias      awsv1.Alias
	Kubernetes string // version of the cluster
	Hint       string // what to do
}

func (e *UnsupportedAliasError) Error() string {
	return fmt.Sprintf("alias %s is not supported with Kubernetes %s; %s", Text(e.Alias), e.Kubernetes, e.Hint)
}

// Text returns the alias as users write it.
func Text(a awsv1.Alias) string { return strings.ToLower(string(a.Family)) + "@" + a.Version }

const (
	optimized = "/aws/service/eks/optimized-ami/"
	x86, arm  = "x86_64", "arm64"
)

// Parameters returns where the images of the alias are published for clusters
// of the version, such as "1.33". Some may not exist. The error is an
// UnsupportedAliasError, or the version is none.
func Parameters(alias awsv1.Alias, kubernetes string) ([]Parameter, error) {
	_, text, _ := strings.Cut(kubernetes, ".")
	minor, err := strconv.Atoi(text)
	if err != nil {
		return nil, fmt.Errorf("invalid version of Kubernetes %q: want one such as 1.33", kubernetes)
	}
	switch alias.Family {
	case awsv1.AMIFamilyAL2:
		if minor >= firstWithoutAL2 {
			return nil, &UnsupportedAliasError{alias, kubernetes, "AWS publishes no AL2 images for Kubernetes 1.33 and later: use an al2023 or bottlerocket alias"}
		}
		return al2(alias.Version, kubernetes), nil
	case awsv1.AMIFamilyAL2023:
		return al2023(alias.Version, kubernetes), nil
	case awsv1.AMIFamilyBottlerocket:
		return bottlerocket(alias.Version, kubernetes), nil
	case awsv1.AMIFamilyWindows2025:
		if minor < firstWithWindows2025 {
			return nil, &UnsupportedAliasError{alias, kubernetes, "AWS publishes Windows 2025 images for Kubernetes 1.35 and later: use a windows2022 alias"}
		}
	}
	return windows(alias.Family, kubernetes), nil
}

const (
	firstWithoutAL2      = 33
	firstWithWindows2025 = 35
)

func al2(version, kubernetes string) []Parameter {
	var out []Parameter
	for _, v := range []struct {
		path, node string
		uses       [][]corev1.NodeSelectorRequirement
	}{
		{"amazon-linux-2", "amazon-eks-node", uses(standard())},
		{"amazon-linux-2-arm64", "amazon-eks-arm64-node", uses(standard())},
		{"amazon-linux-2-gpu", "amazon-eks-gpu-node", uses(neuron(), nvidia())},
	} {
		release := "recommended"
		if version != awsv1.AliasVersionLatest {
			release = v.node + "-" + kubernetes + "-" + version
		}
		out = append(out, Parameter{
			Name:    optimized + kubernetes + "/" + v.path + "/" + release + "/image_id",
			Mutable: version == awsv1.AliasVersionLatest, Uses: v.uses,
		})
	}
	return out
}

func al2023(version, kubernetes string) []Parameter {
	var out []Parameter
	for _, v := range []struct {
		arch, variant string
		use           []corev1.NodeSelectorRequirement
	}{
		{x86, "standard", standard()}, {arm, "standard", standard()},
		{x86, "nvidia", nvidia()}, {arm, "nvidia", nvidia()}, {x86, "neuron", neuron()},
	} {
		release := "recommended"
		if version != awsv1.AliasVersionLatest {
			release = strings.Join([]string{"amazon-eks-node-al2023", v.arch, v.variant, kubernetes, version}, "-")
		}
		out = append(out, Parameter{
			Name:    optimized + kubernetes + "/amazon-linux-2023/" + v.arch + "/" + v.variant + "/" + release + "/image_id",
			Mutable: version == awsv1.AliasVersionLatest, Uses: uses(v.use),
		})
	}
	return out
}

func bottlerocket(version, kubernetes string) []Parameter {
	var out []Parameter
	for _, v := range []struct {
		suffix, arch string
		uses         [][]corev1.NodeSelectorRequirement
	}{
		{"", x86, uses(standard(), neuron())}, {"", arm, uses(standard())},
		{"-nvidia", x86, uses(nvidia())}, {"-nvidia", arm, uses(nvidia())},
	} {
		out = append(out, Parameter{
			Name:    "/aws/service/bottlerocket/aws-k8s-" + kubernetes + v.suffix + "/" + v.arch + "/" + strings.TrimPrefix(version, "v") + "/image_id",
			Mutable: version == awsv1.AliasVersionLatest, Uses: v.uses,
		})
	}
	return out
}

func windows(family awsv1.AMIFamily, kubernetes string) []Parameter {
	builds := map[awsv1.AMIFamily]struct{ year, build string }{
		awsv1.AMIFamilyWindows2019: {"2019", "10.0.17763"},
		awsv1.AMIFamilyWindows2022: {"2022", "10.0.20348"},
		awsv1.AMIFamilyWindows2025: {"2025", "10.0.26100"},
	}
	of, ok := builds[family]
	if !ok {
		return nil
	}
	return []Parameter{{
		Name:    "/aws/service/ami-windows-latest/Windows_Server-" + of.year + "-English-Core-EKS_Optimized-" + kubernetes + "/image_id",
		Mutable: true,
		Uses: uses([]corev1.NodeSelectorRequirement{
			in(corev1.LabelOSStable, string(corev1.Windows)), in(corev1.LabelWindowsBuild, of.build),
		}),
	}}
}

func uses(all ...[]corev1.NodeSelectorRequirement) [][]corev1.NodeSelectorRequirement { return all }

// standard images are for types without GPUs and accelerators.
func standard() []corev1.NodeSelectorRequirement {
	return []corev1.NodeSelectorRequirement{
		{Key: awsv1.InstanceAcceleratorCountLabelKey, Operator: corev1.NodeSelectorOpDoesNotExist},
		{Key: awsv1.InstanceGPUCountLabelKey, Operator: corev1.NodeSelectorOpDoesNotExist},
	}
}

func nvidia() []corev1.NodeSelectorRequirement {
	return []corev1.NodeSelectorRequirement{{Key: awsv1.InstanceGPUCountLabelKey, Operator: corev1.NodeSelectorOpExists}}
}

func neuron() []corev1.NodeSelectorRequirement {
	return []corev1.NodeSelectorRequirement{{Key: awsv1.InstanceAcceleratorCountLabelKey, Operator: corev1.NodeSelectorOpExists}}
}

func in(key string, values ...string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
}
