// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"karpenter/api/aws/kubelet"
	awsv1 "karpenter/api/aws/v1"
	v1 "karpenter/api/v1"
)

// check reports everything that the API server or the controller would reject.
func (o *object) check(s schemas) {
	content, err := render(clone(o.root), style{indent: 2})
	if err != nil || o.version != "v1" && !o.changed {
		return // checked after it is converted
	}
	if strings.Contains(content, "${") {
		o.enter(o.root.Line, "not checked: it has placeholders such as ${NAME}; fill them in and run migrate --check again", false)
		return
	}
	if o.name == "" && text(o.root, "metadata", "generateName") == "" {
		o.askAt(o.root, "metadata.name: there is none")
	}
	kind := at(o.root, "kind").Value
	var schemaFaults []string
	schema, err := s.of(kind)
	if err == nil && schema != nil {
		schemaFaults, err = schema.faults(content)
		for _, fault := range schemaFaults {
			o.askAt(o.root, "the API server would reject it: %s", strings.ReplaceAll(fault, "\n", " "))
		}
	}
	if err != nil {
		o.askAt(o.root, "it cannot be checked: %s", err)
	}
	for _, fault := range faults(kind, content) {
		fault, _, _ = strings.Cut(fault, "; use another domain or one of its well-known keys [")
		where, _, _ := strings.Cut(fault, ": ")
		if slices.ContainsFunc(schemaFaults, func(known string) bool { return strings.HasPrefix(known, where) }) {
			continue // already reported
		}
		o.askAt(o.root, "Karpenter would reject it: %s", strings.ReplaceAll(fault, "\n", "; "))
	}
	o.nodeClass()
	o.implied(kind)
}

// faults returns what the controller would reject although the schema allows
// it. Values of the wrong type are reported by the schema.
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
			err = errors.Join(named("role", class.Spec.Role), named("instanceProfile", ptr.Deref(class.Spec.InstanceProfile, "")), awsv1.ValidateTags(class.Spec.Tags), kubelet.Check(class.Spec.Kubelet), kubelet.Supported(class.Spec.Kubelet, class.AMIFamily()))
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

// named returns an error for a field that holds an ARN, where AWS wants a name.
func named(field, value string) error {
	if !strings.HasPrefix(value, "arn:") {
		return nil
	}
	return fmt.Errorf("spec.%s: %q is an ARN; write the name, %s", field, value, lastPart(value))
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

// implied reports defaults that the manifest does not mention and that may
// surprise.
func (o *object) implied(kind string) {
	if o.changed && kind == "NodePool" && o.kind == "Provisioner" {
		return // its conversion writes the defaults into the manifest
	}
	if kind == "NodePool" && !has(at(o.root, "spec", "template", "spec"), "expireAfter") {
		o.enter(o.root.Line, "expireAfter is not set, so the default of 720h applies: a node of that age is drained at once, and budgets do not delay that; set Never or an age", false)
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
