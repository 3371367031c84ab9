package feed

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"karpenter/kube/convert"
	"karpenter/kube/volumes"
	"karpenter/world"
)

// mounts keeps what the world knows of pods and nodes in step with volumes. Pods
// and volumes come from informers of their own: under the lock, the latest of
// both is what a pod is converted with, and none is brought back that is gone.
type mounts struct {
	world   *world.World
	convert convert.Converter
	store   *volumes.Store

	mu sync.Mutex
}

func (m *mounts) handlers() []handler {
	return []handler{
		handle(&storagev1.StorageClass{}, again(m, m.store.SetClass), again(m, m.store.DeleteClass)),
		handle(&corev1.PersistentVolume{}, again(m, m.store.SetVolume), again(m, m.store.DeleteVolume)),
		handle(&corev1.PersistentVolumeClaim{}, again(m, m.store.SetClaim), again(m, m.store.DeleteClaim)),
		handle(&corev1.Pod{}, m.setPod, m.deletePod),
		handle(&storagev1.CSINode{}, func(n *storagev1.CSINode) { m.world.SetVolumeLimits(n.Name, volumes.Limits(n)) },
			func(n *storagev1.CSINode) { m.world.SetVolumeLimits(n.Name, nil) }),
	}
}

func (m *mounts) setPod(p *corev1.Pod) {
	m.mu.Lock()
	defer m.mu.Unlock()
	others := m.store.SetPod(p)
	m.world.SetPod(m.convert.Pod(p))
	m.renew(others)
}

func (m *mounts) deletePod(p *corev1.Pod) {
	m.mu.Lock()
	defer m.mu.Unlock()
	others := m.store.DeletePod(p)
	m.world.DeletePod(p.Namespace, p.Name)
	m.renew(others)
}

// renew tells the world again of pods whose volumes are elsewhere now.
func (m *mounts) renew(pods []*corev1.Pod) {
	for _, p := range pods {
		m.world.SetPod(m.convert.Pod(p))
	}
}

// again takes in a change of volumes and renews the pods that use them.
func again[T any](m *mounts, change func(T) []*corev1.Pod) func(T) {
	return func(o T) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.renew(change(o))
	}
}
