// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"karpenter/kube/convert"
	"karpenter/kube/volumes"
	"karpenter/world"
)

// podFeed keeps what the world knows of pods and nodes in step with volumes, and
// with what selects pods. All of these come from informers of their own: under
// the lock, the latest of each is what a pod is converted with, and none is
// brought back that is gone.
type podFeed struct {
	world   *world.World
	convert convert.Converter
	Sources

	mu sync.Mutex
}

func (m *podFeed) handlers() []handler {
	return slices.Concat(m.selecting(), m.devices(), []handler{
		handle(&storagev1.StorageClass{}, again(m, m.Volumes.SetClass), again(m, m.Volumes.DeleteClass)),
		handle(&corev1.PersistentVolume{}, again(m, m.Volumes.SetVolume), again(m, m.Volumes.DeleteVolume)),
		handle(&corev1.PersistentVolumeClaim{}, again(m, m.Volumes.SetClaim), again(m, m.Volumes.DeleteClaim)),
		handle(&corev1.Pod{}, m.setPod, m.deletePod),
		handle(&storagev1.CSINode{}, func(n *storagev1.CSINode) { m.world.SetVolumeLimits(n.Name, volumes.Limits(n)) },
			func(n *storagev1.CSINode) { m.world.SetVolumeLimits(n.Name, nil) }),
	})
}

// selecting lists the handlers of what default constraints are deduced from.
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
	m.show(p)
	m.renew(others)
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
	m.world.DeletePod(p.Namespace, p.Name)
	m.renew(others)
}

// renew tells the world again of pods that are something else now.
func (m *podFeed) renew(pods []*corev1.Pod) {
	for _, p := range pods {
		m.show(p)
	}
}

// show tells those who hear of pods what the pod is now. Who measures comes
// first: a decision may follow at once.
func (m *podFeed) show(p *corev1.Pod) {
	known := m.convert.Pod(p)
	if m.Waits != nil {
		m.Waits.Set(p, known.Pending)
	}
	m.world.SetPod(known)
}

// again takes in a change and renews the pods it concerns.
func again[T any](m *podFeed, change func(T) []*corev1.Pod) func(T) {
	return func(o T) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.renew(change(o))
	}
}
