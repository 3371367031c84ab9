// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"errors"
	"strings"

	"sigs.k8s.io/yaml"

	"karpenter/api/aws/kubelet"
	awsv1 "karpenter/api/aws/v1"
	v1 "karpenter/api/v1"
)

// check reports what the API server and the controller would find fault with, all
// of it at once.
func (o *object) check(s schemas) {
	content, err := render(clone(o.root), style{indent: 2})
	if err != nil || strings.Contains(content, "${") || o.version != "v1" && !o.changed {
		return // not ours to judge before it is filled in, or converted
	}
	kind := at(o.root, "kind").Value
	schema, err := s.of(kind)
	if err == nil && schema != nil {
		var faults []string
		faults, err = schema.faults(content)
		for _, fault := range faults {
			o.askAt(o.root, "the API server would reject it: %s", strings.ReplaceAll(fault, "\n", " "))
		}
	}
	if err != nil {
		o.askAt(o.root, "it cannot be checked: %s", err)
	}
	for _, fault := range faults(kind, content) {
		o.askAt(o.root, "Karpenter would reject it: %s", strings.ReplaceAll(fault, "\n", "; "))
	}
	o.nodeClass()
	o.implied(kind)
}

// faults returns what the controller would refuse beyond the schema. What does not
// fit the types is the schema's to report.
func faults(kind, content string) []string {
	var err error
	switch kind {
	case "NodePool":
		var pool v1.NodePool
		if yaml.Unmarshal([]byte(content), &pool) == nil {
			err = v1.ValidateNodePool(&pool, v1.DefaultLabels().With(awsv1.Labels()))
		}
	case "EC2NodeClass":
		var class awsv1.EC2NodeClass
		if yaml.Unmarshal([]byte(content), &class) == nil {
			err = errors.Join(awsv1.ValidateTags(class.Spec.Tags), kubelet.Check(class.Spec.Kubelet), kubelet.Supported(class.Spec.Kubelet, class.AMIFamily()))
		}
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var out []string
		for _, e := range joined.Unwrap() {
			out = append(out, e.Error())
		}
		return out
	}
	if err != nil {
		return []string{err.Error()}
	}
	return nil
}

// nodeClass reports a reference whose group is not that of its kind.
func (o *object) nodeClass() {
	ref := at(o.root, "spec", "template", "spec", "nodeClassRef")
	if o.kind == "NodeClaim" {
		ref = at(o.root, "spec", "nodeClassRef")
	}
	group := at(ref, "group")
	if group == nil {
		return
	}
	want := map[string]string{"EC2NodeClass": awsGroup, "KWOKNodeClass": "karpenter.kwok.sh"}[text(ref, "kind")]
	if want != "" && group.Value != want {
		o.askAt(group, "nodeClassRef.group: %q: the group of %s is %s", group.Value, text(ref, "kind"), want)
	}
}

// implied reports what is not written, holds all the same, and surprises.
func (o *object) implied(kind string) {
	if o.changed && kind == "NodePool" && o.kind == "Provisioner" {
		return // its conversion writes down what was implied
	}
	if kind == "NodePool" && !has(at(o.root, "spec", "template", "spec"), "expireAfter") {
		o.enter(o.root.Line, "expireAfter is not set, so the default of 720h applies, and budgets do not delay the drain of an expired node; set Never or a duration", false)
	}
	if kind != "EC2NodeClass" {
		return
	}
	if content, err := render(clone(o.root), style{indent: 2}); err == nil {
		var class awsv1.EC2NodeClass
		if yaml.Unmarshal([]byte(content), &class) == nil && class.AMIFamily() == awsv1.AMIFamilyAL2 {
			o.enter(o.root.Line, "Amazon Linux 2 has no images for Kubernetes 1.33 and later: change to AL2023 before you upgrade the cluster", false)
		}
	}
}
