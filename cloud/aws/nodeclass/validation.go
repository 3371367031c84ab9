// SPDX-License-Identifier: Apache-2.0

package nodeclass

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karpenter/api/aws/kubelet"
	awsv1 "karpenter/api/aws/v1"
	"karpenter/cloud/aws/client"
	"karpenter/cloud/aws/instancetype"
)

// checked is when a class is validated again.
const checked = 10 * time.Minute

// verdict is what a check has found: nothing (the zero value), or what is wrong.
type verdict struct{ reason, message string }

// validate sets ValidationSucceeded.
func (p *pass) validate(ctx context.Context) (time.Duration, error) {
	if again, err := p.serviceAddresses(ctx); again > 0 || err != nil {
		return again, err
	}
	formulas, fault := p.configuration()
	if fault != (verdict{}) {
		return p.invalid(fault)
	}
	if fault := p.sharing(); fault != (verdict{}) {
		return p.invalid(fault)
	}
	if status := p.dependencies(); status != metav1.ConditionTrue {
		p.set.Set(metav1.Condition{
			Type: awsv1.ValidationSucceededCondition, Status: status, Reason: awsv1.DependenciesNotReadyReason,
			Message: "Awaiting AMI, Instance Profile, Security Group, and Subnet resolution",
		})
		return checked, nil
	}
	facts := p.AWS.Facts()
	if formulas != nil && len(facts) == 0 {
		return soon, nil
	}
	if err := evaluate(formulas, facts, p.class, &p.Cluster); err != nil {
		return p.invalid(verdict{awsv1.KubeletExpressionEvaluationFailedReason, "spec.kubelet: " + err.Error()})
	}
	if err := awsv1.ValidateTags(p.class.Spec.Tags); err != nil {
		return p.invalid(verdict{awsv1.TagValidationFailedReason, err.Error()})
	}
	if p.NoRehearsal {
		p.set.SetTrue(awsv1.ValidationSucceededCondition)
		return checked, nil
	}
	return p.rehearsed(ctx, facts)
}

// invalid reports a problem that only the user can fix.
func (p *pass) invalid(v verdict) (time.Duration, error) {
	p.set.SetFalse(awsv1.ValidationSucceededCondition, v.reason, v.message)
	return checked, nil
}

// serviceAddresses checks that the service addresses of the cluster, which
// nodes of AL2023 need, are known.
func (p *pass) serviceAddresses(ctx context.Context) (time.Duration, error) {
	if p.class.AMIFamily() != awsv1.AMIFamilyAL2023 {
		return 0, nil
	}
	_, err := p.AWS.CIDR(ctx)
	switch {
	case err == nil:
		return 0, nil
	case client.ServerFault(err):
		return soon, nil
	}
	p.set.SetFalse(awsv1.ValidationSucceededCondition, awsv1.ClusterCIDRResolutionFailedReason, "Failed to detect the cluster CIDR")
	return 0, fmt.Errorf("detect the cluster CIDR: %w", err)
}

// configuration checks the kubelet's configuration and compiles what of it
// depends on the instance type; nil when nothing does.
func (p *pass) configuration() (*instancetype.Formulas, verdict) {
	config := p.class.Spec.Kubelet
	if err := kubelet.Check(config); err != nil {
		return nil, verdict{awsv1.InvalidKubeletConfigurationReason, err.Error()}
	}
	var formulas *instancetype.Formulas
	if expressions := kubelet.Expressions(config); len(expressions) > 0 {
		if p.Language == nil {
			return nil, verdict{awsv1.KubeletExpressionsDisabledReason, fmt.Sprintf(
				"spec.kubelet.%s: %q is an expression, which the feature gate NodeClassCEL allows; open it, or use a number", expressions[0].Field, expressions[0].Text)}
		}
		var err error
		if formulas, err = instancetype.NewFormulas(p.Language, config); err != nil {
			return nil, verdict{awsv1.KubeletExpressionInvalidReason, "spec.kubelet: " + err.Error()}
		}
	}
	if err := kubelet.Supported(config, p.class.AMIFamily()); err != nil {
		return nil, verdict{awsv1.UnsupportedKubeletConfigurationReason, err.Error()}
	}
	return formulas, verdict{}
}

// sharing checks how claims share GPUs.
func (p *pass) sharing() verdict {
	of, err := instancetype.ParseSharing(p.class.Annotations[awsv1.ConsumableCapacityAnnotationKey])
	switch {
	case err != nil:
		return verdict{awsv1.ConsumableCapacityInvalidReason, fmt.Sprintf("annotation %s: %v", awsv1.ConsumableCapacityAnnotationKey, err)}
	case of.Shared && !p.Cluster.GPUDevices:
		return verdict{awsv1.DRADisabledReason, fmt.Sprintf(
			"annotation %s: GPUs are shared only by dynamic resource allocation, which is off, or off for them by the feature gate DRANVIDIAGPU", awsv1.ConsumableCapacityAnnotationKey)}
	}
	return verdict{}
}

// dependencies returns the status of what validation needs: False when
// something is, or else Unknown when something is not True at this generation.
func (p *pass) dependencies() metav1.ConditionStatus {
	status := metav1.ConditionTrue
	for _, t := range []string{
		awsv1.AMIsReadyCondition, awsv1.InstanceProfileReadyCondition, awsv1.SecurityGroupsReadyCondition, awsv1.SubnetsReadyCondition,
	} {
		switch c := p.set.Get(t); {
		case c.Status == metav1.ConditionFalse:
			return metav1.ConditionFalse
		case c.Status != metav1.ConditionTrue || c.ObservedGeneration != p.class.Generation:
			status = metav1.ConditionUnknown
		}
	}
	return status
}

// evaluate evaluates the formulas for all instance types. It returns the error
// of the first type without a usable result.
func evaluate(formulas *instancetype.Formulas, facts []*instancetype.Facts, class *awsv1.EC2NodeClass, cluster *instancetype.Cluster) error {
	if formulas == nil {
		return nil
	}
	of := instancetype.NewClass(class, nil)
	for _, f := range facts {
		_, dropped, err := formulas.Apply(of, f, cluster)
		if err != nil {
			return err
		}
		if dropped != nil {
			return dropped
		}
	}
	return nil
}
