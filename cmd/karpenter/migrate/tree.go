// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// find returns the key and its value, or nils. m may be nil or not a mapping.
func find(m *yaml.Node, key string) (k, v *yaml.Node) {
	if m == nil || m.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Kind == yaml.ScalarNode && m.Content[i].Value == key {
			return m.Content[i], m.Content[i+1]
		}
	}
	return nil, nil
}

// at returns the value under a chain of keys, or nil.
func at(m *yaml.Node, keys ...string) *yaml.Node {
	for _, key := range keys {
		_, m = find(m, key)
	}
	return m
}

// text returns the scalar under a chain of keys, or "".
func text(m *yaml.Node, keys ...string) string {
	if v := at(m, keys...); v != nil && v.Kind == yaml.ScalarNode && v.Tag != "!!null" {
		return v.Value
	}
	return ""
}

// has reports whether the key has a value other than null.
func has(m *yaml.Node, key string) bool {
	_, v := find(m, key)
	return v != nil && v.Tag != "!!null"
}

// keys returns the keys of a mapping. m may be nil or not a mapping.
func keys(m *yaml.Node) []string {
	var found []string
	for i := 0; m != nil && m.Kind == yaml.MappingNode && i < len(m.Content); i += 2 {
		found = append(found, m.Content[i].Value)
	}
	return found
}

// take removes a key and returns it with its value. It returns nils if there is
// none.
func take(m *yaml.Node, key string) (k, v *yaml.Node) {
	if k, v = find(m, key); k == nil {
		return nil, nil
	}
	i := slices.Index(m.Content, k)
	m.Content = slices.Delete(m.Content, i, i+2)
	return k, v
}

// put sets the value of a key and returns the key. A new key is added at the
// end.
func put(m *yaml.Node, key string, v *yaml.Node) *yaml.Node {
	if k, _ := find(m, key); k != nil {
		m.Content[slices.Index(m.Content, k)+1] = v
		return k
	}
	k := str(key)
	m.Content = append(m.Content, k, v)
	return k
}

// putFirst inserts a new key before all others and returns it.
func putFirst(m *yaml.Node, key string, v *yaml.Node) *yaml.Node {
	k := str(key)
	m.Content = slices.Insert(m.Content, 0, k, v)
	return k
}

// move moves a key with its comments from one mapping to the end of another,
// under a new name. It reports whether there was such a key. A key with the
// value null is only removed.
func move(from *yaml.Node, key string, to *yaml.Node, name string) bool {
	k, v := take(from, key)
	if k == nil || v.Tag == "!!null" {
		return false
	}
	k.Value = name
	to.Content = append(to.Content, k, v)
	return true
}

// section returns the mapping at the key. It adds an empty one if there is
// none.
func section(m *yaml.Node, key string) *yaml.Node {
	if _, v := find(m, key); v != nil && v.Kind == yaml.MappingNode {
		return v
	}
	v := mapping()
	put(m, key, v)
	return v
}

func str(value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}
}

func integer(value int) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.Itoa(value)}
}

// mapping returns a mapping of alternating keys and values.
func mapping(pairs ...any) *yaml.Node {
	m := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for _, p := range pairs {
		switch p := p.(type) {
		case string:
			m.Content = append(m.Content, str(p))
		case *yaml.Node:
			m.Content = append(m.Content, p)
		}
	}
	return m
}

func list(items ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: items}
}

// copied returns a copy of the tree with its comments.
func copied(n *yaml.Node) *yaml.Node {
	c := *n
	c.Content = nil
	for _, child := range n.Content {
		c.Content = append(c.Content, copied(child))
	}
	return &c
}

// clone returns a copy of the tree without comments and anchors.
func clone(n *yaml.Node) *yaml.Node {
	c := &yaml.Node{Kind: n.Kind, Style: n.Style, Tag: n.Tag, Value: n.Value, Line: n.Line, Column: n.Column}
	for _, child := range n.Content {
		c.Content = append(c.Content, clone(child))
	}
	return c
}

// comment adds lines above a key.
func comment(key *yaml.Node, lines ...string) {
	for i, line := range lines {
		lines[i] = strings.TrimRight("# "+strings.Map(printable, line), " ")
	}
	if key.HeadComment != "" {
		lines = slices.Insert(lines, 0, key.HeadComment)
	}
	key.HeadComment = strings.Join(lines, "\n")
}

func printable(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return '?'
}

// render writes a tree as YAML.
func render(n *yaml.Node, s style) (string, error) {
	var out strings.Builder
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(s.indent)
	if s.compact {
		encoder.CompactSeqIndent()
	}
	if err := encoder.Encode(n); err != nil {
		return "", err
	}
	return out.String(), encoder.Close()
}

// style is how a document is laid out.
type style struct {
	indent  int
	compact bool // dashes are not indented below their key
}

// styleOf returns the layout of the document, as far as its first lists and
// mappings show it.
func styleOf(root *yaml.Node) style {
	s := style{indent: 2}
	indentKnown, dashKnown := false, false
	var look func(*yaml.Node)
	look = func(n *yaml.Node) {
		for i := 0; n.Kind == yaml.MappingNode && n.Style&yaml.FlowStyle == 0 && i+1 < len(n.Content); i += 2 {
			k, v := n.Content[i], n.Content[i+1]
			if v.Style&yaml.FlowStyle != 0 || len(v.Content) == 0 {
				continue
			}
			if step := v.Column - k.Column; v.Kind == yaml.MappingNode && !indentKnown && step >= 2 && step <= 8 {
				s.indent, indentKnown = step, true
			}
			if v.Kind == yaml.SequenceNode && !dashKnown {
				s.compact, dashKnown = v.Column == k.Column, true
			}
		}
		for _, child := range n.Content {
			look(child)
		}
	}
	look(root)
	return s
}

// blockify gives each field of a tree a line of its own, so that comments can
// be added. Only lists of scalars and empty values stay on one line.
func blockify(n *yaml.Node) {
	inline := n.Kind == yaml.SequenceNode || len(n.Content) == 0
	for _, child := range n.Content {
		blockify(child)
		inline = inline && child.Kind == yaml.ScalarNode
	}
	if !inline {
		n.Style &^= yaml.FlowStyle
	}
}

// plain removes quotes as in JSON from a tree.
func plain(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode {
		n.Style &^= yaml.DoubleQuotedStyle
	}
	for _, child := range n.Content {
		plain(child)
	}
}

// maxNodes limits the size of a tree after its aliases are expanded.
const maxNodes = 50_000

// expand replaces aliases and merge keys with copies of what they refer to. It
// reports whether there were any.
func expand(root *yaml.Node) (expanded bool, err error) {
	count := 0
	var walk func(n *yaml.Node, shared bool) (*yaml.Node, error)
	walk = func(n *yaml.Node, shared bool) (*yaml.Node, error) {
		if n.Kind == yaml.AliasNode {
			expanded = true
			return walk(n.Alias, true)
		}
		if shared {
			if count++; count > maxNodes {
				return nil, fmt.Errorf("aliases stand for more than %d values", maxNodes)
			}
			n = &yaml.Node{Kind: n.Kind, Style: n.Style, Tag: n.Tag, Value: n.Value, Line: n.Line, Column: n.Column, Content: slices.Clone(n.Content)}
		}
		n.Anchor = ""
		for i, child := range n.Content {
			fresh, err := walk(child, shared)
			if err != nil {
				return nil, err
			}
			n.Content[i] = fresh
		}
		if n.Kind == yaml.MappingNode {
			merge(n)
		}
		return n, nil
	}
	_, err = walk(root, false)
	return expanded, err
}

// merge replaces "<<" with the fields that it refers to. A mapping's own fields
// take precedence.
func merge(m *yaml.Node) {
	for i := 0; i+1 < len(m.Content); i += 2 {
		if k, v := m.Content[i], m.Content[i+1]; k.Tag == "!!merge" {
			m.Content = slices.Delete(m.Content, i, i+2)
			from := []*yaml.Node{v}
			if v.Kind == yaml.SequenceNode {
				from = v.Content
			}
			for _, f := range from {
				for j := 0; f.Kind == yaml.MappingNode && j+1 < len(f.Content); j += 2 {
					if known, _ := find(m, f.Content[j].Value); known == nil {
						m.Content = slices.Insert(m.Content, i, f.Content[j], f.Content[j+1])
						i += 2
					}
				}
			}
			i -= 2
		}
	}
}

// same reports whether two trees are equal, apart from style and comments.
func same(a, b *yaml.Node) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Kind == b.Kind && a.Value == b.Value && a.ShortTag() == b.ShortTag() &&
		slices.EqualFunc(a.Content, b.Content, same)
}

// malformed returns the first key of a tree that is not a scalar or that occurs
// twice, and what is wrong with it.
func malformed(n *yaml.Node) (where *yaml.Node, problem string) {
	seen := map[string]bool{}
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			switch {
			case child.Kind != yaml.ScalarNode:
				return child, "a key is no text"
			case seen[child.Value]:
				return child, fmt.Sprintf("%s is there twice", child.Value)
			}
			seen[child.Value] = true
		}
		if where, problem := malformed(child); problem != "" {
			return where, problem
		}
	}
	return nil, ""
}
