// SPDX-License-Identifier: Apache-2.0

package crds_test

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"

	"karpenter/api/aws/kubelet"
	awsv1 "karpenter/api/aws/v1"
)

// TestKubeletFields: the fields of spec.kubelet that every AMI family takes, which
// no schema names, are in docs/fields and in what kubectl explain says, and no
// others.
func TestKubeletFields(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(reference, "ec2nodeclass.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "## spec.kubelet\n")
	table, _, _ := strings.Cut(rest, "\n| any other")
	documented := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| (`.*?) \\|").FindAllStringSubmatch(table, -1) {
		for name := range strings.SplitSeq(row[1], ", ") {
			documented[strings.Trim(name, "`")] = true
		}
	}
	var explained string
	for _, f := range fields(definitions(t)[awsv1.Kind]) {
		if f.path == "spec.kubelet" {
			explained = f.schema.Description
		}
	}
	config := reflect.TypeFor[kubeletv1beta1.KubeletConfiguration]()
	taken := 0
	for i := range config.NumField() {
		name, _, _ := strings.Cut(config.Field(i).Tag.Get("json"), ",")
		if name == "" {
			continue
		}
		set := awsv1.KubeletConfiguration{name: apiextensionsv1.JSON{Raw: []byte("1")}}
		managed := kubelet.Supported(set, awsv1.AMIFamilyAL2) == nil
		if managed {
			taken++
		}
		if managed != documented[name] || managed != regexp.MustCompile(`\b`+name+`\b`).MatchString(explained) {
			t.Errorf("AL2 takes %s: %t; docs/fields has it: %t; kubectl explain: %q", name, managed, documented[name], explained)
		}
	}
	if taken != len(documented) {
		t.Errorf("families take %d fields, docs/fields has %d", taken, len(documented))
	}
}
