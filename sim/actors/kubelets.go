// SPDX-License-Identifier: Apache-2.0

package actors

import (
	"context"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "karpenter/api/v1"
	"karpenter/sim/script"
	"karpenter/sim/simcloud"
	"karpenter/sim/store"
)

// kubelets are the instances' part in the cluster.
type kubelets struct {
	boots  map[string]time.Duration // by provider ID: from launch to Node; 0 = never
	starts drawn                    // from Node to ready, and from bound to running
	ends   drawn                    // from deletion to the end of a pod
}

func newKubelets() *kubelets {
	return &kubelets{boots: map[string]time.Duration{}, starts: drawn{}, ends: drawn{}}
}

func (k *kubelets) look(a *Actor, c *choice) {
	nodes := map[string]*corev1.Node{} // by provider ID
	for n := range store.All[*corev1.Node](a.Store) {
		nodes[n.Spec.ProviderID] = n
	}
	runs := map[string]bool{} // nodes whose instance runs
	for _, m := range a.machines() {
		n := nodes[m.ProviderID]
		switch {
		case n != nil:
			runs[n.Name] = true
			if !isReady(n) && !a.hindered(script.Unready, n.Labels[v1.NodePoolLabelKey]) && a.due(wellAt(n)) && a.due(n.CreationTimestamp.Add(k.starts.of(a.Rand, n.UID, 2*time.Second, 20*time.Second))) {
				c.offer(a.status(withReady(n, corev1.ConditionTrue, a.now)))
			}
		case m.Deleting || k.boot(a, &m) == 0:
		case a.due(m.Created.Add(k.boot(a, &m))):
			c.offer(func(ctx context.Context) error { return a.client.Create(ctx, newNode(&m, a.now)) })
		}
	}
	for p := range store.All[*corev1.Pod](a.Store) {
		if runs[p.Spec.NodeName] {
			k.tend(a, c, p)
		}
	}
}

// boot is how long the instance takes to become a Node, 0 for one that never
// will.
func (k *kubelets) boot(a *Actor, m *simcloud.Machine) time.Duration {
	d, ok := k.boots[m.ProviderID]
	if !ok {
		launch := script.Call{Since: m.Created.Sub(a.Started), Type: m.Offering.Type, Zone: m.Offering.Zone, Capacity: m.Offering.CapacityType}
		if a.Faults.Hit(launch, script.NoJoin) == nil {
			d = time.Duration(20+a.Rand.IntN(40)) * time.Second
		}
		k.boots[m.ProviderID] = d
	}
	return d
}

// tend starts and ends a pod on a running instance.
func (k *kubelets) tend(a *Actor, c *choice, p *corev1.Pod) {
	switch {
	case p.DeletionTimestamp != nil:
		grace := time.Duration(*p.DeletionGracePeriodSeconds) * time.Second
		begun := p.DeletionTimestamp.Add(-grace)
		if a.due(begun.Add(min(k.ends.of(a.Rand, p.UID, time.Second, 40*time.Second), grace))) {
			c.offer(a.kill(p))
		}
	case p.Status.Phase == corev1.PodPending && !a.hindered(script.Unstarted, p.Labels[appLabel]):
		if a.due(boundAt(p).Add(k.starts.of(a.Rand, p.UID, time.Second, 6*time.Second))) {
			c.offer(a.status(running(p, a.now)))
		}
	}
}

func boundAt(p *corev1.Pod) time.Time {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	return p.CreationTimestamp.Time
}

// running returns the pod as it runs. Times are whole seconds, as in the API.
func running(p *corev1.Pod, now time.Time) *corev1.Pod {
	out := p.DeepCopy()
	at := metav1.NewTime(now.Truncate(time.Second))
	out.Status.Phase, out.Status.StartTime = corev1.PodRunning, &at
	setPodReady(out, corev1.ConditionTrue, at)
	return out
}

func setPodReady(p *corev1.Pod, status corev1.ConditionStatus, at metav1.Time) {
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == corev1.PodReady {
			c.Status, c.LastTransitionTime = status, at
			return
		}
	}
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: status, LastTransitionTime: at})
}

func isReady(n *corev1.Node) bool { return readiness(n) == corev1.ConditionTrue }

func readiness(n *corev1.Node) corev1.ConditionStatus {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status
		}
	}
	return corev1.ConditionFalse
}

func withReady(n *corev1.Node, status corev1.ConditionStatus, now time.Time) *corev1.Node {
	out := n.DeepCopy()
	at := metav1.NewTime(now.Truncate(time.Second))
	out.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, LastTransitionTime: at, LastHeartbeatTime: at}}
	return out
}

// sick is the reason of a Node that is not ready, whose message is until when.
const sick = "Sick"

func withSickness(n *corev1.Node, now time.Time, lasts time.Duration) *corev1.Node {
	out := withReady(n, corev1.ConditionFalse, now)
	out.ResourceVersion = ""
	c := &out.Status.Conditions[0]
	c.Reason, c.Message = sick, now.Add(lasts).Format(time.RFC3339Nano)
	return out
}

// wellAt is until when the Node is sick; zero = it is not.
func wellAt(n *corev1.Node) time.Time {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Reason == sick {
			at, _ := time.Parse(time.RFC3339Nano, c.Message)
			return at
		}
	}
	return time.Time{}
}

// newNode is the Node a kubelet registers for its instance.
func newNode(m *simcloud.Machine, now time.Time) *corev1.Node {
	if m.Node != nil {
		return unready(m.Node.DeepCopy(), now)
	}
	labels := maps.Clone(m.Labels)
	delete(labels, v1.NodePoolLabelKey) // the kubelet knows nothing of pools
	name := strings.ReplaceAll(m.ProviderID[strings.LastIndex(m.ProviderID, "/")+1:], "_", "-")
	labels[corev1.LabelHostname] = name
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: corev1.NodeSpec{ProviderID: m.ProviderID, Taints: []corev1.Taint{
			v1.UnregisteredNoExecuteTaint(),
		}},
		Status: corev1.NodeStatus{Capacity: m.Capacity.DeepCopy(), Allocatable: m.Allocatable.DeepCopy()},
	}
	return unready(n, now)
}

// unready is the node as it begins.
func unready(n *corev1.Node, now time.Time) *corev1.Node {
	n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule})
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "KubeletNotReady", LastTransitionTime: metav1.NewTime(now.Truncate(time.Second))}}
	return n
}
