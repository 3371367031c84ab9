// SPDX-License-Identifier: Apache-2.0

package actors

import (
	"context"
	"math"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"karpenter/kube/pods"
	"karpenter/sim/script"
	"karpenter/sim/store"
)

// workloads keeps the pods of Deployments and DaemonSets.
type workloads struct {
	ends map[types.UID]time.Time // when pods with a life are replaced
}

func newWorkloads() *workloads { return &workloads{map[types.UID]time.Time{}} }

func (w *workloads) look(a *Actor, c *choice) {
	owned := map[types.UID][]*corev1.Pod{} // those that count
	for p := range store.All[*corev1.Pod](a.Store) {
		owner := metav1.GetControllerOf(p)
		switch {
		case owner == nil:
		case ended(p) && p.DeletionTimestamp == nil:
			c.offer(a.remove(p))
		case !ended(p) && p.DeletionTimestamp == nil:
			owned[owner.UID] = append(owned[owner.UID], p)
		}
	}
	for d := range store.All[*appsv1.Deployment](a.Store) {
		w.keep(a, c, d, owned[d.UID])
	}
	for d := range store.All[*appsv1.DaemonSet](a.Store) {
		keepDaemons(a, c, d, owned[d.UID])
	}
}

// keep makes the Deployment have as many pods as it wants. In a cluster there
// is a ReplicaSet in between; no one here looks at it.
func (w *workloads) keep(a *Actor, c *choice, d *appsv1.Deployment, have []*corev1.Pod) {
	want := int(*d.Spec.Replicas)
	old := slices.DeleteFunc(slices.Clone(have), func(p *corev1.Pod) bool {
		return p.Annotations[restartedAt] == d.Spec.Template.Annotations[restartedAt]
	})
	switch {
	case len(old) > 0:
		rollOut(a, c, d, have, old)
	case len(have) < want:
		c.offer(a.make(podOf(d, &d.Spec.Template, "apps/v1", "ReplicaSet")))
	case len(have) > want:
		c.offer(a.remove(surplus(a, have)))
	}
	i := slices.IndexFunc(a.Script.Pods, func(l script.Workload) bool { return l.Name == d.Name })
	if i < 0 || a.Script.Pods[i].Life == 0 || a.over() {
		return
	}
	for _, p := range have {
		if a.due(w.end(a, p, a.Script.Pods[i].Life)) {
			c.offer(a.remove(p))
		}
	}
}

// restartedAt is the annotation in a template by which kubectl restarts a rollout.
const restartedAt = "kubectl.kubernetes.io/restartedAt"

// rollOut replaces the old pods of the Deployment: one more than it wants is made, and
// one is removed when more than it wants are ready.
func rollOut(a *Actor, c *choice, d *appsv1.Deployment, have, old []*corev1.Pod) {
	want, ready := int(*d.Spec.Replicas), 0
	for _, p := range have {
		if pods.Ready(p) {
			ready++
		}
	}
	if len(have)-len(old) < want && len(have) <= want {
		c.offer(a.make(podOf(d, &d.Spec.Template, "apps/v1", "ReplicaSet")))
	}
	for _, p := range old {
		if ready > want || !pods.Ready(p) {
			c.offer(a.remove(p))
		}
	}
}

// end is when the pod is replaced, drawn from an exponential distribution.
func (w *workloads) end(a *Actor, p *corev1.Pod, mean time.Duration) time.Time {
	at, ok := w.ends[p.UID]
	if !ok {
		life := time.Duration(-math.Log(1-a.Rand.Float64()) * float64(mean))
		at = p.CreationTimestamp.Add(max(life.Truncate(time.Second), time.Second))
		w.ends[p.UID] = at
	}
	return at
}

// surplus is the pod that goes first: one that does not run, else any.
func surplus(a *Actor, have []*corev1.Pod) *corev1.Pod {
	if i := slices.IndexFunc(have, func(p *corev1.Pod) bool { return p.Spec.NodeName == "" }); i >= 0 {
		return have[i]
	}
	return have[a.Rand.IntN(len(have))]
}

func (a *Actor) make(p *corev1.Pod) func(context.Context) error {
	return func(ctx context.Context) error { return a.client.Create(ctx, p) }
}

// podOf returns a new pod from the template. The owner's kind is what a
// cluster would show.
func podOf(owner metav1.Object, t *corev1.PodTemplateSpec, version, kind string) *corev1.Pod {
	yes := true
	p := &corev1.Pod{ObjectMeta: *t.ObjectMeta.DeepCopy(), Spec: *t.Spec.DeepCopy()}
	p.Namespace, p.GenerateName = owner.GetNamespace(), owner.GetName()+"-"
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: owner.GetName(), UID: owner.GetUID(), Controller: &yes}}
	return p
}

// keepDaemons makes every node the pods may run on have one.
func keepDaemons(a *Actor, c *choice, d *appsv1.DaemonSet, have []*corev1.Pod) {
	sample := podOf(d, &d.Spec.Template, "apps/v1", "DaemonSet")
	for n := range store.All[*corev1.Node](a.Store) {
		there := slices.ContainsFunc(have, func(p *corev1.Pod) bool { return p.Spec.NodeName == n.Name })
		if !there && n.DeletionTimestamp == nil && selects(sample, n) && tolerates(sample, n) {
			p := sample.DeepCopy()
			p.Spec.NodeName = n.Name
			c.offer(a.make(p))
		}
	}
}
