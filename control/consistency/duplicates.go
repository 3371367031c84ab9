// SPDX-License-Identifier: Apache-2.0

package consistency

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1 "karpenter/api/v1"
	"karpenter/kube/events"
)

// reportDuplicates publishes events on the claim and on all Nodes with its
// provider ID that none of them is trusted.
func (r *Reconciler) reportDuplicates(claim *v1.NodeClaim, nodes []corev1.Node) {
	if len(nodes) < 2 {
		return
	}
	var names []string
	for i := range nodes {
		names = append(names, nodes[i].Name)
	}
	slices.Sort(names)
	message := fmt.Sprintf("Nodes %s have the same spec.providerID %s. Karpenter plans no pods on them and does not disrupt them. Delete the Nodes that are not registered by the kubelet of the instance",
		strings.Join(names, " and "), claim.Status.ProviderID)
	r.Recorder.Publish(events.Event{Object: claim, Type: corev1.EventTypeWarning, Reason: "DuplicateProviderID", Message: message})
	for i := range nodes {
		r.Recorder.Publish(events.Event{Object: &nodes[i], Type: corev1.EventTypeWarning, Reason: "DuplicateProviderID", Message: message})
	}
}
