// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	sigsyaml "sigs.k8s.io/yaml"

	v1 "karpenter/api/v1"
)

// Manifest is a NodePool as the API server would store it, and where it is
// written.
type Manifest struct {
	Pool  *v1.NodePool
	file  string
	lines *yaml.Node
}

// Manifests are what a cluster is to be changed to.
type Manifests struct {
	Pools   []Manifest
	Ignored []string // kinds of the objects that are no NodePools, once each
}

// Read adds the objects of a file with one or more YAML documents, or JSON. An
// error names the file, the line and the field.
func (m *Manifests) Read(file string, r io.Reader) error {
	schema, err := readSchema()
	if err != nil {
		return err
	}
	documents := yaml.NewDecoder(r)
	for {
		var document yaml.Node
		err := documents.Decode(&document)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := m.document(schema, file, &document); err != nil {
			return err
		}
	}
}

// document reads one object, or a List of them.
func (m *Manifests) document(schema *schema, file string, node *yaml.Node) error {
	for node.Kind == yaml.DocumentNode && len(node.Content) > 0 {
		node = node.Content[0]
	}
	if node.Kind == 0 || node.Tag == "!!null" {
		return nil
	}
	at := func(line int, what string) error { return fmt.Errorf("%s:%d: %s", file, line, what) }
	apiVersion, kind := text(node, "apiVersion"), text(node, "kind")
	group, _, _ := strings.Cut(apiVersion, "/")
	items := child(node, "items")
	switch {
	case node.Kind != yaml.MappingNode || kind == "":
		return at(node.Line, "want a Kubernetes object, with apiVersion and kind")
	case strings.HasSuffix(kind, "List") && items != nil:
		for _, item := range items.Content {
			if err := m.document(schema, file, item); err != nil {
				return err
			}
		}
		return nil
	case kind != "NodePool" || group != v1.Group:
		m.ignore(kind)
		return nil
	case apiVersion != v1.GroupVersion().String():
		return at(child(node, "apiVersion").Line, fmt.Sprintf("apiVersion: %q: want %s", apiVersion, v1.GroupVersion()))
	}
	pool, err := schema.pool(node)
	var problem *field.Error
	switch {
	case errors.As(err, &problem):
		return at(lineOf(node, problem.Field), problem.Error())
	case err != nil:
		return at(node.Line, err.Error())
	}
	for _, other := range m.Pools {
		if other.Pool.Name == pool.Name {
			return at(node.Line, fmt.Sprintf("NodePool %s is also at %s:%d; keep one of them", pool.Name, other.file, other.lines.Line))
		}
	}
	m.Pools = append(m.Pools, Manifest{pool, file, node})
	return nil
}

func (m *Manifests) ignore(kind string) {
	for _, known := range m.Ignored {
		if known == kind {
			return
		}
	}
	m.Ignored = append(m.Ignored, kind)
}

// refuse returns the error about a field of the manifest, which may be a
// sentence that begins with the field's path.
func (m *Manifest) refuse(problem error) error {
	path, _, _ := strings.Cut(problem.Error(), ": ")
	return fmt.Errorf("%s:%d: NodePool %s: %w", m.file, lineOf(m.lines, path), m.Pool.Name, problem)
}

// child returns the value of a key, nil when there is none.
func child(node *yaml.Node, key string) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if node.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == key {
			return node.Content[i+1]
		}
	}
	return nil
}

func text(node *yaml.Node, key string) string {
	if c := child(node, key); c != nil {
		return c.Value
	}
	return ""
}

// steps are the keys and indices of a path such as
// spec.template.metadata.labels[a.b/c].
func steps(path string) [][]string {
	return regexp.MustCompile(`([^.\[\]]+)|\[([^\]]*)\]`).FindAllStringSubmatch(path, -1)
}

// lineOf returns the line of the field, or of what is there of the path to it.
func lineOf(node *yaml.Node, path string) int {
	line := node.Line
	for _, step := range steps(path) {
		next := child(node, step[1]+step[2])
		if i, err := strconv.Atoi(step[2]); err == nil && node.Kind == yaml.SequenceNode && i < len(node.Content) {
			next = node.Content[i]
		}
		if next == nil {
			break
		}
		node, line = next, keyLine(node, next)
	}
	return line
}

// keyLine returns the line of the key that the value belongs to.
func keyLine(parent, value *yaml.Node) int {
	if parent.Kind == yaml.MappingNode {
		for i := 1; i < len(parent.Content); i += 2 {
			if parent.Content[i] == value {
				return parent.Content[i-1].Line
			}
		}
	}
	return value.Line
}

// object returns the node as the API server decodes it.
func object(node *yaml.Node) (map[string]any, error) {
	text, err := yaml.Marshal(node)
	if err != nil {
		return nil, err
	}
	var out map[string]any
	if err := sigsyaml.UnmarshalStrict(text, &out); err != nil {
		return nil, err
	}
	return runtime.DeepCopyJSON(whole(out).(map[string]any)), nil
}

// whole has whole numbers be int64, as the API server has them.
func whole(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key := range v {
			v[key] = whole(v[key])
		}
	case []any:
		for i := range v {
			v[i] = whole(v[i])
		}
	case float64:
		if n := int64(v); float64(n) == v {
			return n
		}
	}
	return v
}
