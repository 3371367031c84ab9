// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"testing"

	"github.com/cockroachdb/datadriven"
	"sigs.k8s.io/yaml"

	v1 "karpenter/api/aws/v1"
)

// TestHash compares the drift hash with upstream's, for fields and changes that
// the golden table leaves out.
func TestHash(t *testing.T) {
	seen := map[string]string{}
	datadriven.RunTest(t, "testdata/hash", func(t *testing.T, d *datadriven.TestData) string {
		var class v1.EC2NodeClass
		if err := yaml.UnmarshalStrict([]byte(d.Input), &class.Spec); err != nil {
			d.Fatalf(t, "spec: %v", err)
		}
		bundle := caBundle
		if d.HasArg("no-ca-bundle") {
			bundle = ""
		}
		hash := class.Hash(bundle)
		var name, same string
		d.ScanArgs(t, "name", &name)
		seen[name] = hash
		if d.HasArg("same-as") {
			d.ScanArgs(t, "same-as", &same)
			if seen[same] != hash {
				d.Fatalf(t, "hash %s differs from %s of case %s", hash, seen[same], same)
			}
		}
		return hash + "\n"
	})
}
