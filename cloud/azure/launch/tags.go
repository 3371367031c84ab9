// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"karpenter/api/azure/v1beta1"
	v1 "karpenter/api/v1"
)

// mostTags is how many tags Azure allows on a resource.
const mostTags = 50

// Tags returns the tags of the Azure resources of a claim: those of the settings,
// those of the class, which win, and those of Karpenter, which win over both. A
// slash in a key becomes an underscore. It is an error if Azure would not accept
// them: two keys differ only in the case of letters, or there are too many. Extra
// is how many more tags the resource gets.
func Tags(settings map[string]string, class *v1beta1.AKSNodeClass, claim *v1.NodeClaim, cluster string, extra int) (map[string]string, error) {
	out := map[string]string{}
	own := map[string]string{
		v1beta1.ClusterTagKey: cluster,
		v1beta1.BillingTagKey: "linux",
	}
	if pool := claim.Labels[v1.NodePoolLabelKey]; pool != "" {
		own[v1beta1.NodePoolTagKey] = pool
	}
	for _, tags := range []map[string]string{settings, class.Spec.Tags, own} {
		for _, key := range slices.Sorted(maps.Keys(tags)) {
			out[strings.ReplaceAll(key, "/", "_")] = tags[key]
		}
	}
	seen := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(out)) {
		lower := strings.ToLower(key)
		if other, ok := seen[lower]; ok {
			return nil, fmt.Errorf("tags %q and %q differ only in case, which Azure does not distinguish; remove one of them", other, key)
		}
		seen[lower] = key
	}
	if len(out)+extra > mostTags {
		return nil, fmt.Errorf("%d tags with those of Karpenter; Azure allows %d on a resource", len(out)+extra, mostTags)
	}
	return out, nil
}

// Merge returns the tags that an instance is to have: the wanted ones, and what it has,
// but not the dropped ones. Azure does not distinguish the case of keys.
func Merge(has, wanted map[string]string, dropped []string) map[string]string {
	out := maps.Clone(wanted)
	replaced := map[string]bool{}
	for _, key := range append(slices.Collect(maps.Keys(wanted)), dropped...) {
		replaced[strings.ToLower(key)] = true
	}
	for key, value := range has {
		if !replaced[strings.ToLower(key)] {
			out[key] = value
		}
	}
	return out
}
