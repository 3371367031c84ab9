// SPDX-License-Identifier: Apache-2.0

// Package scheme registers all resources Karpenter defines in a
// runtime.Scheme.
package scheme

import (
	"errors"

	"k8s.io/apimachinery/pkg/runtime"

	autoscalingv1 "karpenter/api/autoscaling/v1"
	autoscalingv1beta1 "karpenter/api/autoscaling/v1beta1"
	awsv1 "karpenter/api/aws/v1"
	azurev1beta1 "karpenter/api/azure/v1beta1"
	coschedulingv1alpha1 "karpenter/api/coscheduling/v1alpha1"
	kwokv1alpha1 "karpenter/api/kwok/v1alpha1"
	v1 "karpenter/api/v1"
	v1alpha1 "karpenter/api/v1alpha1"
)

// AddToScheme registers the resources of every package under api, in the versions
// that the program reads and writes.
func AddToScheme(s *runtime.Scheme) error {
	return errors.Join(
		v1.AddToScheme(s),
		v1alpha1.AddToScheme(s),
		autoscalingv1.AddToScheme(s),
		autoscalingv1beta1.AddToScheme(s),
		coschedulingv1alpha1.AddToScheme(s),
		kwokv1alpha1.AddToScheme(s),
		awsv1.AddToScheme(s),
		azurev1beta1.AddToScheme(s),
	)
}
