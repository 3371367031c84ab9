// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/util/sets"

	v1 "karpenter/api/v1"
)

// Labels returns what the provider adds to v1.DefaultLabels.
func Labels() v1.Labels {
	return v1.Labels{
		WellKnown:         sets.New(InstanceSizeLabelKey, InstanceFamilyLabelKey, InstanceMemoryLabelKey, InstanceCPULabelKey),
		RestrictedDomains: sets.New(Group),
	}
}
