// SPDX-License-Identifier: Apache-2.0

package meter_test

import (
	"context"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"karpenter/kube/meter"
)

// oneInformer is a cache with one informer, which keeps what is in the store.
type oneInformer struct {
	cache.Informers
	toolscache.SharedIndexInformer
	store  toolscache.Store
	synced bool
}

func (o *oneInformer) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return o, nil
}
func (o *oneInformer) GetStore() toolscache.Store { return o.store }
func (o *oneInformer) HasSynced() bool            { return o.synced }

// Pods are shown as the informer keeps them once it has all of them; the reader
// is asked for nodes only.
func TestStoredPods(t *testing.T) {
	informer := &oneInformer{store: toolscache.NewStore(toolscache.MetaNamespaceKeyFunc)}
	for _, name := range []string{"a", "b"} {
		if err := informer.store.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	others := fake.NewClientBuilder().WithObjects(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "not in the cache"}}).Build()
	reader, err := meter.Stored(t.Context(), others, informer)
	if err != nil {
		t.Fatal(err)
	}
	reg := prometheus.NewPedanticRegistry()
	meter.RegisterState(reg, reader, func() bool { return true })
	series := func() int {
		t.Helper()
		n, err := testutil.GatherAndCount(reg)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := series(); n != 0 {
		t.Errorf("%d series before the pods are known, want none", n)
	}
	informer.synced = true
	if n := series(); n != 2 {
		t.Errorf("%d series of two pods", n)
	}
}
