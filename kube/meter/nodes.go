// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "karpenter/api/v1"
	"karpenter/kube/pods"
)

// Nodes configures the metrics of nodes.
type Nodes struct {
	Reader client.Reader // serves Pods and Nodes from memory
	Leads  func() bool   // nothing is published unless it reports true
	Labels v1.Labels     // the well-known ones label the series
	Clock  clock.PassiveClock
}

// nodes publishes the capacity of nodes and the requests of their pods. It has
// no state: each scrape reads the cache.
type nodes struct {
	Nodes
	keys  []string // of labels of Nodes
	names []string // of labels of series: those of keys, then the fixed ones

	allocatable, overhead, lifetime, utilization   *prometheus.Desc
	requests, limits, daemonRequests, daemonLimits *prometheus.Desc
}

// RegisterNodes publishes the capacity of each node and the requests and limits
// of its pods. Series with the value 0 are left out, except requests for a
// resource that the node has.
func RegisterNodes(reg prometheus.Registerer, with Nodes) {
	n := &nodes{Nodes: with}
	n.keys, n.names = shortLabels(with.Labels)
	n.names = append(n.names, "node_name", "phase", "managed")
	amount := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("karpenter_nodes_"+name, help+", in its unit: cores, bytes or pieces.", append(slices.Clone(n.names), resourceType), nil)
	}
	n.allocatable = amount("allocatable", "Allocatable amount of a resource on a node")
	n.requests = amount("total_pod_requests", "Amount of a resource that the pods on a node request, including DaemonSet pods")
	n.limits = amount("total_pod_limits", "Limits of the pods on a node for a resource, including DaemonSet pods")
	n.daemonRequests = amount("total_daemon_requests", "Amount of a resource that the DaemonSet pods on a node request")
	n.daemonLimits = amount("total_daemon_limits", "Limits of the DaemonSet pods on a node for a resource")
	n.overhead = amount("system_overhead", "Amount of a resource that a node reserves for the system")
	n.lifetime = prometheus.NewDesc("karpenter_nodes_current_lifetime_seconds", "Time since the creation of a node.", n.names, nil)
	n.utilization = prometheus.NewDesc("karpenter_cluster_utilization_percent",
		"Share of the allocatable resources of all nodes that pods request.", []string{resourceType}, nil)
	reg.MustRegister(n)
}

const resourceType = "resource_type"

// shortLabels returns the well-known label keys, and the names that series give
// them: what follows the slash. Of two keys with one name the first counts.
func shortLabels(l v1.Labels) (keys, names []string) {
	for _, key := range slices.Sorted(slices.Values(l.WellKnown.UnsortedList())) {
		name := labelName(key[strings.LastIndex(key, "/")+1:])
		if !slices.Contains(names, name) {
			keys, names = append(keys, key), append(names, name)
		}
	}
	return keys, names
}

func labelName(word string) string {
	return strings.NewReplacer("-", "_", ".", "_", "/", "_").Replace(strings.ToLower(word))
}

// resourceValue is how the label resource_type names the resource.
func resourceValue(name corev1.ResourceName) string {
	return strings.ReplaceAll(strings.ToLower(string(name)), "-", "_")
}

// Describe implements prometheus.Collector.
func (n *nodes) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		n.allocatable, n.requests, n.limits, n.daemonRequests, n.daemonLimits, n.overhead, n.lifetime, n.utilization,
	} {
		out <- d
	}
}

// load is the sum of the requests and limits of the pods on one node.
type load struct{ requests, limits, daemonRequests, daemonLimits amountOf }

// amountOf is how much there is of each resource, in its unit.
type amountOf map[corev1.ResourceName]float64

func (a amountOf) add(list corev1.ResourceList, times float64) {
	for name, q := range list {
		a[name] += times * q.AsApproximateFloat64()
	}
}

// Collect implements prometheus.Collector.
func (n *nodes) Collect(out chan<- prometheus.Metric) {
	if !n.Leads() {
		return
	}
	ctx := context.Background() // reads of memory
	all, known := podsOf(ctx, n.Reader)
	nodeList := &corev1.NodeList{}
	if !known || n.Reader.List(ctx, nodeList, client.UnsafeDisableDeepCopy) != nil {
		return
	}
	loads := loadsOf(all)
	requested, allocatable := amountOf{}, amountOf{}
	for i := range nodeList.Items {
		node := &nodeList.Items[i]
		l := loads[node.Name]
		if l == nil {
			l = newLoad()
		}
		n.publish(out, node, l)
		allocatable.add(node.Status.Allocatable, 1)
		for name, x := range l.requests {
			requested[name] += x
		}
	}
	for name, has := range allocatable {
		if has > 0 {
			out <- gauge{n.utilization, with(nil, resourceType, resourceValue(name)), 100 * requested[name] / has}
		}
	}
}

func newLoad() *load { return &load{amountOf{}, amountOf{}, amountOf{}, amountOf{}} }

// loadsOf returns what the pods on each node that have not ended ask for.
func loadsOf(all []*corev1.Pod) map[string]*load {
	out, known := map[string]*load{}, asked{}
	for _, p := range all {
		if p.Spec.NodeName == "" || pods.Terminal(p) {
			continue
		}
		l := out[p.Spec.NodeName]
		if l == nil {
			l = newLoad()
			out[p.Spec.NodeName] = l
		}
		a := known.by(p)
		l.requests.add(a.requests, 1)
		l.requests[corev1.ResourcePods]++
		l.limits.add(a.limits, 1)
		if pods.DaemonSet(p) {
			l.daemonRequests.add(a.requests, 1)
			l.daemonRequests[corev1.ResourcePods]++
			l.daemonLimits.add(a.limits, 1)
		}
	}
	return out
}

// ask is what a pod asks for.
type ask struct{ requests, limits corev1.ResourceList }

// asked is what pods ask for by their containers: pods of one workload have the same
// slices in the cache (package feed), and there are many more pods than workloads.
type asked map[containers]ask

// containers are slices of containers, by where they are stored.
type containers struct {
	first, firstInit *corev1.Container
	count, countInit int
}

// by returns what the pod asks for.
func (known asked) by(p *corev1.Pod) ask {
	spec, status := &p.Spec, &p.Status
	if len(spec.Containers) == 0 || spec.Overhead != nil || spec.Resources != nil ||
		status.Resources != nil || len(status.ContainerStatuses)+len(status.InitContainerStatuses) > 0 { // it has or may have been resized
		return askOf(p)
	}
	key := containers{first: &spec.Containers[0], count: len(spec.Containers), countInit: len(spec.InitContainers)}
	if key.countInit > 0 {
		key.firstInit = &spec.InitContainers[0]
	}
	a, ok := known[key]
	if !ok {
		a = askOf(p)
		known[key] = a
	}
	return a
}

func askOf(p *corev1.Pod) ask {
	options := resource.PodResourcesOptions{UseStatusResources: true}
	return ask{resource.PodRequests(p, options), resource.PodLimits(p, options)}
}

// labels returns those of the series of the node. Of some forty labels most
// nodes have a dozen; to Prometheus one that is empty and one that is not there
// are the same.
func (n *nodes) labels(node *corev1.Node) []*dto.LabelPair {
	values := make([]string, 0, len(n.names))
	for _, key := range n.keys {
		values = append(values, node.Labels[key])
	}
	managed := node.Labels[v1.NodePoolLabelKey] != ""
	all := pairs(n.names, append(values, node.Name, string(node.Status.Phase), strconv.FormatBool(managed)))
	return slices.DeleteFunc(all, func(l *dto.LabelPair) bool { return l.GetValue() == "" })
}

// publish publishes the series of one node.
func (n *nodes) publish(out chan<- prometheus.Metric, node *corev1.Node, l *load) {
	labels := n.labels(node)
	allocatable, overhead := amountOf{}, amountOf{}
	allocatable.add(node.Status.Allocatable, 1)
	overhead.add(node.Status.Capacity, 1)
	overhead.add(node.Status.Allocatable, -1)
	of := map[corev1.ResourceName][]*dto.LabelPair{} // series of one resource share their labels
	series := func(desc *prometheus.Desc, name corev1.ResourceName, value float64) {
		if of[name] == nil {
			of[name] = with(labels, resourceType, resourceValue(name))
		}
		out <- gauge{desc, of[name], value}
	}
	for name, x := range allocatable {
		if x != 0 {
			series(n.allocatable, name, x)
			series(n.requests, name, l.requests[name])
		}
	}
	for desc, amounts := range map[*prometheus.Desc]amountOf{
		n.limits: l.limits, n.daemonRequests: l.daemonRequests, n.daemonLimits: l.daemonLimits, n.overhead: overhead,
	} {
		for name, x := range amounts {
			if x != 0 {
				series(desc, name, x)
			}
		}
	}
	out <- gauge{n.lifetime, labels, math.Max(0, n.Clock.Since(node.CreationTimestamp.Time).Seconds())}
}
