// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	"karpenter/kube/convert"
	"karpenter/model"
	"karpenter/scenario"
	"karpenter/world"
)

// TestShapeRoundTrip: a Snapshot that is printed and read again has the same
// pods with the same identities, so it leads to the same plan. The text has no
// keys. The identities are also those of a process that came to know resources
// in another order.
func TestShapeRoundTrip(t *testing.T) {
	datadriven.Walk(t, "testdata/cases", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd != "pod" {
				return d.Expected
			}
			c, other := converter(), converter()
			for _, name := range []string{"nvidia.com/gpu", "example.com/z", "example.com/a"} {
				other.Axis.Index(name)
			}
			s := snapshotOf(c, read(t, d.Input, &corev1.Pod{}))
			var text bytes.Buffer
			if err := scenario.Print(&text, s); err != nil {
				t.Fatal(err)
			}
			again, err := scenario.Parse(bytes.NewReader(text.Bytes()))
			if err != nil {
				t.Fatalf("%s: %v\n%s", d.Pos, err, text.String())
			}
			if diff := cmp.Diff(s.Pending, again.Pending, cmpopts.EquateEmpty()); diff != "" || strings.Contains(text.String(), "key=") {
				t.Errorf("%s: (-before +after) %s\n%s", d.Pos, diff, text.String())
			}
			elsewhere := snapshotOf(other, read(t, d.Input, &corev1.Pod{}))
			if got, want := elsewhere.Pending[0].Shape.Key, s.Pending[0].Shape.Key; got != want {
				t.Errorf("%s: on another axis the key is %q, want %q", d.Pos, got, want)
			}
			return d.Expected
		})
	})
}

// snapshotOf returns what a world makes of the pod while it waits for a node.
func snapshotOf(c convert.Converter, p *corev1.Pod) *model.Snapshot {
	w := world.New(c.Axis, c.WellKnown())
	known := c.Pod(p)
	known.Pending, known.Node, known.Awaits, known.Terminal = true, "", "", false
	w.SetPod(known)
	return w.Snapshot(time.Unix(1e9, 0))
}
