// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// demand is the kubelet configuration of one NodePool. In v1, it belongs to the
// node class.
type demand struct {
	pool *object
	spec *yaml.Node // with nodeClassRef
	// config is nil if the pool has no kubelet configuration.
	config *yaml.Node
	key    *yaml.Node // where config was
}

// class returns the name of the EC2NodeClass, or "" if the pool has a node
// class of another kind.
func (d demand) class() string {
	if kind := text(d.spec, "nodeClassRef", "kind"); kind != "" && kind != "EC2NodeClass" {
		return ""
	}
	return text(d.spec, "nodeClassRef", "name")
}

// demandKubelet removes the kubelet configuration from a pool and records it as
// a demand. spec has the nodeClassRef.
func (m *migration) demandKubelet(o *object, spec, from *yaml.Node, field string) {
	key, config := take(from, field)
	d := demand{pool: o, spec: spec, key: key}
	if config != nil && config.Kind == yaml.MappingNode && len(config.Content) > 0 {
		d.config = config
		if runtimeKey, _ := take(config, "containerRuntime"); runtimeKey != nil {
			o.decide(specKey(o), "%s.containerRuntime removed: the runtime is always containerd", field)
		}
	}
	m.kubelet = append(m.kubelet, d)
}

// specKey returns the key of the spec, or the first key if there is no spec.
func specKey(o *object) *yaml.Node {
	if key, _ := find(o.root, "spec"); key != nil {
		return key
	}
	return o.root.Content[0]
}

// settleKubelets moves the kubelet settings of pools to their node classes. It
// splits a class whose pools have different settings.
func (m *migration) settleKubelets() {
	byClass := map[string][]demand{}
	var order []string
	for _, d := range m.kubelet {
		name := d.class()
		if byClass[name] == nil {
			order = append(order, name)
		}
		byClass[name] = append(byClass[name], d)
	}
	for _, name := range order {
		class := m.classes[name]
		if name == "" || class == nil {
			for _, d := range byClass[name] {
				d.leave()
			}
			continue
		}
		m.settle(class, byClass[name])
	}
}

// leave writes the kubelet configuration of a pool into a comment, because its
// class is not in the manifests.
func (d demand) leave() {
	if d.config == nil {
		return
	}
	key, _ := find(d.spec, "nodeClassRef")
	if key == nil {
		key = specKey(d.pool)
	}
	kind := text(d.spec, "nodeClassRef", "kind")
	d.pool.record(key, d.key.Line, true, fmt.Sprintf("the kubelet settings belong to the node class now, and %s is not among the manifests: move these settings to its spec.kubelet; it was:\n%s",
		strings.TrimSpace(kind+" "+text(d.spec, "nodeClassRef", "name")), asComment(mapping("kubelet", clone(d.config)))))
}

// settle writes the kubelet configuration of its pools into one class.
func (m *migration) settle(class *object, demands []demand) {
	spec := section(class.root, "spec")
	own := at(spec, "kubelet") // the configuration that the class has or gets
	free := own == nil || len(own.Content) == 0
	for _, d := range demands {
		free = free && d.config != nil // a pool without a configuration needs a class without one
	}
	made := map[string]string{} // the name of the class, by configuration as text
	for _, d := range demands {
		if d.config == nil {
			continue
		}
		shown := asComment(clone(d.config))
		refKey, ref := find(d.spec, "nodeClassRef")
		switch {
		case free:
			key := put(spec, "kubelet", d.config)
			class.record(key, 0, false, "was in "+d.pool.String())
			own, free = d.config, false
			d.pool.decide(refKey, "the kubelet settings are now in EC2NodeClass %s", class.name)
		case own != nil && same(own, d.config):
			d.pool.decide(refKey, "the kubelet settings are now in EC2NodeClass %s", class.name)
		case made[shown] != "":
			put(ref, "name", str(made[shown]))
			d.pool.decide(refKey, "was %s, whose kubelet settings differ", class.name)
		default:
			name := m.freeClassName(class.name + "-" + d.pool.name)
			made[shown] = name
			m.splitClass(class, d, name)
			put(ref, "name", str(name))
			d.pool.decide(refKey, "was %s; the kubelet settings of this pool differ from those of other pools of that class, so it has its own class now", class.name)
		}
	}
}

// splitClass makes a copy of a class with another kubelet configuration.
func (m *migration) splitClass(class *object, d demand, name string) {
	root := copied(class.root)
	put(section(root, "metadata"), "name", str(name))
	for _, field := range []string{"creationTimestamp", "generation", "managedFields", "ownerReferences", "resourceVersion", "selfLink", "uid", "finalizers"} {
		take(at(root, "metadata"), field)
	}
	take(root, "status")
	put(section(root, "spec"), "kubelet", d.config)
	c := &object{doc: class.doc, root: root, group: awsGroup, version: "v1", kind: "EC2NodeClass", name: name, report: m.report, changed: true}
	root.Content[0].HeadComment = ""
	comment(root.Content[0], decisionMark+"a copy of "+class.name+" for "+strings.ToLower(d.pool.String())+", whose kubelet settings differ")
	class.touch()
	m.addObject(class, c)
}
