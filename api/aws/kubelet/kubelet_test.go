// SPDX-License-Identifier: Apache-2.0

package kubelet_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"sigs.k8s.io/yaml"

	"karpenter/api/aws/kubelet"
	awsv1 "karpenter/api/aws/v1"
	v1 "karpenter/api/v1"
)

// TestKubelet: each line of a check is a configuration; the output says what is
// wrong with it, or what expressions it has.
func TestKubelet(t *testing.T) {
	datadriven.RunTest(t, "testdata/kubelet", func(t *testing.T, d *datadriven.TestData) string {
		var out strings.Builder
		for line := range strings.Lines(d.Input) {
			line = strings.TrimSpace(line)
			var config awsv1.KubeletConfiguration
			if err := yaml.UnmarshalStrict([]byte(line), &config); err != nil {
				d.Fatalf(t, "%s: %v", line, err)
			}
			fmt.Fprintf(&out, "%s\n", line)
			for _, verdict := range verdicts(t, d, config) {
				fmt.Fprintf(&out, "  %s\n", verdict)
			}
		}
		return out.String()
	})
}

func verdicts(t *testing.T, d *datadriven.TestData, config awsv1.KubeletConfiguration) []string {
	if err := kubelet.Check(config); err != nil {
		var out []string
		for _, fault := range err.(v1.ValidationErrors) {
			out = append(out, "invalid: "+fault.Error())
		}
		return out
	}
	if !d.HasArg("families") {
		out := []string{"ok"}
		for _, e := range kubelet.Expressions(config) {
			out = append(out, fmt.Sprintf("%s: %q", e.Field, e.Text))
		}
		return out
	}
	var out, families []string
	for _, arg := range d.CmdArgs {
		if arg.Key == "families" {
			families = arg.Vals
		}
	}
	if len(families) == 0 {
		d.Fatalf(t, "no families")
	}
	for _, family := range families {
		verdict := "ok"
		if err := kubelet.Supported(config, awsv1.AMIFamily(family)); err != nil {
			verdict = err.Error()
		}
		out = append(out, family+": "+verdict)
	}
	return out
}
