// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"maps"

	awsv1 "karpenter/api/aws/v1"
	karpenterv1 "karpenter/api/v1"
)

// Tags returns the tags of all EC2 resources for the claim. They override the
// class's values for the same keys, because the controller's permissions depend
// on them. The caller may modify the map.
func Tags(cluster string, claim *karpenterv1.NodeClaim, class *awsv1.EC2NodeClass) map[string]string {
	out := maps.Clone(class.Spec.Tags)
	if out == nil {
		out = map[string]string{}
	}
	out[awsv1.ClusterTagPrefix+cluster] = "owned"
	out[awsv1.NodePoolTagKey] = claim.Labels[karpenterv1.NodePoolLabelKey]
	out[awsv1.ClusterNameTagKey] = cluster
	out[awsv1.NodeClassTagKey] = class.Name
	return out
}
