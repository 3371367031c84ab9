// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"maps"
	"reflect"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coschedulingv1alpha1 "karpenter/api/coscheduling/v1alpha1"
	"karpenter/kube/convert"
	"karpenter/kube/volumes"
	"karpenter/world"
)

// podFeed updates pods and nodes in the world when volumes, devices or the
// objects that select pods change. Each of these has its own informer. The lock
// ensures that a pod is converted with the latest of each, and that a deleted
// pod is not added again.
type podFeed struct {
	world   *world.World
	convert convert.Converter
	Sources

	mu        sync.Mutex
	dependent map[string]*corev1.Pod // that name objects of optional kinds, by namespace/name
	blind     map[reflect.Type]bool  // kinds of dynamic resource allocation that cannot be read
}

func (m *podFeed) handlers() []handler {
	return []handler{
		handle(&storagev1.StorageClass{}, again(m, m.Volumes.SetClass), again(m, m.Volumes.DeleteClass)),
		handle(&corev1.PersistentVolume{}, again(m, m.Volumes.SetVolume), again(m, m.Volumes.DeleteVolume)),
		handle(&corev1.PersistentVolumeClaim{}, again(m, m.Volumes.SetClaim), again(m, m.Volumes.DeleteClaim)),
		handle(&corev1.Pod{}, m.setPod, m.deletePod),
		handle(&storagev1.CSINode{}, func(n *storagev1.CSINode) { m.world.SetVolumeLimits(n.Name, volumes.Limits(n)) },
			func(n *storagev1.CSINode) { m.world.SetVolumeLimits(n.Name, nil) }),
	}
}

// selecting lists the handlers of the kinds from which default topology spread
// is derived.
func (m *podFeed) selecting() []handler {
	if m.Spread == nil {
		return nil
	}
	return []handler{
		handle(&corev1.Service{}, again(m, m.Spread.SetService), again(m, m.Spread.DeleteService)),
		handle(&appsv1.ReplicaSet{}, again(m, m.Spread.SetReplicaSet), again(m, m.Spread.DeleteReplicaSet)),
		handle(&appsv1.StatefulSet{}, again(m, m.Spread.SetStatefulSet), again(m, m.Spread.DeleteStatefulSet)),
		handle(&corev1.ReplicationController{}, again(m, m.Spread.SetReplicationController), again(m, m.Spread.DeleteReplicationController)),
	}
}

func (m *podFeed) setPod(p *corev1.Pod) {
	m.mu.Lock()
	defer m.mu.Unlock()
	others := m.Volumes.SetPod(p)
	if m.Spread != nil {
		m.Spread.SetPod(p)
	}
	if m.Devices != nil {
		others = append(others, m.Devices.SetPod(p).Pods...)
	}
	if p.Spec.SchedulingGroup != nil || p.Labels[coschedulingv1alpha1.PodGroupLabel] != "" || len(p.Spec.ResourceClaims) > 0 {
		m.dependent[key(p)] = p
	} else {
		delete(m.dependent, key(p))
	}
	m.show(p)
	m.renew(others)
}

func key(p *corev1.Pod) string { return p.Namespace + "/" + p.Name }

// unread returns why objects of the kind cannot be read.
func (m *podFeed) unread(kind client.Object) error {
	if m.Unread == nil {
		return nil
	}
	return m.Unread(kind)
}

// without records whether a kind is missing. If PodGroups are missing, their pods
// count as pods without a PodGroup. If kinds of dynamic resource allocation are
// missing, pods with ResourceClaims are rejected.
func (m *podFeed) without(kind client.Object, unread bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch kind.(type) {
	case *schedulingv1beta1.PodGroup:
		m.convert.PodGroupsUnread = unread
	case *coschedulingv1alpha1.CoschedulingPodGroup:
		m.convert.Coscheduling = !unread
	case *resourcev1.DeviceClass, *resourcev1.ResourceClaim, *resourcev1.ResourceSlice:
		m.blind[reflect.TypeOf(kind)] = unread
		m.convert.Devices = m.Devices.Of
		if slices.Contains(slices.Collect(maps.Values(m.blind)), true) {
			m.convert.Devices = nil
		}
	default:
		return
	}
	for _, k := range slices.Sorted(maps.Keys(m.dependent)) {
		m.show(m.dependent[k])
	}
}

func (m *podFeed) deletePod(p *corev1.Pod) {
	m.mu.Lock()
	defer m.mu.Unlock()
	others := m.Volumes.DeletePod(p)
	if m.Spread != nil {
		m.Spread.DeletePod(p)
	}
	if m.Devices != nil {
		others = append(others, m.Devices.DeletePod(p).Pods...)
	}
	if m.Waits != nil {
		m.Waits.Delete(p)
	}
	delete(m.dependent, key(p))
	m.world.DeletePod(p.Namespace, p.Name)
	m.renew(others)
}

// renew passes pods to the world again whose conversion has changed.
func (m *podFeed) renew(pods []*corev1.Pod) {
	for _, p := range pods {
		m.show(p)
	}
}

// show passes the pod to all receivers. Metrics come first, because a decision
// can follow at once.
func (m *podFeed) show(p *corev1.Pod) {
	known := m.convert.Pod(p)
	if m.Waits != nil {
		m.Waits.Set(p, known.Pending && known.Awaits == "")
	}
	m.world.SetPod(known)
}

// again records a change and renews the pods that it concerns.
func again[T any](m *podFeed, change func(T) []*corev1.Pod) func(T) {
	return func(o T) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.renew(change(o))
	}
}
