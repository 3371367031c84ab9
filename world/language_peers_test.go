// SPDX-License-Identifier: Apache-2.0

package world_test

import (
	"fmt"
	"strconv"
	"strings"

	"karpenter/model"
)

// namespace is default where a pod's line does not say ns=.
func (o options) namespace() string {
	if o.has("ns") {
		return o["ns"]
	}
	return "default"
}

// selector reads "app:web", "app" for any pod that has the label and "any",
// with of=NAMESPACE, of=every or of=team:x.
func (o options) selector(text string) model.PodSelector {
	out := model.PodSelector{Namespaces: []string{o.namespace()}, Labels: demand(text)}
	if text == "any" {
		out.Labels = nil
	}
	switch {
	case o["of"] == "every":
		out.Namespaces, out.ByNamespace = nil, true
	case strings.Contains(o["of"], ":"):
		out.Namespaces, out.ByNamespace, out.NamespaceLabels = nil, true, demand(o["of"])
	case o["of"] != "":
		out.Namespaces = []string{o["of"]}
	}
	return out
}

func demand(text string) model.Requirements {
	if key, value, ok := strings.Cut(text, ":"); ok {
		return model.NewRequirements(model.NewRequirement(key, model.In, value))
	}
	return model.NewRequirements(model.NewRequirement(text, model.Exists))
}

// shape reads what a pod asks for: spread=, near=, anti=, softly-anti= a
// selector, port= and name= of the node it wants.
func (o options) shape(cpu int64) *model.Shape {
	s := &model.Shape{Key: "cpu=" + strconv.FormatInt(cpu, 10), Requests: model.Resources{}.With(model.CPU, cpu).With(model.Pods, 1)}
	for _, key := range []string{"spread", "near", "anti", "softly-anti", "port", "name"} {
		if o.has(key) {
			s.Key += " " + key + "=" + o[key] + " of " + o["of"]
		}
	}
	if o.has("spread") {
		s.Spread = []model.Spread{{Key: model.LabelZone, MaxSkew: 1, Select: o.selector(o["spread"])}}
	}
	for key, t := range map[string]model.PodTerm{"near": {}, "anti": {Anti: true}, "softly-anti": {Anti: true, Weight: 1}} {
		if o.has(key) {
			t.Key, t.Select = model.LabelZone, o.selector(o[key])
			s.PodTerms = append(s.PodTerms, t)
		}
	}
	if o.has("port") {
		s.HostPorts = []model.HostPort{{IP: "0.0.0.0", Protocol: "TCP", Port: int32(o.number("port", 0))}}
	}
	if o.has("name") {
		s.Terms = []model.Requirements{{model.NewRequirement(model.FieldName, model.In, o["name"])}}
	}
	return s
}

// showPeers writes pending pods as others see them, and what is known of pods
// on nodes.
func showPeers(out *strings.Builder, s *model.Snapshot) {
	for _, p := range s.Pending {
		var names []string
		for _, pod := range p.Pods {
			names = append(names, pod.Name)
		}
		fmt.Fprintf(out, "pending %s%s\n", strings.Join(names, " "), seen(p.Peer))
	}
	for _, n := range s.Nodes {
		fmt.Fprintf(out, "%s:", n.Name)
		for _, r := range n.Residents {
			fmt.Fprintf(out, " %d%s", r.Count, seen(r.Peer))
			for _, t := range r.Anti {
				fmt.Fprintf(out, " anti[%s]", t.Select.Labels)
			}
			if r.Terminating {
				out.WriteString(" terminating")
			}
			out.WriteString(";")
		}
		for _, p := range n.HostPorts {
			fmt.Fprintf(out, " port %d", p.Port)
		}
		if _, named := n.Labels.Get(model.FieldName); named {
			out.WriteString(" named")
		}
		out.WriteString("\n")
	}
}

func seen(p model.Peer) string {
	if p.Namespace == "" {
		return ""
	}
	out := " in " + p.Namespace
	for _, l := range p.NamespaceLabels {
		out += "(" + l.Key + "=" + l.Value + ")"
	}
	for _, l := range p.Labels {
		out += " " + l.Key + "=" + l.Value
	}
	return out
}
