// SPDX-License-Identifier: Apache-2.0

// Package manifest reads Kubernetes manifests and applies them, as kubectl would.
package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Read returns the objects in the files and folders (not their subfolders) named, in order; in a folder, *.yaml, *.yml
// and *.json by name. An empty folder is an error, for it is probably the wrong one.
func Read(paths ...string) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, path := range paths {
		files, err := filesOf(path)
		if err != nil {
			return nil, fmt.Errorf("manifests: %w", err)
		}
		for _, file := range files {
			objects, err := readFile(file)
			if err != nil {
				return nil, fmt.Errorf("manifest %s: %w", file, err)
			}
			all = append(all, objects...)
		}
	}
	return all, nil
}

func filesOf(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if !e.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name())) {
			files = append(files, filepath.Join(path, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("no manifests (*.yaml, *.yml, *.json) in it")}
	}
	return files, nil
}

func readFile(path string) ([]*unstructured.Unstructured, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	var objects []*unstructured.Unstructured
	for i := 1; ; i++ {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", i, err)
		}
		if len(object.Object) == 0 {
			continue // only comments
		}
		if object.GetKind() == "" || object.GetAPIVersion() == "" || object.GetName() == "" {
			return nil, fmt.Errorf("document %d: apiVersion, kind or metadata.name is missing", i)
		}
		objects = append(objects, object)
	}
}
