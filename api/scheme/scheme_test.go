// SPDX-License-Identifier: Apache-2.0

package scheme_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"karpenter/api/scheme"
)

func TestAddToScheme(t *testing.T) {
	s := runtime.NewScheme()
	if err := scheme.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	for _, gvk := range []schema.GroupVersionKind{
		{Group: "karpenter.sh", Version: "v1", Kind: "NodePool"},
		{Group: "karpenter.sh", Version: "v1", Kind: "NodePoolList"},
		{Group: "karpenter.sh", Version: "v1", Kind: "NodeClaim"},
		{Group: "karpenter.sh", Version: "v1", Kind: "NodeClaimList"},
		{Group: "karpenter.sh", Version: "v1alpha1", Kind: "NodeOverlay"},
		{Group: "karpenter.sh", Version: "v1alpha1", Kind: "NodeOverlayList"},
		{Group: "autoscaling.x-k8s.io", Version: "v1", Kind: "ProvisioningRequest"},
		{Group: "autoscaling.x-k8s.io", Version: "v1", Kind: "ProvisioningRequestList"},
		{Group: "autoscaling.x-k8s.io", Version: "v1beta1", Kind: "CapacityBuffer"},
		{Group: "autoscaling.x-k8s.io", Version: "v1beta1", Kind: "CapacityBufferList"},
		{Group: "karpenter.kwok.sh", Version: "v1alpha1", Kind: "KWOKNodeClass"},
		{Group: "karpenter.kwok.sh", Version: "v1alpha1", Kind: "KWOKNodeClassList"},
		{Group: "karpenter.k8s.aws", Version: "v1", Kind: "EC2NodeClass"},
		{Group: "karpenter.k8s.aws", Version: "v1", Kind: "EC2NodeClassList"},
		{Group: "karpenter.azure.com", Version: "v1beta1", Kind: "AKSNodeClass"},
		{Group: "karpenter.azure.com", Version: "v1beta1", Kind: "AKSNodeClassList"},
	} {
		if !s.Recognizes(gvk) {
			t.Errorf("%s is not registered", gvk)
		}
	}
}
