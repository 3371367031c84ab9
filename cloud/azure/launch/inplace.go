// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strconv"
)

// InPlaceHash returns the hash of what is updated without replacing a node: the
// tags of an instance, and the IDs of its managed identities. The hash is
// byte-equal to upstream's.
func InPlaceHash(tags map[string]string, identities ...string) string {
	settings := struct {
		Identities map[string]struct{} `json:"identities,omitempty"`
		Tags       map[string]string   `json:"tags"`
	}{Tags: tags}
	for _, id := range identities {
		if settings.Identities == nil {
			settings.Identities = map[string]struct{}{}
		}
		settings.Identities[id] = struct{}{}
	}
	text, err := json.Marshal(settings)
	if err != nil {
		// Text and maps of it always have a form in JSON.
		panic(fmt.Sprintf("encode tags: %v", err))
	}
	h := fnv.New32a()
	_, _ = h.Write(text) // never fails
	return strconv.FormatUint(uint64(h.Sum32()), 10)
}
