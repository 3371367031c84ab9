// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"karpenter/api/crds"
)

// schemas check objects of the newest versions as the API server does, by kind. Each is read when
// it is first needed.
type schemas map[string]*schema

// schemaFiles maps each kind that this package writes to the file of its
// schema.
func schemaFiles() map[string]string {
	return map[string]string{
		"NodePool": "karpenter.sh_nodepools.yaml", "NodeClaim": "karpenter.sh_nodeclaims.yaml", "EC2NodeClass": "karpenter.k8s.aws_ec2nodeclasses.yaml",
		"AKSNodeClass": "karpenter.azure.com_aksnodeclasses.yaml",
	}
}

type schema struct {
	structural *structural.Structural
	openAPI    validation.SchemaValidator
	rules      *cel.Validator
}

// of returns the schema of a kind; nil if there is none.
func (s schemas) of(kind string) (*schema, error) {
	name, known := schemaFiles()[kind]
	if s[kind] != nil || !known {
		return s[kind], nil
	}
	files, err := crds.Manifests()
	if err != nil {
		return nil, err
	}
	var crd apiextensionsv1.CustomResourceDefinition
	var internal apiextensions.CustomResourceDefinition
	if err := yaml.Unmarshal(files[name], &crd); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&crd, &internal, nil); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	props := internal.Spec.Validation
	if props == nil {
		props = internal.Spec.Versions[0].Schema
	}
	out := &schema{}
	if out.structural, err = structural.NewStructural(props.OpenAPIV3Schema); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if out.openAPI, _, err = validation.NewSchemaValidator(props.OpenAPIV3Schema); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	out.rules = cel.NewValidator(out.structural, true, celconfig.PerCallLimit)
	s[kind] = out
	return out, nil
}

// faults returns everything that the API server would find wrong with the object,
// under strict field validation.
func (s *schema) faults(manifest string) ([]string, error) {
	content, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		return nil, err
	}
	var object map[string]any
	if err := utiljson.Unmarshal(content, &object); err != nil {
		return nil, err
	}
	delete(object, "status") // written by the controller, ignored in manifests
	var out []string
	for _, path := range pruning.PruneWithOptions(object, s.structural, true, structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}) {
		out = append(out, path+": there is no such field")
	}
	defaulting.Default(object, s.structural)
	errs := validation.ValidateCustomResource(nil, object, s.openAPI)
	more, _ := s.rules.Validate(context.Background(), nil, s.structural, object, nil, celconfig.RuntimeCELCostBudget)
	for _, err := range append(errs, more...) {
		out = append(out, err.Error())
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}
