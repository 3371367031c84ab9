// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	nodes "go.yaml.in/yaml/v3"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"karpenter/api/crds"
)

// schemas judge objects of v1 as the API server does, by kind.
type schemas map[string]schema

type schema struct {
	structural *structural.Structural
	openAPI    validation.SchemaValidator
	rules      *cel.Validator
}

func readSchemas(t *testing.T) schemas {
	t.Helper()
	files, err := crds.Manifests()
	if err != nil {
		t.Fatal(err)
	}
	all := schemas{}
	for name, content := range files {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(content, &crd); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var internal apiextensions.CustomResourceDefinition
		if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&crd, &internal, nil); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		props := internal.Spec.Validation
		if props == nil {
			props = internal.Spec.Versions[0].Schema
		}
		s, err := structural.NewStructural(props.OpenAPIV3Schema)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		openAPI, _, err := validation.NewSchemaValidator(props.OpenAPIV3Schema)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all[crd.Spec.Names.Kind] = schema{s, openAPI, cel.NewValidator(s, true, celconfig.PerCallLimit)}
	}
	return all
}

// faults returns what the API server would find wrong, under strict field
// validation, with the objects of Karpenter among the manifests.
func (s schemas) faults(t *testing.T, manifests string) (faults []string) {
	t.Helper()
	decoder := nodes.NewDecoder(strings.NewReader(manifests))
	for {
		var tree any // which cannot hold a key twice
		if err := decoder.Decode(&tree); errors.Is(err, io.EOF) {
			return faults
		} else if err != nil {
			t.Fatalf("%v\n%s", err, manifests)
		}
		content, err := json.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		var object map[string]any
		if err := utiljson.Unmarshal(content, &object); err != nil {
			t.Fatal(err)
		}
		items, isList := object["items"].([]any)
		if !isList {
			items = []any{object}
		}
		for _, item := range items {
			faults = append(faults, s.judge(t, item.(map[string]any))...)
		}
	}
}

func (s schemas) judge(t *testing.T, object map[string]any) (faults []string) {
	t.Helper()
	kind, _ := object["kind"].(string)
	if version, _ := object["apiVersion"].(string); version != "karpenter.sh/v1" && version != "karpenter.k8s.aws/v1" {
		return nil
	}
	schema, known := s[kind]
	if !known {
		return []string{"no kind " + kind}
	}
	unknown := pruning.PruneWithOptions(object, schema.structural, true, structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	for _, path := range unknown {
		faults = append(faults, kind+": unknown field "+path)
	}
	defaulting.Default(object, schema.structural)
	errs := validation.ValidateCustomResource(nil, object, schema.openAPI)
	more, _ := schema.rules.Validate(t.Context(), field.NewPath(""), schema.structural, object, nil, celconfig.RuntimeCELCostBudget)
	for _, err := range append(errs, more...) {
		faults = append(faults, kind+": "+err.Error())
	}
	return faults
}
