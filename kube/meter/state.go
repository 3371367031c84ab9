// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/model"
)

// state publishes one series for each pod. It has no state: each scrape reads
// the cache.
type state struct {
	reader client.Reader
	leads  func() bool
	desc   *prometheus.Desc
}

// RegisterState publishes the phase, the owner and the node of each pod while
// leads reports true. The reader serves Pods and Nodes from memory; while it
// cannot, nothing is published.
func RegisterState(reg prometheus.Registerer, reader client.Reader, leads func() bool) {
	reg.MustRegister(&state{reader: reader, leads: leads, desc: prometheus.NewDesc(
		prometheus.BuildFQName("karpenter", "pods", "state"), "1 for every pod, with what it is and where in its labels.",
		stateLabels(), nil)})
}

// stateLabels returns the names of the labels, sorted.
func stateLabels() []string {
	return []string{
		"arch", "capacity_type", "instance_type", "managed", "name", "namespace", "node", "nodepool", "owner", "phase", "ready", "scheduled", "zone",
	}
}

// Describe implements prometheus.Collector.
func (s *state) Describe(out chan<- *prometheus.Desc) { out <- s.desc }

// Collect implements prometheus.Collector.
func (s *state) Collect(out chan<- prometheus.Metric) {
	if !s.leads() {
		return
	}
	ctx := context.Background() // reads of memory
	pods, known := podsOf(ctx, s.reader)
	nodes := &corev1.NodeList{}
	if !known || s.reader.List(ctx, nodes, client.UnsafeDisableDeepCopy) != nil {
		return
	}
	labels := make(map[string]map[string]string, len(nodes.Items))
	for i := range nodes.Items {
		labels[nodes.Items[i].Name] = nodes.Items[i].Labels
	}
	names, values := stateLabels(), pool{}
	for _, p := range pods {
		out <- gauge{s.desc, values.pairs(names, describe(p, labels[p.Spec.NodeName])), 1}
	}
}

// describe returns the labels of the series of the pod, which is on a node with
// these labels, in the order of stateLabels.
func describe(p *corev1.Pod, node map[string]string) []string {
	is := strconv.FormatBool
	return []string{
		node[model.LabelArch], node[model.LabelCapacityType], node[model.LabelInstanceType], is(node[model.LabelNodePool] != ""),
		p.Name, p.Namespace, p.Spec.NodeName, node[model.LabelNodePool], owner(p), string(p.Status.Phase),
		is(since(p, corev1.PodReady) != nil), is(since(p, corev1.PodScheduled) != nil), node[model.LabelZone],
	}
}

// owner returns the path of the first owner of the pod, "" if it has none.
func owner(p *corev1.Pod) string {
	if len(p.OwnerReferences) == 0 {
		return ""
	}
	o := p.OwnerReferences[0]
	return fmt.Sprintf("/apis/%s/namespaces/%s/%ss/%s", o.APIVersion, p.Namespace, strings.ToLower(o.Kind), o.Name)
}
