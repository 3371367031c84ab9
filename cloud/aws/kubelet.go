// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"context"
	"fmt"
	"regexp"

	v1 "karpenter/api/v1"
	"karpenter/cloud"
)

// kubernetes finds the version of Kubernetes in the name of an image that AWS
// publishes for EKS, such as amazon-eks-node-al2023-x86_64-standard-1.36-v20260801,
// bottlerocket-aws-k8s-1.36-x86_64-v1.60.0-0123abcd or
// Windows_Server-2022-English-Core-EKS_Optimized-1.36-2026.08.01. Images that are
// built with the recipes of AWS have such names, too.
var kubernetes = regexp.MustCompile(`^(?:amazon-eks-|bottlerocket-aws-k8s-|Windows_Server-.*-EKS_Optimized-)(?:.*-)?(1\.\d+)-`)

// Kubelet returns what is known about the kubelets of the pool's nodes.
func (p *Provider) Kubelet(ctx context.Context, pool *v1.NodePool) (cloud.Kubelet, error) {
	class, err := p.class(ctx, pool.Spec.Template.Spec.NodeClassRef.Name)
	if err != nil {
		return cloud.Kubelet{}, fmt.Errorf("node pool %s: %w", pool.Name, err)
	}
	out := cloud.Kubelet{Gates: class.Annotations[v1.KubeletFeatureGatesAnnotationKey]}
	for _, ami := range class.Status.AMIs {
		out.Versions = append(out.Versions, kubernetesOf(ami.Name))
	}
	return out, nil
}

// kubernetesOf returns the version of Kubernetes in an image of the name, or "".
func kubernetesOf(image string) string {
	if found := kubernetes.FindStringSubmatch(image); found != nil {
		return found[1]
	}
	return ""
}
