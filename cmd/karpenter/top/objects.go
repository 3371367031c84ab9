// SPDX-License-Identifier: Apache-2.0

package top

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "karpenter/api/v1"
)

const (
	nodesResource = corev1.ResourceName("nodes")
	// priceLabel holds the dollars per hour of nodes of the KWOK provider.
	priceLabel       = "eks-node-viewer/instance-price"
	failedScheduling = "FailedScheduling"
	// Publisher is the component whose events are shown.
	Publisher = "karpenter"
)

// Objects is what a View is made of. Nothing in it may be modified.
type Objects struct {
	Nodes  []*corev1.Node
	Claims []*v1.NodeClaim
	Pools  []*v1.NodePool
	Pods   []*corev1.Pod
	Events []*corev1.Event // of Karpenter, oldest first
}

// Read lists the objects. A kind that the cluster does not know has none.
func Read(ctx context.Context, r client.Reader) (*Objects, error) {
	o := &Objects{}
	lists := []client.ObjectList{&corev1.NodeList{}, &v1.NodeClaimList{}, &v1.NodePoolList{}, &corev1.PodList{}, &corev1.EventList{}}
	for _, list := range lists {
		err := r.List(ctx, list, client.UnsafeDisableDeepCopy)
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list %T: %w", list, err)
		}
		o.take(list)
	}
	slices.SortStableFunc(o.Events, func(a, b *corev1.Event) int {
		return cmp.Or(eventTime(a).Compare(eventTime(b)), strings.Compare(a.Name, b.Name))
	})
	return o, nil
}

func (o *Objects) take(list client.ObjectList) {
	switch list := list.(type) {
	case *corev1.NodeList:
		o.Nodes = pointers(list.Items)
	case *v1.NodeClaimList:
		o.Claims = pointers(list.Items)
	case *v1.NodePoolList:
		o.Pools = pointers(list.Items)
	case *corev1.PodList:
		o.Pods = pointers(list.Items)
	case *corev1.EventList:
		for i := range list.Items {
			if e := &list.Items[i]; e.Source.Component == Publisher || e.ReportingController == Publisher {
				o.Events = append(o.Events, e)
			}
		}
	}
}

func pointers[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
}

func eventTime(e *corev1.Event) time.Time {
	if !e.LastTimestamp.IsZero() {
		return e.LastTimestamp.Time
	}
	return e.EventTime.Time
}

// nodes joins NodeClaims and their Nodes; by pool and name.
func nodes(o *Objects, prices Prices) []Node {
	byName, byProvider := map[string]*corev1.Node{}, map[string]*corev1.Node{}
	for _, n := range o.Nodes {
		byName[n.Name] = n
		if n.Spec.ProviderID != "" {
			byProvider[n.Spec.ProviderID] = n
		}
	}
	var all []Node
	joined := map[string]bool{}
	for _, c := range o.Claims {
		n := byName[c.Status.NodeName]
		if n == nil && c.Status.ProviderID != "" {
			n = byProvider[c.Status.ProviderID]
		}
		if n != nil {
			joined[n.Name] = true
		}
		all = append(all, newNode(c, n, prices))
	}
	for _, n := range o.Nodes {
		if !joined[n.Name] {
			all = append(all, newNode(nil, n, prices))
		}
	}
	slices.SortFunc(all, func(a, b Node) int {
		return cmp.Or(cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// newNode makes a Node of a NodeClaim and its Node. One of them may be nil.
func newNode(c *v1.NodeClaim, n *corev1.Node, prices Prices) Node {
	var out Node
	if c != nil {
		out = Node{Name: c.Name, Claim: c.Name, Since: c.CreationTimestamp.Time, Room: amountOf(c.Status.Allocatable)}
		out.offer(c.Labels)
		if c.Status.ProviderID == "" {
			out.Type = "" // a label may ask for a type; the launch decides
		}
	}
	if n != nil {
		out.Name = n.Name
		if c == nil {
			out.Since = n.CreationTimestamp.Time
		}
		out.offer(n.Labels)
		out.Room = amountOf(n.Status.Allocatable)
	}
	out.State = stateOf(c, n)
	for _, at := range []time.Time{removedAt(c, n)} {
		if !at.IsZero() {
			out.State, out.Since = Removing, at
		}
	}
	if out.Type != "" {
		out.price(n, prices)
	}
	return out
}

// offer takes over what the labels say.
func (n *Node) offer(labels map[string]string) {
	n.Pool = cmp.Or(labels[v1.NodePoolLabelKey], n.Pool, labels["eks.amazonaws.com/nodegroup"], labels["cloud.google.com/gke-nodepool"], labels["kubernetes.azure.com/agentpool"])
	n.Type = cmp.Or(labels[corev1.LabelInstanceTypeStable], n.Type)
	n.Zone = cmp.Or(labels[corev1.LabelTopologyZone], n.Zone)
	n.CapacityType = cmp.Or(labels[v1.CapacityTypeLabelKey], n.CapacityType, strings.ToLower(strings.ReplaceAll(labels["eks.amazonaws.com/capacityType"], "_", "-")))
}

// price takes over the price that the node carries, or that of what it is.
func (n *Node) price(node *corev1.Node, prices Prices) {
	if node != nil {
		if price, err := strconv.ParseFloat(node.Labels[priceLabel], 64); err == nil && price > 0 {
			n.Price, n.Priced = price, true
			return
		}
	}
	if prices != nil {
		n.Price, n.Priced = prices(n.Type, n.Zone, n.CapacityType)
	}
}

func stateOf(c *v1.NodeClaim, n *corev1.Node) State {
	ready := false
	fresh := false
	if n != nil {
		for _, condition := range n.Status.Conditions {
			if condition.Type == corev1.NodeReady {
				ready = condition.Status == corev1.ConditionTrue
			}
		}
		fresh = slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == v1.UnregisteredTaintKey })
	}
	switch {
	case n == nil && c.Status.ProviderID == "":
		return Launching
	case n == nil, fresh, !ready && c != nil && conditionOf(c, v1.InitializedCondition).Status != metav1.ConditionTrue:
		return Booting
	case ready:
		return Ready
	}
	return NotReady
}

// removedAt returns since when the node is being removed; the zero time if it
// stays.
func removedAt(c *v1.NodeClaim, n *corev1.Node) time.Time {
	if n != nil && n.DeletionTimestamp != nil {
		return deletedAt(n)
	}
	if n != nil {
		for _, t := range n.Spec.Taints {
			if t.Key != v1.DisruptedTaintKey {
				continue
			}
			if t.TimeAdded != nil {
				return t.TimeAdded.Time
			}
			if c != nil {
				if marked := conditionOf(c, v1.DisruptionReasonCondition); marked.Status == metav1.ConditionTrue {
					return marked.LastTransitionTime.Time
				}
			}
			return n.CreationTimestamp.Time
		}
	}
	if c != nil && c.DeletionTimestamp != nil {
		return deletedAt(c)
	}
	return time.Time{}
}

// deletedAt returns when the deletion was requested: the timestamp lies a grace
// period later.
func deletedAt(o metav1.Object) time.Time {
	at := o.GetDeletionTimestamp().Time
	if grace := o.GetDeletionGracePeriodSeconds(); grace != nil {
		at = at.Add(-time.Duration(*grace) * time.Second)
	}
	return at
}

func conditionOf(c *v1.NodeClaim, name string) v1.Condition {
	for _, condition := range c.Status.Conditions {
		if condition.Type == name {
			return condition
		}
	}
	return v1.Condition{}
}

func pools(o *Objects) []Pool {
	var out []Pool
	for _, p := range o.Pools {
		pool := Pool{Name: p.Name, Limits: corev1.ResourceList(p.Spec.Limits), Usage: p.Status.Resources}
		for _, c := range p.Status.Conditions {
			if c.Type == v1.ReadyCondition {
				pool.Ready = c.Status == metav1.ConditionTrue
				pool.Reason = cmp.Or(c.Message, c.Reason)
			}
		}
		out = append(out, pool)
	}
	slices.SortFunc(out, func(a, b Pool) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// warnings returns the Warning events about what still exists or happened recently,
// one for those that say the same of the same.
func warnings(o *Objects) []Warning {
	var out []Warning
	at := map[string]int{}
	for _, e := range o.Events {
		if e.Type != corev1.EventTypeWarning {
			continue
		}
		w := Warning{
			At: eventTime(e), Object: strings.ToLower(e.InvolvedObject.Kind) + "/" + e.InvolvedObject.Name,
			Reason: e.Reason, Message: e.Message, key: string(e.UID) + strconv.Itoa(int(e.Count)),
		}
		if i, known := at[w.Object+w.Reason]; known {
			out[i].At = time.Time{} // said again later
		}
		at[w.Object+w.Reason] = len(out)
		out = append(out, w)
	}
	return slices.DeleteFunc(out, func(w Warning) bool { return w.At.IsZero() })
}

func finished(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

func requestsOf(p *corev1.Pod) Amount {
	return amountOf(resource.PodRequests(p, resource.PodResourcesOptions{}))
}

// workloadOf names what the pod belongs to: its Deployment (the name of a
// ReplicaSet without the template's hash), its other owner, or itself.
func workloadOf(p *corev1.Pod) string {
	owner := metav1.GetControllerOf(p)
	if owner == nil {
		return p.Name
	}
	if hash := p.Labels["pod-template-hash"]; hash != "" {
		return strings.TrimSuffix(owner.Name, "-"+hash)
	}
	return owner.Name
}
