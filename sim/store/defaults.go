// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"karpenter/api/crds"
)

// defaults are the schemas of our CRDs, which say what an object gets that
// leaves fields out.
type defaults map[schema.GroupVersionKind]*structural.Structural

func readDefaults() (defaults, error) {
	manifests, err := crds.Manifests()
	if err != nil {
		return nil, err
	}
	out := defaults{}
	for file, text := range manifests {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(text, crd); err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		for _, version := range crd.Spec.Versions {
			internal := &apiextensions.JSONSchemaProps{}
			err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, internal, nil)
			if err != nil {
				return nil, fmt.Errorf("schema in %s: %w", file, err)
			}
			s, err := structural.NewStructural(internal)
			if err != nil {
				return nil, fmt.Errorf("schema in %s: %w", file, err)
			}
			out[schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind}] = s
		}
	}
	return out, nil
}

// apply fills in what the object leaves out.
func (d defaults) apply(gvk schema.GroupVersionKind, object map[string]any) {
	if s := d[gvk]; s != nil {
		defaulting.Default(object, s)
	}
}
