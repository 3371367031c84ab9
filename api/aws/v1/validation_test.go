// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"testing"

	v1 "karpenter/api/aws/v1"
)

// TestValidateTags covers spec 60 §3.7: the check where tags are used.
func TestValidateTags(t *testing.T) {
	for key, ok := range map[string]bool{
		"eks:eks-cluster-name":           false,
		"karpenter.sh/nodepool":          false,
		"karpenter.sh/nodeclaim":         false,
		"karpenter.k8s.aws/ec2nodeclass": false,
		"kubernetes.io/cluster/my-c_1":   false,
		"kubernetes.io/cluster/-c":       true,
		"kubernetes.io/cluster/":         true,
		"kubernetes.io/cluster/a.b":      true,
		"Name":                           true,
		"karpenter.sh/other":             true,
	} {
		if err := v1.ValidateTags(map[string]string{key: "x", "fine": "y"}); (err == nil) != ok {
			t.Errorf("%s: %v", key, err)
		}
	}
	err := v1.ValidateTags(map[string]string{"karpenter.sh/nodepool": "", "eks:eks-cluster-name": ""})
	if err == nil || err.Error() != "spec.tags: Karpenter sets [eks:eks-cluster-name, karpenter.sh/nodepool] itself; remove them" {
		t.Errorf("two at once: %v", err)
	}
}
