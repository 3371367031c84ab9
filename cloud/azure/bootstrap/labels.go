// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"maps"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"karpenter/api/azure/v1beta1"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/azure/image"
	"karpenter/cloud/azure/instancetype"
	"karpenter/cloud/azure/launch"
	"karpenter/model"
)

// KubeletIdentityLabel carries the client ID of the kubelet's managed identity.
const KubeletIdentityLabel = v1beta1.AKSDomain + "/kubelet-identity-client-id"

// Labels returns the labels that the kubelet gives its node: those of AKS, then those
// of the claim and the choice, without what a kubelet may not set.
func (c *Cluster) Labels(claim *v1.NodeClaim, class *v1beta1.AKSNodeClass, choice cloud.Choice, kubernetes, subnet string) map[string]string {
	out := c.base(class, kubernetes, subnet)
	maps.Copy(out, choice.Labels(claim))
	out[v1beta1.SKUUltraSSDLabelKey] = strconv.FormatBool(launch.UltraSSD(claim))
	maps.DeleteFunc(out, func(key, value string) bool { return value == "" || forbidden(key) })
	return out
}

// base are the labels of AKS.
func (c *Cluster) base(class *v1beta1.AKSNodeClass, kubernetes, subnet string) map[string]string {
	const aks = v1beta1.AKSDomain + "/"
	family := ""
	if class.Spec.ImageFamily != nil {
		family = *class.Spec.ImageFamily
	}
	effective := image.Of(class, kubernetes).Family
	if effective == image.Ubuntu2004 {
		effective = "Ubuntu"
	}
	out := map[string]string{
		aks + "role": "agent", v1beta1.AKSClusterLabelKey: instancetype.NameLabel(c.NodeResourceGroup), v1beta1.AKSModeLabelKey: v1beta1.ModeUser,
		KubeletIdentityLabel: c.KubeletIdentity,
		// The kubelet has set all taints, and startup taints may be gone already.
		v1.NodeDoNotSyncTaintsLabelKey:      "true",
		v1beta1.AKSScaleSetPriorityLabelKey: v1beta1.PriorityRegular, v1beta1.AKSPriorityLabelKey: v1beta1.PriorityRegular,
		v1beta1.AKSOSSKULabelKey: v1beta1.OSSKU(family), aks + "os-sku-requested": family, aks + "os-sku-effective": string(effective),
		aks + "localdns-state": "disabled",
	}
	if class.FIPS() {
		out[v1beta1.AKSFIPSEnabledLabelKey] = "true"
	}
	if c.NetworkDataplane == "cilium" {
		out[aks+"ebpf-dataplane"] = "cilium"
	}
	if c.NetworkPlugin == "azure" && c.NetworkPluginMode == "overlay" {
		node := Node{Kubernetes: kubernetes}
		maps.Copy(out, map[string]string{
			aks + "network-subnet": instancetype.NameLabel(subnet[strings.LastIndex(subnet, "/")+1:]), aks + "nodenetwork-vnetguid": c.NetworkGUID,
			aks + "azure-cni-overlay": "true", aks + "podnetwork-type": "overlay", aks + "network-stateless-cni": strconv.FormatBool(node.from("1.34")),
		})
	}
	return out
}

// forbidden reports whether a kubelet may not set the label on its node.
func forbidden(key string) bool {
	switch key {
	case corev1.LabelHostname, corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelInstanceTypeStable, model.LabelOS, model.LabelArch,
		corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion, corev1.LabelInstanceType, "beta.kubernetes.io/os", "beta.kubernetes.io/arch":
		return false
	}
	domain, _, _ := strings.Cut(key, "/")
	within := func(of string) bool { return domain == of || strings.HasSuffix(domain, "."+of) }
	return !within("kubelet.kubernetes.io") && !within("node.kubernetes.io") && (within("kubernetes.io") || within("k8s.io"))
}
