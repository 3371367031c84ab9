// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"encoding/json"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// convertPool converts a NodePool from v1beta1 to v1.
func (m *migration) convertPool(o *object) {
	o.become("karpenter.sh/v1", "NodePool")
	spec := section(o.root, "spec")
	claim := section(section(spec, "template"), "spec")
	if !has(claim, "requirements") {
		put(claim, "requirements", list())
	}
	m.classRef(o, claim)
	m.demandKubelet(o, claim, claim, "kubelet")
	m.takeAnnotatedKubelet(o)
	key, _ := find(spec, "template")
	o.drop(claim, "resources", key, "spec.template.spec.resources is no longer a field of a NodePool")
	disruption := at(spec, "disruption")
	if disruption == nil || disruption.Kind != yaml.MappingNode {
		return
	}
	if move(disruption, "expireAfter", claim, "expireAfter") {
		key, _ := find(claim, "expireAfter")
		o.decide(key, "was spec.disruption.expireAfter; an expired node is now drained at once, and budgets do not delay that")
	}
	if key, policy := find(disruption, "consolidationPolicy"); policy != nil && policy.Value == "WhenUnderutilized" {
		policy.Value = "WhenEmptyOrUnderutilized"
		o.decide(key, "was WhenUnderutilized")
	}
	if !has(disruption, "consolidateAfter") {
		take(disruption, "consolidateAfter")
		o.decide(put(disruption, "consolidateAfter", str("0s")), "the old default, now written out")
	}
}

// classKind returns the group and kind for a reference that has none: those of
// Azure if the requirements, or the node class of that name, are of Azure.
func (m *migration) classKind(claim *yaml.Node, name string) (group, kind string) {
	azure := slices.ContainsFunc(m.objects, func(o *object) bool { return o.group == azureGroup && o.name == name })
	if requirements := at(claim, "requirements"); requirements != nil {
		azure = azure || slices.ContainsFunc(requirements.Content, func(r *yaml.Node) bool { return strings.HasPrefix(text(r, "key"), azureGroup+"/") })
	}
	if azure && m.classes[name] == nil {
		return azureGroup, "AKSNodeClass"
	}
	return awsGroup, "EC2NodeClass"
}

// classRef converts {apiVersion, kind, name} to {group, kind, name}.
func (m *migration) classRef(o *object, claim *yaml.Node) {
	key, ref := find(claim, "nodeClassRef")
	group, kind := m.classKind(claim, text(ref, "name"))
	if ref == nil || ref.Kind != yaml.MappingNode {
		key = put(claim, "nodeClassRef", mapping("group", str(group), "kind", str(kind), "name", str(placeholder)))
		o.ask(key, "there was no nodeClassRef: name the node class")
		return
	}
	var filled []string
	if len(ref.Content) == 0 {
		ref.Style = 0
	}
	if versionKey, version := find(ref, "apiVersion"); has(ref, "group") {
		take(ref, "apiVersion")
	} else if of, _, _ := strings.Cut(text(ref, "apiVersion"), "/"); of != "" {
		versionKey.Value, version.Value, version.Tag = "group", of, "!!str"
	} else {
		take(ref, "apiVersion")
		take(ref, "group")
		putFirst(ref, "group", str(group))
		filled = append(filled, "group")
	}
	if !has(ref, "kind") {
		take(ref, "kind")
		ref.Content = slices.Insert(ref.Content, 2, str("kind"), str(kind))
		filled = append(filled, "kind")
	}
	if len(filled) > 0 {
		o.decide(key, "%s must be set now", strings.Join(filled, " and "))
	}
	if text(ref, "name") == "" {
		put(ref, "name", str(placeholder))
		o.ask(key, "there was no name: name the node class")
	}
}

// convertClaim converts a NodeClaim from v1beta1 to v1.
func (m *migration) convertClaim(o *object) {
	o.become("karpenter.sh/v1", "NodeClaim")
	m.finishClaim(o, section(o.root, "spec"), "kubelet", "")
}

// finishClaim does the part of the conversion that NodeClaims and Machines
// share. class is the name of the node class if the claim does not have it.
func (m *migration) finishClaim(o *object, spec *yaml.Node, kubelet, class string) {
	if class != "" && !has(spec, "nodeClassRef") {
		put(spec, "nodeClassRef", mapping("group", str(awsGroup), "kind", str("EC2NodeClass"), "name", str(class)))
	}
	m.classRef(o, spec)
	key, _ := find(o.root, "spec")
	o.drop(spec, kubelet, key, "the kubelet settings are now in the EC2NodeClass, in spec.kubelet")
	labels := at(o.root, "metadata", "labels")
	if !has(spec, "expireAfter") && !has(labels, "karpenter.sh/nodepool") && !has(labels, "karpenter.sh/provisioner-name") {
		o.decide(put(spec, "expireAfter", str("Never")), "a claim without a pool did not expire; without this line it would after 720h")
	}
	o.ask(key, "Karpenter creates NodeClaims itself, and each one launches an instance: apply this only if a person wrote it")
}

const kubeletAnnotation = "compatibility.karpenter.sh/v1beta1-kubelet-conversion"

// takeAnnotatedKubelet reads the kubelet configuration that the conversion of
// upstream 1.0 wrote to an annotation.
func (m *migration) takeAnnotatedKubelet(o *object) {
	annotations := at(o.root, "metadata", "annotations")
	claim := at(o.root, "spec", "template", "spec")
	v := at(annotations, kubeletAnnotation)
	if v == nil && o.version == "v1" {
		m.kubelet = append(m.kubelet, demand{pool: o, spec: claim})
	}
	if v != nil {
		var tree yaml.Node
		if json.Valid([]byte(v.Value)) && yaml.Unmarshal([]byte(v.Value), &tree) == nil && len(tree.Content) == 1 && tree.Content[0].Kind == yaml.MappingNode {
			config := tree.Content[0]
			blockify(config)
			plain(config)
			holder := mapping("kubelet", config)
			m.demandKubelet(o, claim, holder, "kubelet")
			o.dropAnnotation(kubeletAnnotation, "the EC2NodeClass has these settings now")
		} else {
			o.askAt(v, "annotation %s is not a JSON object: move its settings to spec.kubelet of the EC2NodeClass", kubeletAnnotation)
		}
	}
	if o.version == "v1" {
		o.dropCompatibility()
	}
}

// dropCompatibility removes annotations that only the conversion webhook of
// upstream 1.0 used.
func (o *object) dropCompatibility() {
	annotations := at(o.root, "metadata", "annotations")
	for _, name := range keys(annotations) {
		if name != kubeletAnnotation && (strings.HasPrefix(name, "compatibility.karpenter.sh/v1beta1-") || strings.HasPrefix(name, "compatibility.karpenter.k8s.aws/v1beta1-")) {
			o.dropAnnotation(name, "only the conversion from v1beta1 read it")
		}
	}
}
