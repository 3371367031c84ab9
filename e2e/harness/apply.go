// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"errors"
	"io"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Apply creates the objects of a manifest.
func (c *Cluster) Apply(t testing.TB, manifest string) {
	t.Helper()
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifest), 4096)
	for {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return
		}
		if err == nil && len(o.Object) > 0 {
			err = c.Client.Create(t.Context(), o)
		}
		if err != nil {
			t.Fatalf("%v in manifest:\n%s", err, manifest)
		}
	}
}
