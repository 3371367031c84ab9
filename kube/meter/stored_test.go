package meter_test

import (
	"context"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"karpenter/kube/meter"
)

// oneInformer is a cache with one informer.
type oneInformer struct {
	cache.Informers
	toolscache.SharedIndexInformer
}

func (o oneInformer) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return o.SharedIndexInformer, nil
}

// Pods are shown as the informer keeps them once it has all of them; the reader
// is asked for nodes only.
func TestStoredPods(t *testing.T) {
	pods := toolscache.NewSharedIndexInformer(&toolscache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return &corev1.PodList{Items: []corev1.Pod{
				{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}}, {ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "b"}},
			}}, nil
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil },
	}, &corev1.Pod{}, 0, nil)
	others := fake.NewClientBuilder().WithObjects(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "not in the cache"}}).Build()
	reader, err := meter.Stored(t.Context(), others, oneInformer{SharedIndexInformer: pods})
	if err != nil {
		t.Fatal(err)
	}
	reg := prometheus.NewPedanticRegistry()
	meter.RegisterState(reg, reader, func() bool { return true })
	if n := testutil.CollectAndCount(reg); n != 0 {
		t.Errorf("%d series before the pods are known, want none", n)
	}
	go pods.RunWithContext(t.Context())
	if !toolscache.WaitForCacheSync(t.Context().Done(), pods.HasSynced) {
		t.Fatal("the informer has not synced")
	}
	if n := testutil.CollectAndCount(reg); n != 2 {
		t.Errorf("%d series of two pods", n)
	}
}
