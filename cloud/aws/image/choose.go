// SPDX-License-Identifier: Apache-2.0

package image

import (
	awsv1 "karpenter/api/aws/v1"
	"karpenter/cloud"
	"karpenter/model"
)

// Choice says which image types boot from.
type Choice struct {
	images []awsv1.AMI
	demand []model.Requirements // of each image
}

// NewChoice returns the choice among the images of a node class's status. The
// first that suits a type is taken, so the order counts.
func NewChoice(images []awsv1.AMI) *Choice {
	c := &Choice{images: images}
	for i := range images {
		var all []model.Requirement
		for _, r := range images[i].Requirements {
			all = append(all, model.NewRequirement(r.Key, model.Operator(r.Operator), r.Values...))
		}
		c.demand = append(c.demand, model.NewRequirements(all...))
	}
	return c
}

// For returns the image that the type boots from; ok is false when none suits.
func (c *Choice) For(t *cloud.InstanceType) (image awsv1.AMI, ok bool) {
	for i := range c.images {
		if _, suits := t.Requirements.Compatible(c.demand[i], nil); suits {
			return c.images[i], true
		}
	}
	return awsv1.AMI{}, false
}

// For returns the image of the class that the type boots from; ok is false when
// none suits. For many types, use a Choice.
func For(class *awsv1.EC2NodeClass, t *cloud.InstanceType) (image awsv1.AMI, ok bool) {
	return NewChoice(class.Status.AMIs).For(t)
}
