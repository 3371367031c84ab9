// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karpenter/api/conditions"
)

// Condition types of an AKSNodeClass. The root, Ready, depends on all of them.
const (
	KubernetesVersionReadyCondition = "KubernetesVersionReady"
	ImagesReadyCondition            = "ImagesReady"
	SubnetsReadyCondition           = "SubnetsReady"
	ValidationSucceededCondition    = "ValidationSucceeded"
	LocalDNSReadyCondition          = "LocalDNSReady"
)

// Reasons of the conditions.
const (
	KubernetesUpgradeReason                 = "KubernetesUpgrade"
	ImagesNotFoundReason                    = "ImagesNotFound"
	SIGRequiredForFIPSReason                = "SIGRequiredForFIPS"
	SubnetNotFoundReason                    = "SubnetNotFound"
	SubnetIDInvalidReason                   = "SubnetIDInvalid"
	SubnetUnknownErrorReason                = "SubnetUnknownError"
	DiskEncryptionSetRBACMissingReason      = "DiskEncryptionSetRBACMissing"
	CheckingClusterRequirementsFailedReason = "CheckingClusterRequirementsFailed"
	NotSupportedByProvisionModeReason       = "NotSupportedByProvisionMode"
	UnreadableFieldsReason                  = "UnreadableFields"
)

// Reasons a NodeClaim has drifted from its AKSNodeClass.
const (
	NodeClassDriftReason       = "NodeClassDrift"
	K8sVersionDriftReason      = "K8sVersionDrift"
	KubeletIdentityDriftReason = "KubeletIdentityDrift"
	ImageDriftReason           = "ImageDrift"
	ClusterConfigDriftReason   = "ClusterConfigDrift"
)

// StatusConditions opens the node class's conditions; see conditions.For.
func (c *AKSNodeClass) StatusConditions(now time.Time) *conditions.Set {
	return conditions.For(c, conditions.Kind{Dependents: []string{
		KubernetesVersionReadyCondition, ImagesReadyCondition, SubnetsReadyCondition,
		ValidationSucceededCondition, LocalDNSReadyCondition,
	}}, now)
}

// GetConditions returns the stored conditions.
func (c *AKSNodeClass) GetConditions() []metav1.Condition { return c.Status.Conditions }

// SetConditions replaces the stored conditions.
func (c *AKSNodeClass) SetConditions(cs []metav1.Condition) { c.Status.Conditions = cs }

// KubernetesVersion returns the version of Kubernetes of new nodes. It is an
// error if the status does not hold it for the current generation.
func (c *AKSNodeClass) KubernetesVersion() (string, error) {
	if err := c.current(KubernetesVersionReadyCondition); err != nil {
		return "", err
	}
	if c.Status.KubernetesVersion == nil || *c.Status.KubernetesVersion == "" {
		return "", fmt.Errorf("AKSNodeClass %s has no Kubernetes version in its status", c.Name)
	}
	return *c.Status.KubernetesVersion, nil
}

// Images returns the images of new nodes. It is an error if the status does not
// hold them for the current generation.
func (c *AKSNodeClass) Images() ([]NodeImage, error) {
	if err := c.current(ImagesReadyCondition); err != nil {
		return nil, err
	}
	return c.Status.Images, nil
}

// current returns an error unless the condition is True at the generation of
// the object.
func (c *AKSNodeClass) current(conditionType string) error {
	condition := conditions.Get(c, conditionType)
	switch {
	case condition == nil:
		return fmt.Errorf("AKSNodeClass %s has no condition %s", c.Name, conditionType)
	case condition.Status != metav1.ConditionTrue:
		return fmt.Errorf("AKSNodeClass %s: condition %s is %s, %s", c.Name, conditionType, condition.Status, condition.Message)
	case condition.ObservedGeneration != c.Generation:
		return fmt.Errorf("AKSNodeClass %s: condition %s is of generation %d, not %d", c.Name, conditionType, condition.ObservedGeneration, c.Generation)
	}
	return nil
}
