// SPDX-License-Identifier: Apache-2.0

package kwok

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "karpenter/api/v1"
)

// scheme starts the provider IDs of this provider.
const scheme = "kwok://"

// maxName is the longest name a Node may have to be a label value too.
const maxName = 63

// Words that make names easy to tell apart and to say aloud. There are 32 of
// each, none longer than six letters.
const (
	adjectives = "amber bold brave brief brisk calm clear crisp early eager fair fleet fond gentle glad grand " +
		"happy keen kind lively lucid merry mild noble proud quick quiet ready sunny swift vivid warm"
	nouns = "acorn alder aspen badger beech birch brook cedar cliff cloud coral crane delta ember falcon fern " +
		"finch glade grove harbor hazel heron island larch maple meadow otter pebble river tulip walnut willow"
)

// nodeName returns the name of the claim's machine and Node, which the claim's
// name and UID determine: kwok-<claim>-<word>-<word>-<number>, with the claim's
// part cut where the whole would be longer than a label value may be.
func nodeName(claim *v1.NodeClaim) string {
	sum := sha256.Sum256([]byte(string(claim.UID) + "/" + claim.Name))
	first, second := strings.Fields(adjectives), strings.Fields(nouns)
	suffix := fmt.Sprintf("-%s-%s-%d",
		first[int(sum[0])%len(first)], second[int(sum[1])%len(second)],
		binary.BigEndian.Uint32(sum[2:])%1_000_000_000)
	name := "kwok-" + claim.Name
	if room := maxName - len(suffix); len(name) > room {
		name = name[:room]
	}
	return strings.TrimRight(name, "-.") + suffix
}

func nodeOf(providerID string) (string, bool) { return strings.CutPrefix(providerID, scheme) }

// owner returns the claim a Node was booted for.
func owner(node *corev1.Node) (metav1.OwnerReference, bool) {
	for _, ref := range node.OwnerReferences {
		if ref.Kind == "NodeClaim" && strings.HasPrefix(ref.APIVersion, v1.Group+"/") {
			return ref, true
		}
	}
	return metav1.OwnerReference{}, false
}
