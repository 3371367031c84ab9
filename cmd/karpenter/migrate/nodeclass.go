// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// convertTemplate converts an AWSNodeTemplate to an EC2NodeClass.
func (m *migration) convertTemplate(o *object) {
	o.become("karpenter.k8s.aws/v1", "EC2NodeClass")
	o.templateSpec(section(o.root, "spec"), m.options)
}

// convertBetaClass converts an EC2NodeClass from v1beta1 to v1.
func (m *migration) convertBetaClass(o *object) {
	o.become("karpenter.k8s.aws/v1", "EC2NodeClass")
	o.classSpec(section(o.root, "spec"), m.options)
}

// templateSpec converts the fields of an AWSNodeTemplate or of an inline
// provider.
func (o *object) templateSpec(spec *yaml.Node, options Options) {
	key, _ := find(o.root, "spec")
	take(spec, "apiVersion")
	take(spec, "kind")
	launchTemplate := text(spec, "launchTemplate")
	if launchTemplate != "" {
		o.drop(spec, "launchTemplate", key, "launch templates are not supported: write the image, security groups, instance profile, user data and disks that it had into this class")
		putMissing(spec, "amiFamily", str("Custom"))
		putMissing(spec, "amiSelectorTerms", list(mapping("name", str(placeholder))))
	}
	take(spec, "launchTemplate")
	for _, kind := range []string{"subnet", "securityGroup", "ami"} {
		o.selector(spec, kind)
	}
	known := []string{"amiFamily", "amiSelectorTerms", "subnetSelectorTerms", "securityGroupSelectorTerms", "instanceProfile", "tags",
		"userData", "blockDeviceMappings", "metadataOptions", "context", "detailedMonitoring", "associatePublicIPAddress"}
	for _, field := range keys(spec) {
		if !slices.Contains(known, field) {
			o.drop(spec, field, key, "spec."+field+" is not a field of an AWSNodeTemplate, and was removed")
		}
	}
	o.classSpec(spec, options)
}

func putMissing(m *yaml.Node, key string, v *yaml.Node) {
	if !has(m, key) {
		put(m, key, v)
	}
}

// classSpec does the part of the conversion that all older node classes share.
func (o *object) classSpec(spec *yaml.Node, options Options) {
	o.images(spec)
	if !has(spec, "subnetSelectorTerms") {
		o.ask(put(spec, "subnetSelectorTerms", list(mapping("tags", mapping("Name", str(placeholder))))), "there was none: name the subnets")
	}
	if !has(spec, "securityGroupSelectorTerms") {
		o.ask(put(spec, "securityGroupSelectorTerms", list(mapping("name", str(placeholder)))), "there was none: name the security groups")
	}
	o.identity(spec, options)
	o.metadataService(spec)
	o.restrictedTags(at(spec, "tags"))
}

// images writes amiSelectorTerms for classes whose amiFamily used to imply
// them.
func (o *object) images(spec *yaml.Node) {
	key, value := find(spec, "amiFamily")
	family := text(spec, "amiFamily")
	if family == "" {
		family = "AL2"
	}
	terms := at(spec, "amiSelectorTerms")
	selected := terms != nil && len(terms.Content) > 0
	if !selected {
		take(spec, "amiSelectorTerms")
	}
	switch {
	case family == "Ubuntu":
		o.ubuntu(spec, key, value, selected)
	case selected && key == nil:
		o.decide(putFirst(spec, "amiFamily", str(family)), "was the default")
	case selected:
	case family == "Custom":
		o.ask(put(spec, "amiSelectorTerms", list(mapping("name", str(placeholder)))), "the family Custom implies no image: name one")
	default:
		k := str("amiSelectorTerms")
		v := list(mapping("alias", str(strings.ToLower(family)+"@latest")))
		i := 0
		if key != nil {
			i = slices.Index(spec.Content, key) + 2
		}
		spec.Content = slices.Insert(spec.Content, i, k, v)
		message := "was the default. New images replace nodes, within budgets; name a version to decide when"
		if family == "AL2" {
			message += ". There are no AL2 images for Kubernetes 1.33 and later"
		}
		o.decide(k, "%s", message)
	}
}

// ubuntu keeps the nodes of an Ubuntu class booting as before: Ubuntu's images
// read the user data of AL2, but have another root device.
func (o *object) ubuntu(spec, key, family *yaml.Node, selected bool) {
	family.Value = "AL2"
	o.decide(key, "was Ubuntu, whose images boot as those of AL2 do")
	if !selected {
		take(spec, "amiSelectorTerms")
		k := put(spec, "amiSelectorTerms", list(mapping("name", str(placeholder))))
		o.ask(k, "the family Ubuntu implied images of Canonical: write their name (ubuntu-eks/k8s_VERSION/images/*) and owner (099720109477), or an id")
	}
	if !has(spec, "blockDeviceMappings") {
		take(spec, "blockDeviceMappings")
		k := put(spec, "blockDeviceMappings", list(mapping("deviceName", str("/dev/sda1"), "rootVolume", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "true"},
			"ebs", mapping("encrypted", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "true"}, "volumeSize", str("20Gi"), "volumeType", str("gp3")))))
		o.decide(k, "the disk of the family Ubuntu; AL2 would have another")
	}
}

// identity makes sure that the class has either a role or an instance profile.
func (o *object) identity(spec *yaml.Node, options Options) {
	if has(spec, "role") || has(spec, "instanceProfile") {
		return
	}
	take(spec, "role")
	take(spec, "instanceProfile")
	switch {
	case options.Role != "":
		o.decide(put(spec, "role", str(options.Role)), "given by --role; settings of the controller used to name the instance profile")
	case options.InstanceProfile != "":
		o.decide(put(spec, "instanceProfile", str(options.InstanceProfile)), "given by --instance-profile; settings of the controller used to name it")
	default:
		o.ask(put(spec, "role", str(placeholder)), "settings of the controller used to name the instance profile: write the role of the nodes, or replace the field with instanceProfile")
	}
}

// metadataService keeps the access of pods to the instance metadata service, if
// they had it.
func (o *object) metadataService(spec *yaml.Node) {
	const field = "httpPutResponseHopLimit"
	options := at(spec, "metadataOptions")
	if has(options, field) || options != nil && options.Kind != yaml.MappingNode && options.Tag != "!!null" {
		return
	}
	if options == nil || options.Kind != yaml.MappingNode {
		options = mapping()
		put(spec, "metadataOptions", options)
	}
	take(options, field)
	options.Style = 0
	o.decide(put(options, field, integer(2)), "the old default, now written out; the new default, 1, keeps pods from the credentials of their node")
}

// restrictedTags removes tags that Karpenter writes itself and that the schema
// rejects.
func (o *object) restrictedTags(tags *yaml.Node) {
	for _, tag := range keys(tags) {
		if strings.HasPrefix(tag, "kubernetes.io/cluster") || slices.Contains([]string{"karpenter.sh/nodepool", "karpenter.sh/nodeclaim",
			"karpenter.k8s.aws/ec2nodeclass", "eks:eks-cluster-name", "karpenter.sh/provisioner-name"}, tag) {
			take(tags, tag)
			key, _ := find(at(o.root, "spec"), "tags")
			o.decide(key, "tag %s removed: Karpenter sets this tag itself", tag)
		}
	}
}
