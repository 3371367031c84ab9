// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxTerms is the number of terms that the schema allows.
const maxTerms = 30

// term is one selector term that is being built: its tags, and its other
// fields.
type term struct{ fields, tags []string } // alternating keys and values

// selector replaces subnetSelector, securityGroupSelector or amiSelector with a
// list of terms.
func (o *object) selector(spec *yaml.Node, kind string) {
	key, selector := find(spec, kind+"Selector")
	if key == nil {
		return
	}
	if selector.Kind != yaml.MappingNode || len(selector.Content) == 0 || has(spec, kind+"SelectorTerms") {
		take(spec, kind+"Selector")
		return
	}
	above, _ := find(o.root, "spec")
	var terms []term
	for i := 0; i+1 < len(selector.Content); i += 2 {
		k, v := selector.Content[i], selector.Content[i+1]
		if v.Kind != yaml.ScalarNode {
			o.drop(spec, kind+"Selector", above, "spec."+kind+"Selector."+k.Value+" is no text: write "+kind+"SelectorTerms")
			return
		}
		keepComments(key, k, v)
	}
	ids := idsOf(selector)
	if len(ids) > 0 {
		for _, id := range ids {
			terms = append(terms, term{fields: []string{"id", id}})
		}
		if len(selector.Content) > 2 {
			o.ask(key, "ids and tags were mixed, which has not been allowed for long: the ids are kept, the tags are not")
		}
	} else {
		terms = product(selector, kind)
	}
	key.Value = kind + "SelectorTerms"
	if len(terms) > maxTerms {
		o.ask(key, "these are %d terms, and %d are allowed: use fewer, or a tag that selects the same", len(terms), maxTerms)
	}
	spec.Content[slices.Index(spec.Content, key)+1] = listed(terms)
	switch {
	case len(ids) > 0:
		o.decide(key, "one term for each id")
	case len(terms) > 1:
		o.decide(key, "commas meant any of them: one term for each")
	}
}

// keepComments moves the comments of rewritten fields above the field that
// replaces them.
func keepComments(above *yaml.Node, from ...*yaml.Node) {
	for _, n := range from {
		for _, text := range []string{n.HeadComment, n.LineComment, n.FootComment} {
			if text != "" {
				above.HeadComment = strings.TrimPrefix(above.HeadComment+"\n"+text, "\n")
			}
		}
	}
}

// idsOf returns the ids in a selector.
func idsOf(selector *yaml.Node) []string {
	var ids []string
	for _, key := range []string{"aws-ids", "aws::ids"} {
		ids = append(ids, commas(text(selector, key))...)
	}
	return ids
}

// commas splits a list and trims blanks.
func commas(list string) []string {
	var parts []string
	for part := range strings.SplitSeq(list, ",") {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

// product returns a term for each combination of the values of all keys.
func product(selector *yaml.Node, kind string) []term {
	terms := []term{{}}
	for i := 0; i+1 < len(selector.Content); i += 2 {
		key, value := selector.Content[i].Value, selector.Content[i+1].Value
		values := commas(value)
		if len(values) == 0 {
			values = []string{value}
		}
		var longer []term
		for _, t := range terms {
			for _, v := range values {
				if len(longer) > 10*maxTerms {
					break // more than are allowed
				}
				longer = append(longer, t.with(key, v, kind))
			}
		}
		terms = longer
	}
	return terms
}

// with returns the term with one more condition.
func (t term) with(key, value, kind string) term {
	field := map[string]string{"aws::name": "name", "aws::owners": "owner"}[key]
	if kind == "ami" && field != "" {
		return term{fields: append(slices.Clone(t.fields), field, value), tags: t.tags}
	}
	return term{fields: t.fields, tags: append(slices.Clone(t.tags), key, value)}
}

// listed writes terms as YAML.
func listed(terms []term) *yaml.Node {
	out := list()
	for _, t := range terms {
		m := pairs(t.fields)
		if len(t.tags) > 0 {
			put(m, "tags", pairs(t.tags))
		}
		out.Content = append(out.Content, m)
	}
	return out
}

func pairs(keysAndValues []string) *yaml.Node {
	m := mapping()
	for i := 0; i+1 < len(keysAndValues); i += 2 {
		put(m, keysAndValues[i], str(keysAndValues[i+1]))
	}
	return m
}
