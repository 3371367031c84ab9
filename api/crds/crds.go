// SPDX-License-Identifier: Apache-2.0

// Package crds carries the CustomResourceDefinition manifests of the resources
// under api, generated from the markers of the Go types.
package crds

import (
	"embed"
	"fmt"
	"io/fs"
)

//go:generate go tool controller-gen object:headerFile=header.txt crd:crdVersions=v1 paths=../... output:crd:dir=.
//go:generate sh -c "go run ./bounds *.yaml"

//go:embed *.yaml
var manifests embed.FS

// Manifests returns the content of the manifests by file name.
func Manifests() (map[string][]byte, error) {
	names, err := fs.Glob(manifests, "*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list embedded CRD manifests: %w", err)
	}
	files := make(map[string][]byte, len(names))
	for _, name := range names {
		content, err := manifests.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read embedded CRD manifest %s: %w", name, err)
		}
		files[name] = content
	}
	return files, nil
}
