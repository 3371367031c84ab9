// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "karpenter/api/v1"
	"karpenter/cloud/nodeprice"
	"karpenter/kube/convert"
	"karpenter/kube/events"
	"karpenter/model"
)

// invalidNodePrice is the reason of the event about an amount of a NodePool that
// cannot be read.
const invalidNodePrice = "InvalidNodePrice"

// invalidAim is the reason of the event about another annotation of a NodePool
// that cannot be read.
const invalidAim = "InvalidAnnotation"

// extras returns what nodes of the NodePool cost besides their instances:
// extras of the provider, and amounts that the user adds.
func (w *wiring) extras(ctx context.Context, pool *v1.NodePool) ([]model.Extra, error) {
	amounts, err := w.amounts().Of(pool)
	w.warn(pool, invalidNodePrice, "Using the setting of the controller instead", err)
	_, err = convert.Aims(pool)
	w.warn(pool, invalidAim, "Ignoring an annotation that cannot be read", err)
	if w.provider.Extras == nil {
		return amounts.Extras(), nil
	}
	out, err := w.provider.Extras(ctx, pool)
	return append(out, amounts.Extras()...), err
}

// warn publishes an event about annotations of the NodePool that cannot be read.
func (w *wiring) warn(pool *v1.NodePool, reason, consequence string, err error) {
	if err == nil {
		return
	}
	w.recorder.Publish(events.Event{
		Object: pool, Type: corev1.EventTypeWarning, Reason: reason, Timeout: 15 * time.Minute,
		Message: fmt.Sprintf("%s: %s", consequence, err),
	})
}

// additional returns what the user adds to the price of nodes of the NodePool of
// the name. If the NodePool does not exist, the amounts of the settings apply.
func (w *wiring) additional(ctx context.Context, name string) ([]model.Extra, error) {
	pool := &v1.NodePool{}
	if err := w.mgr.GetClient().Get(ctx, client.ObjectKey{Name: name}, pool); err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("read node pool %s: %w", name, err)
	}
	amounts, _ := w.amounts().Of(pool) // extras reports what cannot be read
	return amounts.Extras(), nil
}

// amounts are what the settings add to the price of each node.
func (w *wiring) amounts() nodeprice.Amounts {
	return nodeprice.Amounts{Node: w.config.AdditionalNodePrice, VCPU: w.config.AdditionalVCPUPrice}
}
