// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

const instancePods = "karpenter.k8s.aws/instance-pods"

// renamedKeys maps the older names of labels, annotations and taints to the
// current ones.
func renamedKeys() map[string]string {
	return map[string]string{
		"karpenter.sh/provisioner-name":       "karpenter.sh/nodepool",
		"karpenter.sh/provisioner-hash":       "karpenter.sh/nodepool-hash",
		"karpenter.k8s.aws/nodetemplate-hash": "karpenter.k8s.aws/ec2nodeclass-hash",
		"karpenter.sh/do-not-evict":           "karpenter.sh/do-not-disrupt",
		"karpenter.sh/do-not-consolidate":     "karpenter.sh/do-not-disrupt",
		"karpenter.sh/disruption":             "karpenter.sh/disrupted",
	}
}

// gone are names that no longer mean anything.
func gone() []string {
	return []string{
		"karpenter.sh/v1alpha5", "karpenter.sh/v1beta1", "karpenter.k8s.aws/v1alpha1", "karpenter.k8s.aws/v1beta1",
		"karpenter.sh/provisioner-name", "karpenter.sh/do-not-evict", "karpenter.sh/do-not-consolidate", instancePods,
	}
}

// renamer finds older names in one object.
type renamer struct {
	names map[string]string
	found []rename
	clash []*yaml.Node // older names in a mapping that also has the newer one
	texts []*yaml.Node // older names inside other text, or that have no newer name
}

// renameKeys replaces the older names of labels, annotations and taints: where
// they are keys of a mapping, and where they are the value of key or
// topologyKey, as in affinities and tolerations.
func (o *object) renameKeys() {
	r := &renamer{names: renamedKeys()}
	r.walk(o.root)
	for _, n := range r.clash {
		o.askAt(n, "%s and its successor %s are both there: remove the older one", n.Value, r.names[n.Value])
	}
	for _, n := range r.texts {
		if o.ours() && n == at(o.root, "apiVersion") {
			continue // reported with the kind
		}
		o.askAt(n, "%s is an old name, in a place that migrate does not change: change it", firstGone(n.Value))
	}
	if o.kind == "ConfigMap" && o.name == "karpenter-global-settings" {
		o.askAt(o.root, "Karpenter no longer reads this ConfigMap: move the settings to the values of the chart")
	}
	if len(r.found) == 0 {
		return
	}
	o.changed = true
	if o.doc.expanded {
		o.touch()
	}
	said := map[string]bool{}
	for _, f := range r.found {
		if message := f.node.Value + " is now " + f.to; f.to != `""` && !said[message] {
			said[message] = true
			o.enter(f.node.Line, message, false)
		}
	}
	o.doc.renames = append(o.doc.renames, r.found...)
}

// apply changes the tree.
func (r rename) apply() {
	if r.node.Value = r.to; r.to == `""` {
		r.node.Value, r.node.Tag = "", "!!str"
	}
}

func (r *renamer) walk(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode {
		if firstGone(n.Value) != "" {
			r.texts = append(r.texts, n)
		}
		return
	}
	if n.Kind == yaml.MappingNode {
		r.mapping(n)
		return
	}
	for _, child := range n.Content {
		r.walk(child)
	}
}

func (r *renamer) mapping(m *yaml.Node) {
	named := map[string]bool{}
	for i := 0; i+1 < len(m.Content); i += 2 {
		k, v := m.Content[i], m.Content[i+1]
		to, old := r.names[k.Value]
		_, taken := find(m, to)
		switch {
		case old && (taken != nil || named[to]):
			r.clash = append(r.clash, k)
		case old:
			named[to] = true
			r.found = append(r.found, rename{k, to})
		case k.Kind == yaml.ScalarNode && firstGone(k.Value) != "":
			r.texts = append(r.texts, k)
		}
		to, old = r.names[v.Value]
		if v.Kind == yaml.ScalarNode && old && (k.Value == "key" || k.Value == "topologyKey") {
			r.found = append(r.found, rename{v, to})
			// The older taint had a value, the newer one has none.
			if value := at(m, "value"); to == "karpenter.sh/disrupted" && value != nil && value.Value == "disrupting" {
				r.found = append(r.found, rename{value, `""`})
			}
			continue
		}
		r.walk(v)
	}
}

// firstGone returns the first name of gone in a text, or "".
func firstGone(text string) string {
	i := slices.IndexFunc(gone(), func(name string) bool { return strings.Contains(text, name) })
	if i < 0 {
		return ""
	}
	return gone()[i]
}
