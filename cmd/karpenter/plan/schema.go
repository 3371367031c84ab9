// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	sigsyaml "sigs.k8s.io/yaml"

	"karpenter/api/crds"
	v1 "karpenter/api/v1"
)

// schema is what the API server does with a NodePool: refuses what is wrong, and
// fills in what is left out.
type schema struct {
	structure *structural.Structural
	validator validation.SchemaValidator
}

func readSchema() (*schema, error) {
	const file = "karpenter.sh_nodepools.yaml"
	manifests, err := crds.Manifests()
	if err != nil {
		return nil, err
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := sigsyaml.Unmarshal(manifests[file], crd); err != nil || len(crd.Spec.Versions) != 1 {
		return nil, fmt.Errorf("read %s: %d versions: %w", file, len(crd.Spec.Versions), err)
	}
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, internal, nil); err != nil {
		return nil, fmt.Errorf("schema in %s: %w", file, err)
	}
	out := &schema{}
	if out.structure, err = structural.NewStructural(internal); err != nil {
		return nil, fmt.Errorf("schema in %s: %w", file, err)
	}
	if out.validator, _, err = validation.NewSchemaValidator(internal); err != nil {
		return nil, fmt.Errorf("schema in %s: %w", file, err)
	}
	return out, nil
}

// pool returns the NodePool with its defaults, or a *field.Error about the first
// thing that is wrong with it.
func (s *schema) pool(node *yaml.Node) (*v1.NodePool, error) {
	fields, err := object(node)
	if err != nil {
		return nil, err
	}
	delete(fields, "status") // the controller's, whatever a file says
	options := structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	if unknown := pruning.PruneWithOptions(fields, s.structure, true, options); len(unknown) > 0 {
		return nil, &field.Error{Type: field.ErrorTypeInvalid, Field: unknown[0], BadValue: field.OmitValueType{}, Detail: "there is no such field"}
	}
	defaulting.Default(fields, s.structure)
	if problems := validation.ValidateCustomResource(nil, fields, s.validator); len(problems) > 0 {
		return nil, problems[0]
	}
	pool := &v1.NodePool{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, pool); err != nil {
		return nil, fmt.Errorf("NodePool: %w", err)
	}
	if strings.TrimSpace(pool.Name) == "" {
		return nil, field.Required(field.NewPath("metadata", "name"), "a NodePool needs a name")
	}
	return pool, nil
}
