// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/mitchellh/hashstructure/v2"
)

// HashVersion names the rules by which EC2NodeClass.Hash is computed. Hashes of
// different versions must not be compared.
const HashVersion = "v6"

// Hash returns the drift hash of the node class in decimal: a NodeClaim whose
// recorded hash differs was launched otherwise than it would be now. The CA
// bundle is what nodes get to trust the API server with, "" for none.
//
// The order of disks, network interfaces and tags does not change it, nor do
// fields that are ignored: the selectors and the AMI family, as far as another
// family does not follow from it. It is byte-equal to upstream's hash of the
// same version, so that taking over a cluster drifts no node. It depends on the
// order in which EC2NodeClassSpec and its parts declare their fields.
//
// The kubelet's configuration must be valid JSON, as anything decoded is.
func (c *EC2NodeClass) Hash(caBundle string) string {
	hash, err := hashstructure.Hash([]any{c.Spec, string(c.AMIFamily()), caBundle, c.Spec.Kubelet.canonical()},
		hashstructure.FormatV2, &hashstructure.HashOptions{
			SlicesAsSets:    true,
			IgnoreZeroValue: true,
			ZeroNil:         true,
		})
	if err != nil {
		// Only unsupported types fail, and the types are fixed.
		panic(fmt.Sprintf("hash node class %s: %v", c.Name, err))
	}
	return strconv.FormatUint(hash, 10)
}

// canonical returns the configuration as JSON without spaces, keys sorted, and
// "null" for an empty one.
func (k KubeletConfiguration) canonical() string {
	if len(k) == 0 {
		return "null"
	}
	text, err := json.Marshal(k)
	if err != nil {
		panic(fmt.Sprintf("kubelet configuration is not JSON: %v", err))
	}
	// Once more, as keys are sorted only at the top. Numbers keep their form.
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value map[string]any
	if err := decoder.Decode(&value); err != nil {
		panic(fmt.Sprintf("kubelet configuration is not JSON: %v", err))
	}
	if text, err = json.Marshal(value); err != nil {
		panic(fmt.Sprintf("kubelet configuration is not JSON: %v", err))
	}
	return string(text)
}

// Drifted reports whether claim and node class, by their annotations, carry
// hashes that can be compared and are not equal.
func (c *EC2NodeClass) Drifted(claim map[string]string) bool {
	for _, key := range []string{HashAnnotationKey, HashVersionAnnotationKey} {
		if claim[key] == "" || c.Annotations[key] == "" {
			return false
		}
	}
	return claim[HashVersionAnnotationKey] == c.Annotations[HashVersionAnnotationKey] &&
		claim[HashAnnotationKey] != c.Annotations[HashAnnotationKey]
}
