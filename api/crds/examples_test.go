// SPDX-License-Identifier: Apache-2.0

package crds_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"karpenter/api/aws/kubelet"
	awsv1 "karpenter/api/aws/v1"
	"karpenter/api/scheme"
	v1 "karpenter/api/v1"
	"karpenter/api/v1alpha1"
)

// judge says what the API server and the controllers would find wrong with an
// object.
type judge struct {
	schema  *structural.Structural
	openAPI validation.SchemaValidator
	rules   *cel.Validator
}

func newJudge(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) judge {
	t.Helper()
	var props apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, &props, nil); err != nil {
		t.Fatal(err)
	}
	schema, err := structural.NewStructural(&props)
	if err != nil {
		t.Fatal(err)
	}
	openAPI, _, err := validation.NewSchemaValidator(&props)
	if err != nil {
		t.Fatal(err)
	}
	return judge{schema, openAPI, cel.NewValidator(schema, true, celconfig.PerCallLimit)}
}

// faults fills in the defaults of the object, too.
func (j judge) faults(t *testing.T, object map[string]any) (faults []string) {
	t.Helper()
	options := structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	for _, path := range pruning.PruneWithOptions(object, j.schema, true, options) {
		faults = append(faults, "unknown field "+path)
	}
	defaulting.Default(object, j.schema)
	errs := validation.ValidateCustomResource(nil, object, j.openAPI)
	more, _ := j.rules.Validate(t.Context(), field.NewPath(""), j.schema, object, nil, celconfig.RuntimeCELCostBudget)
	for _, err := range append(errs, more...) {
		faults = append(faults, err.Error())
	}
	return faults
}

// condition returns what would keep the condition ValidationSucceeded False.
func condition(object runtime.Object) error {
	switch o := object.(type) {
	case *v1.NodePool:
		return v1.ValidateNodePool(o, v1.DefaultLabels().With(awsv1.Labels()))
	case *v1alpha1.NodeOverlay:
		return v1alpha1.ValidateNodeOverlay(o, v1.DefaultLabels().With(awsv1.Labels()))
	case *awsv1.EC2NodeClass:
		var errs v1.ValidationErrors
		for _, err := range []error{awsv1.ValidateTags(o.Spec.Tags), kubelet.Check(o.Spec.Kubelet), kubelet.Supported(o.Spec.Kubelet, o.AMIFamily())} {
			if err != nil {
				errs = append(errs, err)
			}
		}
		return errs.Join()
	}
	return nil
}

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)\n```\n")

// examples returns the manifests in docs/fields and docs/nodepool.md, with the file and
// the line they begin in.
func examples(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(reference, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, filepath.Join(reference, "..", "nodepool.md"))
	all := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range yamlBlock.FindAllSubmatchIndex(text, -1) {
			for i, manifest := range strings.Split(string(text[at[2]:at[3]]), "\n---\n") {
				all[place(file, string(text[:at[2]]), i)] = manifest
			}
		}
	}
	return all
}

func place(file, before string, document int) string {
	line, _ := json.Marshal(strings.Count(before, "\n") + 1)
	name, _ := filepath.Rel(filepath.Dir(reference), file)
	name += ":" + string(line)
	return name + strings.Repeat("+", document)
}

// TestExamples holds the manifests in docs/fields and docs/nodepool.md against what the API server
// and the controllers accept, and names the fields of which docs/fields has none.
func TestExamples(t *testing.T) {
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme} {
		if err := add(known); err != nil {
			t.Fatal(err)
		}
	}
	decoder := serializer.NewCodecFactory(known, serializer.EnableStrict).UniversalDeserializer()
	judges := map[string]judge{}
	all := definitions(t)
	for kind, crd := range all {
		judges[kind] = newJudge(t, crd)
	}
	shown := map[string]map[string]bool{}
	manifests := examples(t)
	for _, at := range slices.Sorted(maps.Keys(manifests)) {
		object, kind, err := decoder.Decode([]byte(manifests[at]), nil, nil)
		if err != nil {
			t.Errorf("%s: %v", at, err)
			continue
		}
		if err := condition(object); err != nil {
			t.Errorf("%s: %v", at, err)
		}
		j, ours := judges[kind.Kind]
		if !ours {
			continue // of Kubernetes
		}
		var plain map[string]any
		content, err := yaml.YAMLToJSON([]byte(manifests[at]))
		if err != nil {
			t.Fatal(err)
		}
		if err := utiljson.Unmarshal(content, &plain); err != nil {
			t.Fatal(err)
		}
		if shown[kind.Kind] == nil {
			shown[kind.Kind] = map[string]bool{}
		}
		if strings.HasPrefix(at, "fields/") {
			paths(shown[kind.Kind], "", plain)
		}
		for _, fault := range j.faults(t, plain) {
			t.Errorf("%s: %s", at, fault)
		}
	}
	for kind, crd := range all {
		for _, f := range fields(crd) {
			if !shown[kind][f.path] {
				t.Errorf("docs/fields has no example of %s.%s", kind, f.path)
			}
		}
	}
}

// paths notes the fields of an object.
func paths(seen map[string]bool, path string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for name, below := range v {
			at := strings.TrimPrefix(path+"."+name, ".")
			seen[at] = true
			paths(seen, at, below)
		}
	case []any:
		for _, item := range v {
			paths(seen, path+"[]", item)
		}
	}
}
