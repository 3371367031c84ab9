// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "karpenter/api/aws/v1"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
)

// Events of the provider.
const (
	unresolvedReason   = "FailedResolvingNodeClass"
	unresolvedMessage  = "Failed resolving NodeClass"
	spotRefusedReason  = "SpotServiceLinkedRoleMissing"
	spotRefusedMessage = `Attempted to launch a spot instance but failed due to "AuthFailure.ServiceLinkedRoleCreationNotPermitted"`
)

func (p *Provider) spotRefused(claim *v1.NodeClaim) {
	p.config.Event(claim, corev1.EventTypeWarning, spotRefusedReason, spotRefusedMessage)
}

func (p *Provider) unresolved(object client.Object) {
	p.config.Event(object, corev1.EventTypeWarning, unresolvedReason, unresolvedMessage)
}

// class returns the class of the name. The error is or wraps errNoClass when
// there is none.
func (p *Provider) class(ctx context.Context, name string) (*awsv1.EC2NodeClass, error) {
	class := &awsv1.EC2NodeClass{}
	err := p.config.Client.Get(ctx, client.ObjectKey{Name: name}, class)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("EC2NodeClass %s: %w", name, errNoClass)
	}
	if err != nil {
		return nil, fmt.Errorf("read EC2NodeClass %s: %w", name, err)
	}
	return class, nil
}

// usableClass returns the class that ref names. The error is or wraps errNoClass
// when there is none, or it is being deleted.
func (p *Provider) usableClass(ctx context.Context, ref *v1.NodeClassReference) (*awsv1.EC2NodeClass, error) {
	if !cloud.Manages(p, ref) {
		return nil, fmt.Errorf("no EC2NodeClass is named: %w", errNoClass)
	}
	class, err := p.class(ctx, ref.Name)
	if err == nil && !class.DeletionTimestamp.IsZero() {
		return nil, fmt.Errorf("EC2NodeClass %s is being deleted: %w", ref.Name, errNoClass)
	}
	return class, err
}

// readyClass returns the class of a claim that is to be launched.
func (p *Provider) readyClass(ctx context.Context, claim *v1.NodeClaim) (*awsv1.EC2NodeClass, error) {
	class, err := p.usableClass(ctx, claim.Spec.NodeClassRef)
	if errors.Is(err, errNoClass) {
		p.unresolved(claim)
		return nil, &cloud.InsufficientCapacityError{Err: err}
	}
	if err != nil {
		return nil, err
	}
	if err := unready(class); err != nil {
		return nil, err
	}
	if err := awsv1.ValidateTags(class.Spec.Tags); err != nil {
		return nil, &cloud.NodeClassNotReadyError{Err: fmt.Errorf("EC2NodeClass %s: %w", class.Name, err)}
	}
	return class, nil
}

// unready returns why nothing can be launched with the class as its conditions
// are, or nil.
func unready(class *awsv1.EC2NodeClass) error {
	ready := meta.FindStatusCondition(class.Status.Conditions, v1.ReadyCondition)
	switch {
	case ready == nil || ready.Status == metav1.ConditionUnknown:
		return &cloud.CreateError{
			Reason: "NodeClassReadinessUnknown", Message: "NodeClass is in Ready=Unknown",
			Err: fmt.Errorf("EC2NodeClass %s is in Ready=Unknown", class.Name),
		}
	case ready.Status == metav1.ConditionFalse:
		return &cloud.NodeClassNotReadyError{Err: fmt.Errorf("EC2NodeClass %s: %s", class.Name, ready.Message)}
	case ready.ObservedGeneration != class.Generation:
		return &cloud.NodeClassNotReadyError{
			Err: fmt.Errorf("EC2NodeClass %s: nodeclass status has not been reconciled against the latest spec", class.Name),
		}
	}
	return nil
}
