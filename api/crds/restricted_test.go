// SPDX-License-Identifier: Apache-2.0

package crds_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"sigs.k8s.io/yaml"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/api/crds"
)

// TestRestrictedAWSLabels holds the rules about the label domain
// karpenter.k8s.aws to the labels that the AWS provider sets: the API server must
// accept each of them, and no other.
func TestRestrictedAWSLabels(t *testing.T) {
	var known []string
	for _, key := range slices.Sorted(maps.Keys(awsv1.Labels().WellKnown)) {
		if strings.HasPrefix(key, awsv1.Group+"/") {
			known = append(known, "'"+key+"'")
		}
	}
	list := "in [" + strings.Join(known, ", ") + "] ||"
	files, err := crds.Manifests()
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]int{"karpenter.sh_nodepools.yaml": 2, "karpenter.sh_nodeclaims.yaml": 1} {
		text := strings.Join(strings.Fields(string(files[file])), " ")
		for what, part := range map[string]string{"rules": "message: label domain karpenter.k8s.aws is restricted rule:", "lists of known labels": list} {
			if got := strings.Count(text, part); got != want {
				t.Errorf("%s has %d %s, want %d: %s", file, got, what, want, fmt.Sprintf("%.80s", part))
			}
		}
	}
}

// TestRestrictedAWSKeys evaluates the CEL rules of the NodePool as the API server
// does (spec 48/3).
func TestRestrictedAWSKeys(t *testing.T) {
	files, err := crds.Manifests()
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(files["karpenter.sh_nodepools.yaml"], &crd); err != nil {
		t.Fatal(err)
	}
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, &internal, nil); err != nil {
		t.Fatal(err)
	}
	structural, err := schema.NewStructural(&internal)
	if err != nil {
		t.Fatal(err)
	}
	rules := cel.NewValidator(structural, true, 10_000_000)
	for key, accepted := range map[string]bool{
		awsv1.InstanceCPULabelKey: true, awsv1.NodeClassLabelKey: true, awsv1.ZoneIDLabelKey: true, "example.com/karpenter.k8s.aws": true, "plain": true,
		"karpenter.k8s.aws/instance-cpus": false, "karpenter.k8s.aws/": false, "sub.karpenter.k8s.aws/instance-cpu": false, "my-karpenter.k8s.aws/x": false,
		"karpenter.k8s.aws/nitro-sandbox": false,
	} {
		for where, template := range map[string]map[string]any{
			"requirement": {"spec": map[string]any{"requirements": []any{map[string]any{"key": key, "operator": "Exists"}}}},
			"label":       {"metadata": map[string]any{"labels": map[string]any{key: "a"}}},
		} {
			pool := map[string]any{"spec": map[string]any{"template": template}}
			problems, _ := rules.Validate(t.Context(), nil, structural, pool, nil, 10_000_000)
			if (len(problems) == 0) != accepted || !accepted && !strings.Contains(problems.ToAggregate().Error(), "label domain karpenter.k8s.aws is restricted") {
				t.Errorf("%s %s: %v", where, key, problems)
			}
		}
	}
}
