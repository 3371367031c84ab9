// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"bytes"

	corev1 "k8s.io/api/core/v1"
)

// NominationManager is the field manager that writes the node we have planned
// into status.nominatedNodeName. The API server takes the field from it when
// anyone else writes another value.
const NominationManager = "karpenter-plan"

// Nominated returns the node the pod's status names on our behalf, and "" when
// it names none or the scheduler has chosen it.
func Nominated(p *corev1.Pod) string {
	if p.Status.NominatedNodeName == "" {
		return ""
	}
	for _, m := range p.ManagedFields {
		if m.Manager == NominationManager && m.FieldsV1 != nil &&
			bytes.Contains(m.FieldsV1.Raw, []byte(`"f:nominatedNodeName"`)) {
			return p.Status.NominatedNodeName
		}
	}
	return ""
}
