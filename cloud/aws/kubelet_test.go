// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"fmt"
	"testing"

	awsv1 "karpenter/api/aws/v1"
	v1 "karpenter/api/v1"
)

// TestKubernetesVersionsOfImages: images of EKS name the version of their kubelet. spec 46/130.
func TestKubernetesVersionsOfImages(t *testing.T) {
	for name, want := range map[string]string{
		"amazon-eks-node-1.33-v20250819":                                 "1.33",
		"amazon-eks-gpu-node-1.32-v20250819":                             "1.32",
		"amazon-eks-arm64-node-1.33-v20250819":                           "1.33",
		"amazon-eks-node-al2023-x86_64-standard-1.36-v20260801":          "1.36",
		"amazon-eks-node-al2023-x86_64-nvidia-560-1.36-v20260801":        "1.36",
		"bottlerocket-aws-k8s-1.33-x86_64-v1.46.0-431fe75a":              "1.33",
		"bottlerocket-aws-k8s-1.33-nvidia-aarch64-v1.46.0-431fe75a":      "1.33",
		"Windows_Server-2022-English-Core-EKS_Optimized-1.33-2025.08.14": "1.33",
		"my-image-1.33-v1":                 "",
		"al2023-ami-2023.8-kernel-6.1":     "",
		"bottlerocket-aws-ecs-2-v1.46.0-4": "",
		"":                                 "",
	} {
		if got := kubernetesOf(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestKubelet: the images of the class say which kubelets nodes have. spec 46/130.
func TestKubelet(t *testing.T) {
	r := newRegion(t, nil)
	r.class(func(class *awsv1.EC2NodeClass) {
		class.Annotations = map[string]string{v1.KubeletFeatureGatesAnnotationKey: "A=true"}
	})
	got, err := r.Kubelet(t.Context(), r.pool)
	must(t, err)
	var want []string
	for _, ami := range r.getClass().Status.AMIs {
		want = append(want, kubernetesOf(ami.Name))
	}
	if len(want) == 0 || fmt.Sprint(got.Versions) != fmt.Sprint(want) || got.Gates != "A=true" {
		t.Errorf("%+v, want versions %q", got, want)
	}
}
