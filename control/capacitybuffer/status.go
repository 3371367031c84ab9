// SPDX-License-Identifier: Apache-2.0

package capacitybuffer

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/api/autoscaling/v1beta1"
)

// longest is the maximum length of a condition's message.
const longest = 4096

// describe writes what was found into the status of the buffer.
func (r *Reconciler) describe(b *v1beta1.CapacityBuffer, found *resolution) {
	b.Status.ProvisioningStrategy = b.Spec.ProvisioningStrategy
	b.Status.PodTemplateRef, b.Status.PodTemplateGeneration, b.Status.Replicas = found.template, found.generation, nil
	if found.ready() {
		n := int32(len(found.pods))
		b.Status.Replicas = &n
	}
	r.set(b, v1beta1.ReadyForProvisioningCondition, found.ready(), found.reason, found.message)
	if found.limited == "" {
		meta.RemoveStatusCondition(&b.Status.Conditions, v1beta1.LimitedByQuotasCondition)
	} else {
		r.set(b, v1beta1.LimitedByQuotasCondition, true, v1beta1.NamespaceLimitReason, found.limited)
	}

	key := client.ObjectKeyFromObject(b).String()
	o, planned := r.outcome(key)
	behind := r.behind(key)
	switch {
	case !found.ready():
		r.set(b, v1beta1.ProvisioningCondition, false, v1beta1.NotReadyForProvisioningReason, "the buffer is not ready: "+found.message)
	case len(found.pods) == 0 && found.limited != "":
		r.set(b, v1beta1.ProvisioningCondition, false, v1beta1.BufferEmptyReason, found.limited)
	case len(found.pods) == 0:
		r.set(b, v1beta1.ProvisioningCondition, false, v1beta1.BufferEmptyReason, "the buffer asks for no pods")
	case !planned || o.total() != len(found.pods): // the condition stays until a pass has planned these pods
	case o.fits() && len(behind) > 0:
		r.set(b, v1beta1.ProvisioningCondition, false, v1beta1.RequiresNewCapacityReason, "waiting for capacity of other buffers of the Workload: "+strings.Join(behind, ", "))
	case o.fits():
		r.set(b, v1beta1.ProvisioningCondition, true, v1beta1.FitsExistingCapacityReason, o.String())
	default:
		r.set(b, v1beta1.ProvisioningCondition, false, v1beta1.RequiresNewCapacityReason, o.String())
	}
}

func (r *Reconciler) set(b *v1beta1.CapacityBuffer, condition string, holds bool, reason, message string) {
	status := metav1.ConditionFalse
	if holds {
		status = metav1.ConditionTrue
	}
	if len(message) > longest {
		message = strings.ToValidUTF8(message[:longest], "")
	}
	meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{
		Type: condition, Status: status, Reason: reason, Message: message,
		ObservedGeneration: b.Generation, LastTransitionTime: metav1.NewTime(r.Clock.Now()),
	})
}
