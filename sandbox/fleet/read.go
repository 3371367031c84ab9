// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/resource"
)

// What the autoscaler and its provider write on nodes and claims.
const (
	poolLabel         = "karpenter.sh/nodepool"
	capacityTypeLabel = "karpenter.sh/capacity-type"
	priceLabel        = "eks-node-viewer/instance-price"
	disruptedTaint    = "karpenter.sh/disrupted"
	unregisteredTaint = "karpenter.sh/unregistered"
	initializedLabel  = "karpenter.sh/initialized"
)

// node is what matters of a Node.
type node struct {
	offer
	name       string
	host       string // its hostname, which a provider may set to the claim's name
	providerID string
	removing   time.Time // zero: it stays
	ready      bool
	fresh      bool // not registered yet
	counts     bool // initialized: budgets count it
	capacity   corev1.ResourceList
}

// claim is what matters of a NodeClaim.
type claim struct {
	offer
	name        string
	providerID  string
	nodeName    string
	removing    time.Time // zero: it stays
	initialized bool
	terminating bool // its machine is being terminated: budgets do not count it any more
	capacity    corev1.ResourceList
}

// offer is what a machine was launched as.
type offer struct {
	pool, kind, zone, capacityType string
	price                          float64
}

// Offering is something that is offered.
type Offering struct{ Type, Zone, CapacityType string }

// Prices are dollars per hour.
type Prices map[Offering]float64

// of is what the offer says that it costs, else what the list says.
func (p Prices) of(o offer) float64 {
	if o.price > 0 {
		return o.price
	}
	return p[Offering{o.kind, o.zone, o.capacityType}]
}

// pod is what matters of a Pod.
type pod struct {
	uid      types.UID
	workload string
	node     string
	phase    corev1.PodPhase
	stopping bool
	target   string // reason why the API server says it is a target of a disruption; empty: it does not
	requests Amount
}

func (p *pod) finished() bool { return p.phase == corev1.PodSucceeded || p.phase == corev1.PodFailed }

func readOffer(labels map[string]string) offer {
	price, _ := strconv.ParseFloat(labels[priceLabel], 64) // absent or odd: nothing is known to be paid
	return offer{
		pool:         labels[poolLabel],
		kind:         labels[corev1.LabelInstanceTypeStable],
		zone:         labels[corev1.LabelTopologyZone],
		capacityType: labels[capacityTypeLabel],
		price:        price,
	}
}

func readNode(n *corev1.Node) node {
	read := node{
		offer:      readOffer(n.Labels),
		name:       n.Name,
		host:       n.Labels[corev1.LabelHostname],
		providerID: n.Spec.ProviderID,
		counts:     n.Labels[initializedLabel] == "true",
		capacity:   n.Status.Capacity,
	}
	if n.DeletionTimestamp != nil {
		read.removing = deletedAt(n)
	}
	for _, taint := range n.Spec.Taints {
		switch taint.Key {
		case unregisteredTaint:
			read.fresh = true
		case disruptedTaint:
			if read.removing.IsZero() {
				read.removing = n.CreationTimestamp.Time
				if taint.TimeAdded != nil {
					read.removing = taint.TimeAdded.Time
				}
			}
		}
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			read.ready = c.Status == corev1.ConditionTrue
		}
	}
	return read
}

func readClaim(c *unstructured.Unstructured) claim {
	read := claim{offer: readOffer(c.GetLabels()), name: c.GetName()}
	if c.GetDeletionTimestamp() != nil {
		read.removing = deletedAt(c)
	}
	read.providerID, _, _ = unstructured.NestedString(c.Object, "status", "providerID")
	read.nodeName, _, _ = unstructured.NestedString(c.Object, "status", "nodeName")
	read.capacity = readResources(c.Object, "status", "capacity")
	read.initialized, _ = readCondition(c.Object, "Initialized")
	read.terminating, _ = readCondition(c.Object, "InstanceTerminating")
	if read.providerID == "" {
		read.kind, read.price = "", 0 // a label may ask for a type; only a launch makes it one
	}
	return read
}

// deletedAt returns when the deletion was asked for: the timestamp lies a grace period later.
func deletedAt(object metav1.Object) time.Time {
	at := object.GetDeletionTimestamp().Time
	if grace := object.GetDeletionGracePeriodSeconds(); grace != nil {
		at = at.Add(-time.Duration(*grace) * time.Second)
	}
	return at
}

func readPool(p *unstructured.Unstructured) Pool {
	read := Pool{Name: p.GetName(), Limits: readResources(p.Object, "spec", "limits")}
	read.Ready, read.Reason = readCondition(p.Object, "Ready")
	read.Budgets = readBudgets(p)
	return read
}

// readBudgets returns the budgets that hold always and for all reasons.
func readBudgets(p *unstructured.Unstructured) []string {
	var always []string
	all, _, _ := unstructured.NestedSlice(p.Object, "spec", "disruption", "budgets")
	for _, entry := range all {
		b, _ := entry.(map[string]any)
		_, some := b["reasons"]
		_, times := b["schedule"]
		if nodes, ok := b["nodes"].(string); ok && !some && !times {
			always = append(always, nodes)
		}
	}
	return always
}

// readCondition reports whether the condition is True, and otherwise what it says; nothing if there is none yet.
func readCondition(object map[string]any, kind string) (bool, string) {
	all, _, _ := unstructured.NestedSlice(object, "status", "conditions")
	for _, entry := range all {
		c, _ := entry.(map[string]any)
		if c["type"] != kind {
			continue
		}
		if c["status"] == "True" {
			return true, ""
		}
		reason, _ := c["message"].(string)
		if reason == "" {
			reason, _ = c["reason"].(string)
		}
		return false, reason
	}
	return false, ""
}

// readResources returns the quantities at a path; nil if there are none. The API server has checked their form.
func readResources(object map[string]any, path ...string) corev1.ResourceList {
	found, _, _ := unstructured.NestedMap(object, path...)
	if len(found) == 0 {
		return nil
	}
	list := make(corev1.ResourceList, len(found))
	for name, value := range found {
		var quantity apiresource.Quantity
		var err error
		switch value := value.(type) {
		case string:
			quantity, err = apiresource.ParseQuantity(value)
		case int64:
			quantity = *apiresource.NewQuantity(value, apiresource.DecimalSI)
		}
		if err == nil {
			list[corev1.ResourceName(name)] = quantity
		}
	}
	return list
}

func amountOf(list corev1.ResourceList) Amount {
	return Amount{MilliCPU: list.Cpu().MilliValue(), Memory: list.Memory().Value()}
}

func readPod(p *corev1.Pod) pod {
	target := ""
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			target = c.Reason
		}
	}
	return pod{
		target:   target,
		uid:      p.UID,
		workload: workloadOf(p),
		node:     p.Spec.NodeName,
		phase:    p.Status.Phase,
		stopping: p.DeletionTimestamp != nil,
		requests: amountOf(resource.PodRequests(p, resource.PodResourcesOptions{})),
	}
}

// workloadOf names what the pod belongs to: its Deployment (a ReplicaSet's name less the template's hash), its other
// owner, or itself.
func workloadOf(p *corev1.Pod) string {
	i := slices.IndexFunc(p.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Controller != nil && *o.Controller })
	if i < 0 {
		return p.Name
	}
	owner := p.OwnerReferences[i].Name
	if hash := p.Labels["pod-template-hash"]; hash != "" {
		return strings.TrimSuffix(owner, "-"+hash)
	}
	return owner
}

// trimPod drops what readPod does not read.
func trimPod(object any) (any, error) {
	p, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	trimmed := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: p.Name, Namespace: p.Namespace, UID: p.UID, ResourceVersion: p.ResourceVersion,
			OwnerReferences: p.OwnerReferences, DeletionTimestamp: p.DeletionTimestamp,
		},
		Spec: corev1.PodSpec{
			NodeName: p.Spec.NodeName, Overhead: p.Spec.Overhead, Resources: p.Spec.Resources,
			Containers: trimContainers(p.Spec.Containers), InitContainers: trimContainers(p.Spec.InitContainers),
		},
		Status: corev1.PodStatus{Phase: p.Status.Phase},
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.DisruptionTarget {
			trimmed.Status.Conditions = []corev1.PodCondition{{Type: c.Type, Status: c.Status, Reason: c.Reason}}
		}
	}
	if hash := p.Labels["pod-template-hash"]; hash != "" {
		trimmed.Labels = map[string]string{"pod-template-hash": hash}
	}
	return trimmed, nil
}

func trimContainers(all []corev1.Container) []corev1.Container {
	trimmed := make([]corev1.Container, len(all))
	for i := range all {
		trimmed[i] = corev1.Container{Name: all[i].Name, Resources: all[i].Resources, RestartPolicy: all[i].RestartPolicy}
	}
	return trimmed
}
