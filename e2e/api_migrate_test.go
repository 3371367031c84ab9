// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestMigratedManifests applies what karpenter migrate makes of published kinds
// of manifests. What its report says the API server would reject is rejected.
func TestMigratedManifests(t *testing.T) {
	c := client.WithFieldValidation(shared.Cluster(t).Client, metav1.FieldValidationStrict)
	outs, err := filepath.Glob("../cmd/karpenter/migrate/testdata/cases/*/out.yaml")
	if err != nil || len(outs) < 15 {
		t.Fatalf("%d cases, %v", len(outs), err)
	}
	for _, out := range outs {
		t.Run(filepath.Base(filepath.Dir(out)), func(t *testing.T) {
			report, err := os.ReadFile(filepath.Join(filepath.Dir(out), "report.txt"))
			if err != nil {
				t.Fatal(err)
			}
			for _, object := range ours(t, out) {
				err := c.Create(t.Context(), object)
				unknown := fmt.Sprintf("there is no %s of %s", object.GetKind(), object.GetAPIVersion())
				if err != nil && !strings.Contains(string(report), "would reject") && !strings.Contains(string(report), unknown) {
					t.Errorf("%s %s: %v", object.GetKind(), object.GetName(), err)
				}
				if err == nil {
					if err := c.Delete(t.Context(), object); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
}

// ours returns the objects of Karpenter's v1 in a file.
func ours(t *testing.T, path string) []*unstructured.Unstructured {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var found []*unstructured.Unstructured
	add := func(content map[string]any) {
		object := &unstructured.Unstructured{Object: content}
		switch object.GetAPIVersion() {
		case "karpenter.sh/v1", "karpenter.k8s.aws/v1":
			found = append(found, object)
		}
	}
	decoder := yaml.NewYAMLOrJSONDecoder(file, 4096)
	for {
		var content map[string]any
		if err := decoder.Decode(&content); errors.Is(err, io.EOF) {
			return found
		} else if err != nil {
			t.Fatal(err)
		}
		items, isList := content["items"].([]any)
		for _, item := range items {
			add(item.(map[string]any))
		}
		if !isList {
			add(content)
		}
	}
}
