// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// successors maps the older names of resources, with their groups, to the
// current ones.
func successors() map[string]string {
	return map[string]string{
		"provisioners":     "nodepools of karpenter.sh",
		"machines":         "nodeclaims of karpenter.sh",
		"awsnodetemplates": "ec2nodeclasses of karpenter.k8s.aws",
	}
}

// olderValues maps the values below settings.aws of charts before 1.0 to those
// that replace them.
func olderValues() map[string]string {
	const node = "in the node class now: "
	return map[string]string{
		"clusterName":                "settings.clusterName now",
		"clusterEndpoint":            "settings.clusterEndpoint now",
		"clusterCABundle":            "settings.clusterCABundle now",
		"interruptionQueueName":      "settings.interruptionQueue now",
		"vmMemoryOverheadPercent":    "settings.vmMemoryOverheadPercent now",
		"isolatedVPC":                "settings.isolatedVPC now",
		"reservedENIs":               "settings.reservedENIs now",
		"defaultInstanceProfile":     node + "spec.role or spec.instanceProfile of each EC2NodeClass",
		"tags":                       node + "spec.tags of each EC2NodeClass",
		"enablePodENI":               "removed: network interfaces of pods are always counted",
		"enableENILimitedPodDensity": node + "spec.kubelet.maxPods of an EC2NodeClass",
		"nodeNameConvention":         "removed: nodes have the names that their kubelets register",
	}
}

const acceleratorName = "karpenter.k8s.aws/instance-accelerator-name"

// stale reports objects that mention older APIs and that this package does not
// change: RBAC rules, policies about kinds, and values of charts.
func (o *object) stale() {
	if o.ours() {
		o.accelerators(o.root)
		return
	}
	o.rules(o.root)
	if text(o.root, "kind") == "" && text(o.root, "apiVersion") == "" {
		o.oldest(o.root)
		o.values(o.root)
		return
	}
	o.kinds(o.root)
}

// rules checks the RBAC rules anywhere below n.
func (o *object) rules(n *yaml.Node) {
	groups, resources := at(n, "apiGroups"), at(n, "resources")
	if groups != nil && resources != nil && slices.ContainsFunc(groups.Content, func(g *yaml.Node) bool {
		return g.Value == coreGroup || g.Value == awsGroup || g.Value == "karpenter.*"
	}) {
		for _, r := range resources.Content {
			name, sub, _ := strings.Cut(r.Value, "/")
			if to, old := successors()[name]; old {
				if sub != "" {
					to = strings.Replace(to, " ", "/"+sub+" ", 1)
				}
				o.askAt(r, "a rule names %s: %s replace them; grant the same verbs on those", r.Value, to)
			}
		}
	}
	for _, child := range n.Content {
		o.rules(child)
	}
}

// kinds looks for older kinds in the fields with which policies and tools name
// kinds.
func (o *object) kinds(n *yaml.Node) {
	if n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			k, v := n.Content[i], n.Content[i+1]
			if k.Value != "kind" && k.Value != "kinds" {
				continue
			}
			for _, named := range append(slices.Clone(v.Content), v) {
				if to, old := map[string]string{"Provisioner": "NodePool", "AWSNodeTemplate": "EC2NodeClass"}[lastPart(named.Value)]; old {
					o.askAt(named, "the kind %s no longer exists: %s takes its place", named.Value, to)
				}
			}
		}
	}
	for _, child := range n.Content {
		o.kinds(child)
	}
}

// lastPart returns the kind of a name such as karpenter.sh/v1alpha5/Provisioner.
func lastPart(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// values checks the values of a chart: of Karpenter's own chart, or of one that
// creates its objects.
func (o *object) values(n *yaml.Node) {
	if n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			k, v := n.Content[i], n.Content[i+1]
			if to, old := map[string]string{"provisioners": "NodePools", "awsnodetemplates": "EC2NodeClasses"}[strings.ToLower(k.Value)]; old {
				o.askAt(k, "the value %s is for a chart that makes objects of older APIs: let it make %s", k.Value, to)
			}
			if k.Value == "settings" {
				o.settings(at(v, "aws"))
				if queue, _ := find(v, "interruptionQueueName"); queue != nil {
					o.askAt(queue, "the value settings.interruptionQueueName is settings.interruptionQueue now")
				}
			}
		}
	}
	for _, child := range n.Content {
		o.values(child)
	}
}

// oldest checks the values of charts up to 0.13, which are top-level keys.
func (o *object) oldest(n *yaml.Node) {
	if name := at(n, "aws", "defaultInstanceProfile"); name != nil {
		o.askAt(name, "the value aws.defaultInstanceProfile is %s", olderValues()["defaultInstanceProfile"])
	} else if at(n, "clusterEndpoint") == nil {
		return
	}
	if level := at(n, "controller", "logLevel"); level != nil {
		o.askAt(level, "the value controller.logLevel is logLevel now")
	}
	for _, key := range []string{"clusterName", "clusterEndpoint"} {
		if v := at(n, key); v != nil && v.Kind == yaml.ScalarNode {
			o.askAt(v, "the value %s is %s", key, olderValues()[key])
		}
	}
}

func (o *object) settings(older *yaml.Node) {
	for i := 0; older != nil && i+1 < len(older.Content); i += 2 {
		k := older.Content[i]
		if to, known := olderValues()[k.Value]; known {
			o.askAt(k, "the value settings.aws.%s is %s", k.Value, to)
		} else {
			o.askAt(k, "the value settings.aws.%s is not known; settings.aws was removed", k.Value)
		}
	}
}

// accelerators asks a person to check the names of accelerators, which have
// changed since older versions.
func (o *object) accelerators(n *yaml.Node) {
	if o.version == "v1" {
		return
	}
	var named []*yaml.Node
	if text(n, "key") == acceleratorName {
		if values := at(n, "values"); values != nil {
			named = values.Content
		}
	} else if v := at(n, acceleratorName); v != nil {
		named = []*yaml.Node{v}
	}
	for _, v := range named {
		o.askAt(v, "%s %s: names of accelerators have changed since: they are inferentia (inf1), inferentia2 (inf2) and trainium (trn1)", lastPart(acceleratorName), v.Value)
	}
	for _, child := range n.Content {
		o.accelerators(child)
	}
}
