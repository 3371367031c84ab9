// SPDX-License-Identifier: Apache-2.0

package controltest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "karpenter/api/aws/v1"
	v1 "karpenter/api/v1"
	"karpenter/api/v1alpha1"
	"karpenter/cloud/cloudtest"
)

// state is all there is to see, as sorted facts: a place and what is there.
type state struct {
	facts map[string]string
	calls []string // of the cloud
}

// state looks at the cluster.
func (c *Cluster) state() state {
	s := state{facts: map[string]string{}}
	for _, list := range []client.ObjectList{&v1.NodeClaimList{}, &corev1.NodeList{}, &v1.NodePoolList{}, &v1alpha1.NodeOverlayList{}, &awsv1.EC2NodeClassList{}} {
		if err := c.Client.List(context.Background(), list); err != nil {
			panic(err)
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			panic(err)
		}
		for _, o := range items {
			object := o.(client.Object)
			s.facts[nameOf(object)] = ""
			for place, what := range c.facts(object) {
				s.facts[nameOf(object)+" "+place] = what
			}
		}
	}
	for _, method := range []cloudtest.Method{cloudtest.Create, cloudtest.Delete} {
		for _, claim := range c.Cloud.Calls(method) {
			s.calls = append(s.calls, strings.TrimSpace(fmt.Sprintf("cloud %s %s %s", method, claim.Name, claim.Status.ProviderID)))
		}
	}
	slices.Sort(s.calls)
	c.addMetrics(s.facts)
	return s
}

// changes tells what is different afterwards.
func (s state) changes(after state) []string {
	var out []string
	counts := map[string]int{}
	for _, call := range s.calls {
		counts[call]--
	}
	for _, call := range after.calls {
		if counts[call]++; counts[call] > 0 {
			out = append(out, call)
		}
	}
	places := maps.Clone(s.facts)
	maps.Copy(places, after.facts)
	for _, place := range slices.Sorted(maps.Keys(places)) {
		old, had := s.facts[place]
		now, has := after.facts[place]
		object, _, detail := strings.Cut(place, " ")
		_, remains := after.facts[object]
		switch {
		case had && has && old == now, !has && detail && !remains:
		case !has && !detail:
			out = append(out, place+" is gone")
		case !has:
			out = append(out, fmt.Sprintf("%s: %s -> none", place, old))
		case now == "":
			out = append(out, place+" is new")
		default:
			out = append(out, fmt.Sprintf("%s: %s", place, now))
		}
	}
	return out
}

// show tells everything of one object, or what begins with one of the
// prefixes.
func (c *Cluster) show(line, ref string, prefixes []string) (string, error) {
	object, err := c.get(ref)
	if client.IgnoreNotFound(err) != nil {
		return "", err
	}
	var out strings.Builder
	fmt.Fprintln(&out, line)
	if err != nil {
		fmt.Fprintln(&out, "  does not exist")
		return out.String(), nil
	}
	facts := c.facts(object)
	for _, place := range slices.Sorted(maps.Keys(facts)) {
		wanted := func(prefix string) bool { return strings.HasPrefix(place, prefix) }
		if len(prefixes) == 0 || slices.ContainsFunc(prefixes, wanted) {
			fmt.Fprintf(&out, "  %s: %s\n", place, facts[place])
		}
	}
	return out.String(), nil
}

// facts returns what an object says, by path. Times are counted from the
// start of the case.
func (c *Cluster) facts(object client.Object) map[string]string {
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	var tree map[string]any
	if err := json.Unmarshal(text, &tree); err != nil {
		panic(err)
	}
	metadata := tree["metadata"].(map[string]any)
	for _, noise := range []string{"name", "namespace", "uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"} {
		delete(metadata, noise)
	}
	if status, ok := tree["status"].(map[string]any); ok {
		delete(status, "daemonEndpoints")
	}
	facts := map[string]string{}
	if at := object.GetDeletionTimestamp(); at != nil {
		delete(metadata, "deletionTimestamp")
		facts["deleting"] = "since " + c.since(at.Time)
	}
	for _, part := range []string{"metadata", "spec", "status"} {
		c.flatten(facts, strings.TrimPrefix(part, "metadata"), tree[part], object.GetGeneration())
	}
	return facts
}

func (c *Cluster) since(t time.Time) string { return t.Sub(c.start).String() }

func (c *Cluster) flatten(facts map[string]string, path string, value any, generation int64) {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			c.flatten(facts, strings.TrimPrefix(path+"."+key, "."), inner, generation)
		}
	case []any:
		if path == "status.conditions" {
			for _, one := range v {
				c.conditionFact(facts, one.(map[string]any), generation)
			}
			return
		}
		texts := make([]string, len(v))
		for i, one := range v {
			texts[i] = inline(one)
		}
		facts[path] = strings.Join(texts, ", ")
	case nil:
	default:
		facts[path] = fmt.Sprint(v)
	}
	if facts[path] == "" {
		delete(facts, path)
	}
}

func (c *Cluster) conditionFact(facts map[string]string, condition map[string]any, generation int64) {
	text := fmt.Sprint(condition["status"])
	if reason, ok := condition["reason"].(string); ok && reason != condition["type"] {
		text += " " + reason
	}
	if at, err := time.Parse(time.RFC3339, fmt.Sprint(condition["lastTransitionTime"])); err == nil {
		text += " since " + c.since(at)
	}
	if observed, ok := condition["observedGeneration"].(float64); ok && int64(observed) != generation {
		text += " outdated"
	}
	if message, ok := condition["message"].(string); ok && message != "" {
		text += ": " + message
	}
	facts[fmt.Sprintf("[%s]", condition["type"])] = text
}

// inline prints a member of a list: taints as people write them, the rest as
// JSON.
func inline(value any) string {
	m, ok := value.(map[string]any)
	if !ok {
		return fmt.Sprint(value)
	}
	if effect, ok := m["effect"]; ok {
		if v, ok := m["value"]; ok {
			return fmt.Sprintf("%s=%s:%s", m["key"], v, effect)
		}
		return fmt.Sprintf("%s:%s", m["key"], effect)
	}
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return strings.ReplaceAll(string(text), `"`, "")
}

// addMetrics adds the counters, and the count and sum of histograms.
func (c *Cluster) addMetrics(facts map[string]string) {
	families, err := c.Registry.Gather()
	if err != nil {
		panic(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			place := "metric " + strings.TrimPrefix(family.GetName(), "karpenter_") + labelText(m.GetLabel())
			if h := m.GetHistogram(); h != nil {
				facts[place] = fmt.Sprintf("%d of %gs together", h.GetSampleCount(), h.GetSampleSum())
				continue
			}
			if v := m.GetCounter().GetValue(); v != 0 {
				facts[place] = fmt.Sprint(v)
			}
		}
	}
}

func labelText(labels []*dto.LabelPair) string {
	var texts []string
	for _, l := range labels {
		if l.GetValue() != "" {
			texts = append(texts, l.GetName()+"="+l.GetValue())
		}
	}
	return "{" + strings.Join(texts, ",") + "}"
}

// nameOf returns the reference of an object as scripts write it.
func nameOf(o client.Object) string {
	kind := strings.ToLower(reflect.TypeOf(o).Elem().Name())
	switch kind {
	case "nodeclaim":
		kind = "claim"
	case "nodepool":
		kind = "pool"
	case "nodeoverlay":
		kind = "overlay"
	case "ec2nodeclass":
		kind = "ec2class"
	case "kwoknodeclass":
		kind = "class"
	case "poddisruptionbudget":
		kind = "pdb"
	}
	return kind + "/" + o.GetName()
}
