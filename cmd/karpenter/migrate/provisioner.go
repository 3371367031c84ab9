// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// convertProvisioner converts a Provisioner to a NodePool.
func (m *migration) convertProvisioner(o *object) {
	o.become("karpenter.sh/v1", "NodePool")
	old := section(o.root, "spec")
	spec, metadata, claim, disruption := mapping(), mapping(), mapping(), mapping()
	move(old, "labels", metadata, "labels")
	move(old, "annotations", metadata, "annotations")
	template := mapping()
	if len(metadata.Content) > 0 {
		put(template, "metadata", metadata)
	}
	put(template, "spec", claim)
	put(spec, "template", template)

	o.requirements(old, claim, metadata)
	for _, field := range []string{"taints", "startupTaints"} {
		move(old, field, claim, field)
	}
	m.classOfProvisioner(o, old, claim)
	m.demandKubelet(o, claim, old, "kubeletConfiguration")
	o.expiry(old, claim)
	o.consolidation(old, disruption)
	put(spec, "disruption", disruption)
	if limits := at(old, "limits"); limits != nil {
		move(limits, "resources", spec, "limits")
		if limits.Kind == yaml.MappingNode && len(limits.Content) == 0 {
			take(old, "limits")
		}
	}
	move(old, "weight", spec, "weight")
	key, _ := find(o.root, "spec")
	for len(old.Content) > 0 {
		field := old.Content[0].Value
		o.drop(old, field, key, "spec."+field+" is not a field of a Provisioner, and was removed")
	}
	put(o.root, "spec", spec)
}

// classOfProvisioner writes the reference to the node class. An inline provider
// becomes a new node class.
func (m *migration) classOfProvisioner(o *object, old, claim *yaml.Node) {
	ref := mapping("group", str(awsGroup), "kind", str("EC2NodeClass"))
	key := put(claim, "nodeClassRef", ref)
	_, given := take(old, "providerRef")
	providerKey, provider := take(old, "provider")
	name := text(given, "name")
	switch {
	case name != "":
		put(ref, "name", str(name))
		if kind := text(given, "kind"); kind != "" && kind != "AWSNodeTemplate" {
			o.ask(key, "spec.providerRef.kind was %s, which is no node class of EC2: name the NodeClass", kind)
		}
	case provider != nil && provider.Kind == yaml.MappingNode:
		name = m.freeClassName(o.name)
		put(ref, "name", str(name))
		o.decide(key, "spec.provider is now the EC2NodeClass %s, which follows", name)
		m.addClass(o, name, provider, providerKey)
	default:
		put(ref, "name", str(placeholder))
		o.ask(key, "there was neither spec.providerRef nor spec.provider: name the EC2NodeClass")
	}
}

// freeClassName returns wish, with a number at its end if a node class already
// has that name.
func (m *migration) freeClassName(wish string) string {
	if wish == "" {
		wish = placeholder
	}
	name := wish
	for n := 2; m.classes[name] != nil; n++ {
		name = wish + "-" + strconv.Itoa(n)
	}
	return name
}

// addClass makes an EC2NodeClass from an inline provider and adds it after the
// provider's object.
func (m *migration) addClass(o *object, name string, spec, key *yaml.Node) {
	root := mapping("apiVersion", str("karpenter.k8s.aws/v1"), "kind", str("EC2NodeClass"),
		"metadata", mapping("name", str(name)), "spec", spec)
	root.Line = key.Line
	c := &object{doc: o.doc, root: root, group: awsGroup, version: "v1", kind: "EC2NodeClass", name: name, report: m.report}
	o.touch()
	o.decideSpecOf(c)
	c.templateSpec(spec, m.options)
	m.addObject(o, c)
}

// decideSpecOf writes a comment into a new class that says which object it was
// made for.
func (o *object) decideSpecOf(c *object) {
	comment(c.root.Content[0], decisionMark+"made of spec.provider of "+o.String())
	c.changed = true
}

// addObject adds a new object after the one it was made for: to the same List,
// or as a document of its own.
func (m *migration) addObject(beside, made *object) {
	m.classes[made.name] = made
	m.objects = append(m.objects, made)
	root := beside.doc.tree.Content[0]
	if items := at(root, "items"); items != nil {
		if i := slices.Index(items.Content, beside.root); i >= 0 {
			items.Content = slices.Insert(items.Content, i+1, made.root)
			return
		}
	}
	beside.doc.added = append(beside.doc.added, made.root)
}

// requirements moves the requirements, and writes those that used to be
// defaults.
func (o *object) requirements(old, claim, metadata *yaml.Node) {
	if !move(old, "requirements", claim, "requirements") {
		take(old, "requirements")
		put(claim, "requirements", list())
	}
	key, requirements := find(claim, "requirements")
	if requirements.Kind != yaml.SequenceNode {
		o.askAt(key, "spec.requirements: want a list")
		return
	}
	said := map[string]bool{}
	for _, label := range keys(at(metadata, "labels")) {
		said[label] = true
	}
	for _, r := range requirements.Content {
		said[text(r, "key")] = true
	}
	o.dropInstancePods(key, requirements)
	var implied []string
	imply := func(key, operator string, values ...string) {
		v := list()
		v.Style = yaml.FlowStyle
		for _, value := range values {
			n := str(value)
			n.Style = yaml.DoubleQuotedStyle
			v.Content = append(v.Content, n)
		}
		requirements.Content = append(requirements.Content, mapping("key", str(key), "operator", str(operator), "values", v))
		implied = append(implied, key)
	}
	if !said["karpenter.sh/capacity-type"] {
		imply("karpenter.sh/capacity-type", "In", "on-demand")
	}
	if !said["kubernetes.io/os"] && !said["beta.kubernetes.io/os"] {
		imply("kubernetes.io/os", "In", "linux")
	}
	if !said["kubernetes.io/arch"] && !said["beta.kubernetes.io/arch"] {
		imply("kubernetes.io/arch", "In", "amd64")
	}
	// A pool with any requirement on types did not get the default.
	if !said["node.kubernetes.io/instance-type"] && !said["beta.kubernetes.io/instance-type"] && !said["karpenter.k8s.aws/instance-family"] &&
		!said["karpenter.k8s.aws/instance-category"] && !said["karpenter.k8s.aws/instance-generation"] {
		imply("karpenter.k8s.aws/instance-category", "In", "c", "m", "r")
		imply("karpenter.k8s.aws/instance-generation", "Gt", "2")
	}
	if len(implied) > 0 {
		requirements.Style = 0
		o.decide(key, "these were defaults and are written out now: %s", strings.Join(implied, ", "))
	}
}

// dropInstancePods removes requirements on a label that nodes no longer have.
func (o *object) dropInstancePods(key, requirements *yaml.Node) {
	requirements.Content = slices.DeleteFunc(requirements.Content, func(r *yaml.Node) bool {
		gone := text(r, "key") == instancePods
		if gone {
			o.record(key, r.Line, true, "nodes no longer have the label "+instancePods+"; demand instance types, sizes or CPUs instead; it was:\n"+asComment(list(clone(r))))
		}
		return gone
	})
}

// expiry converts the settings for when nodes expire.
func (o *object) expiry(old, claim *yaml.Node) {
	ttl := at(old, "ttlSecondsUntilExpired")
	if ttl == nil || ttl.Tag == "!!null" {
		take(old, "ttlSecondsUntilExpired")
		key := put(claim, "expireAfter", str("Never"))
		o.decide(key, "nodes did not expire; without this line they would after 720h")
		return
	}
	if !isSeconds(ttl) {
		key := put(claim, "expireAfter", str("Never"))
		o.drop(old, "ttlSecondsUntilExpired", key, "spec.ttlSecondsUntilExpired is not a number of seconds: write when nodes expire")
		return
	}
	move(old, "ttlSecondsUntilExpired", claim, "expireAfter")
	key, _ := find(claim, "expireAfter")
	put(claim, "expireAfter", str(ttl.Value+"s"))
	o.decide(key, "was spec.ttlSecondsUntilExpired: %s; an expired node is now drained at once, and budgets do not delay that", ttl.Value)
}

func isSeconds(n *yaml.Node) bool {
	_, err := strconv.ParseUint(n.Value, 10, 32)
	return err == nil && n.Kind == yaml.ScalarNode
}

// consolidation converts the settings for when empty and underutilized nodes
// are removed.
func (o *object) consolidation(old, disruption *yaml.Node) {
	enabled := text(old, "consolidation", "enabled") == "true"
	ttlKey, ttl := find(old, "ttlSecondsAfterEmpty")
	take(old, "consolidation")
	if ttl != nil && ttl.Tag == "!!null" {
		take(old, "ttlSecondsAfterEmpty")
		ttl = nil
	}
	switch {
	case enabled:
		key := put(disruption, "consolidationPolicy", str("WhenEmptyOrUnderutilized"))
		put(disruption, "consolidateAfter", str("0s"))
		o.decide(key, "was spec.consolidation.enabled")
		if ttl != nil {
			take(old, "ttlSecondsAfterEmpty")
			o.record(key, ttlKey.Line, true, "spec.ttlSecondsAfterEmpty was set, too, which excludes consolidation: it was removed; set consolidationPolicy WhenEmpty if only empty nodes are to be removed")
		}
	case ttl != nil && isSeconds(ttl):
		take(old, "ttlSecondsAfterEmpty")
		ttlKey.Value = "consolidationPolicy"
		disruption.Content = append(disruption.Content, ttlKey, str("WhenEmpty"))
		put(disruption, "consolidateAfter", str(ttl.Value+"s"))
		o.decide(ttlKey, "was spec.ttlSecondsAfterEmpty: %s", ttl.Value)
	case ttl != nil:
		key := put(disruption, "consolidateAfter", str("Never"))
		o.drop(old, "ttlSecondsAfterEmpty", key, "spec.ttlSecondsAfterEmpty is not a number of seconds: write when to remove empty nodes")
	default:
		key := put(disruption, "consolidateAfter", str("Never"))
		o.decide(key, "there was neither spec.consolidation nor spec.ttlSecondsAfterEmpty: no node is removed to save money")
	}
}

// convertMachine converts a Machine to a NodeClaim.
func (m *migration) convertMachine(o *object) {
	o.become("karpenter.sh/v1", "NodeClaim")
	spec := section(o.root, "spec")
	metadata := section(o.root, "metadata")
	for _, field := range []string{"labels", "annotations"} {
		if !has(metadata, field) {
			take(metadata, field)
			move(spec, field, metadata, field)
		}
	}
	if !has(spec, "requirements") {
		put(spec, "requirements", list())
	}
	name := text(spec, "machineTemplateRef", "name")
	take(spec, "machineTemplateRef")
	m.finishClaim(o, spec, "kubelet", name)
}
