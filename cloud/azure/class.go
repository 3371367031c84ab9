// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/api/azure/v1beta1"
	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
)

// The event about a class that is not there.
const (
	noClassReason  = "NodeClassResolutionError"
	noClassMessage = "Failed resolving NodeClass"
)

// errNoClass says that there is no class to go by.
var errNoClass = errors.New("node class not found")

// class returns the class of the name. The error is or wraps errNoClass when
// there is none.
func (p *Provider) class(ctx context.Context, name string) (*v1beta1.AKSNodeClass, error) {
	class := &v1beta1.AKSNodeClass{}
	err := p.config.Client.Get(ctx, client.ObjectKey{Name: name}, class)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("AKSNodeClass %s: %w", name, errNoClass)
	}
	if err != nil {
		return nil, fmt.Errorf("read AKSNodeClass %s: %w", name, err)
	}
	return class, nil
}

// usableClass returns the class that ref names. The error is or wraps errNoClass
// when there is none, or it is being deleted.
func (p *Provider) usableClass(ctx context.Context, ref *v1.NodeClassReference) (*v1beta1.AKSNodeClass, error) {
	if !cloud.Manages(p, ref) {
		return nil, fmt.Errorf("no AKSNodeClass is named: %w", errNoClass)
	}
	class, err := p.class(ctx, ref.Name)
	if err == nil && !class.DeletionTimestamp.IsZero() {
		return nil, fmt.Errorf("AKSNodeClass %s is being deleted: %w", ref.Name, errNoClass)
	}
	return class, err
}

// readyClass returns the class of a claim that is to be launched.
func (p *Provider) readyClass(ctx context.Context, claim *v1.NodeClaim) (*v1beta1.AKSNodeClass, error) {
	class, err := p.usableClass(ctx, claim.Spec.NodeClassRef)
	if errors.Is(err, errNoClass) {
		p.config.Event(claim, corev1.EventTypeWarning, noClassReason, noClassMessage)
		return nil, &cloud.InsufficientCapacityError{Err: err}
	}
	if err != nil {
		return nil, err
	}
	return class, unready(class)
}

// unready returns why nothing can be launched with the class as its conditions
// are, or nil.
func unready(class *v1beta1.AKSNodeClass) error {
	ready := conditions.Get(class, conditions.Ready)
	switch {
	case ready == nil || ready.Status == metav1.ConditionUnknown:
		return &cloud.CreateError{
			Reason: "NodeClassReadinessUnknown", Message: "NodeClass is in Ready=Unknown",
			Err: fmt.Errorf("AKSNodeClass %s is in Ready=Unknown", class.Name),
		}
	case ready.Status == metav1.ConditionFalse:
		return &cloud.NodeClassNotReadyError{Err: fmt.Errorf("AKSNodeClass %s: %s", class.Name, ready.Message)}
	}
	if _, err := class.KubernetesVersion(); err != nil {
		return err
	}
	_, err := class.Images()
	return err
}

// typesFor returns the instance types as the claim's pool sees them.
func (p *Provider) typesFor(ctx context.Context, claim *v1.NodeClaim, class *v1beta1.AKSNodeClass) ([]*cloud.InstanceType, error) {
	types, err := p.config.Types(ctx, class)
	if pool := claim.Labels[v1.NodePoolLabelKey]; err == nil && p.config.Overlay != nil && pool != "" {
		return p.config.Overlay(pool, types)
	}
	return types, err
}
