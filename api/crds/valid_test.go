// SPDX-License-Identifier: Apache-2.0

package crds_test

import (
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"sigs.k8s.io/yaml"

	"karpenter/api/crds"
)

// TestManifestsAreAccepted runs the API server's own validation, which
// includes the estimated cost of the CEL rules.
func TestManifestsAreAccepted(t *testing.T) {
	files, err := crds.Manifests()
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		t.Run(name, func(t *testing.T) {
			var crd apiextensionsv1.CustomResourceDefinition
			if err := yaml.UnmarshalStrict(content, &crd); err != nil {
				t.Fatal(err)
			}
			apiextensionsv1.SetDefaults_CustomResourceDefinition(&crd)
			apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
			for _, version := range crd.Spec.Versions {
				if version.Storage {
					crd.Status.StoredVersions = []string{version.Name}
				}
			}
			var internal apiextensions.CustomResourceDefinition
			if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&crd, &internal, nil); err != nil {
				t.Fatal(err)
			}
			for _, err := range validation.ValidateCustomResourceDefinition(t.Context(), &internal) {
				t.Error(err)
			}
		})
	}
}
