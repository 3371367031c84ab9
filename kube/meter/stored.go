// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// stored is a Reader that also gives access to the cached pods without copies.
// A List copies: each scrape would copy a hundred thousand pods twice.
type stored struct {
	client.Reader
	synced func() bool
	pods   toolscache.Store
}

// Stored returns a Reader that reads from the given one, and gives metrics
// access to the pods in the informers. If the informers are of an unknown type,
// it uses only the Reader.
func Stored(ctx context.Context, reader client.Reader, informers cache.Informers) (client.Reader, error) {
	informer, err := informers.GetInformer(ctx, &corev1.Pod{}, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, err
	}
	store, ok := informer.(interface{ GetStore() toolscache.Store })
	if !ok {
		return reader, nil
	}
	return &stored{reader, informer.HasSynced, store.GetStore()}, nil
}

// podsOf returns all pods, which must not be modified, and false if they cannot
// be read.
func podsOf(ctx context.Context, reader client.Reader) ([]*corev1.Pod, bool) {
	if s, ok := reader.(*stored); ok {
		return s.all()
	}
	list := &corev1.PodList{}
	if err := reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, false
	}
	out := make([]*corev1.Pod, len(list.Items))
	for i := range list.Items {
		out[i] = &list.Items[i]
	}
	return out, true
}

func (s *stored) all() ([]*corev1.Pod, bool) {
	if !s.synced() {
		return nil, false
	}
	kept := s.pods.List()
	out := make([]*corev1.Pod, 0, len(kept))
	for _, o := range kept {
		if p, ok := o.(*corev1.Pod); ok {
			out = append(out, p)
		}
	}
	return out, true
}
