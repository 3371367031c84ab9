// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/api/scheme"
	"karpenter/kube/feed"
	"karpenter/sim/store"
)

// watched is a store with a cache of its pods and one who listens.
type watched struct {
	*testing.T
	api   client.Client
	cache *lagging
	pods  *informer
	heard []string
}

func watching(t *testing.T, existing ...string) *watched {
	t.Helper()
	w := &watched{T: t}
	s := runtime.NewScheme()
	w.must(kubescheme.AddToScheme(s))
	w.must(scheme.AddToScheme(s))
	server, err := store.NewServer(s)
	w.must(err)
	st := store.New(server, rand.New(rand.NewPCG(1, 1)))
	w.api = st.Client("test")
	for _, name := range existing {
		w.create(name)
	}
	w.cache, err = newCache(st, feed.Trims(), func() string { return "tester" })
	w.must(err)
	w.must(w.cache.IndexField(t.Context(), &corev1.Pod{}, "spec.nodeName", func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }))
	i, err := w.cache.GetInformer(t.Context(), &corev1.Pod{})
	w.must(err)
	w.pods = i.(*informer)
	name := func(o any) string { return o.(*corev1.Pod).Name }
	_, err = w.pods.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(o any, initial bool) {
			what := "new "
			if initial {
				what = "initial "
			}
			w.heard = append(w.heard, what+name(o))
		},
		UpdateFunc: func(_, o any) { w.heard = append(w.heard, "changed "+name(o)) },
		DeleteFunc: func(o any) {
			if gone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
				w.heard = append(w.heard, "vanished "+gone.Key)
				return
			}
			w.heard = append(w.heard, "deleted "+name(o))
		},
	})
	w.must(err)
	return w
}

func (w *watched) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func pod(name string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
	p.Spec.Containers = []corev1.Container{{Name: "c", Image: "image"}}
	return p
}

func (w *watched) create(name string) { w.must(w.api.Create(w.Context(), pod(name))) }

func (w *watched) bind(name, node string) {
	w.must(w.api.SubResource("binding").Create(w.Context(), pod(name), &corev1.Binding{Target: corev1.ObjectReference{Name: node}}))
}

// cached returns the names of the pods the cache has on the node.
func (w *watched) cached(node string) []string {
	w.Helper()
	list := &corev1.PodList{}
	w.must(w.cache.List(w.Context(), list, client.MatchingFields{"spec.nodeName": node}))
	var out []string
	for _, p := range list.Items {
		out = append(out, p.Name)
		if p.Spec.Containers[0].Image != "" {
			w.Error("the cache did not trim a pod")
		}
	}
	return out
}

func (w *watched) expect(want ...string) {
	w.Helper()
	for w.pods.listeners[0].backlog() > 0 {
		w.pods.listeners[0].hear()
	}
	if !slices.Equal(w.heard, want) {
		w.Errorf("heard %q, want %q", w.heard, want)
	}
	w.heard = nil
}

func TestCacheLags(t *testing.T) {
	w := watching(t, "b", "a")
	if w.pods.listeners[0].HasSynced() {
		t.Error("synced before anything was heard")
	}
	w.expect("initial a", "initial b")
	if !w.pods.listeners[0].HasSynced() {
		t.Error("not synced though all was heard")
	}
	w.bind("a", "n")
	w.create("c")
	w.must(w.api.Delete(t.Context(), pod("b")))
	if got := w.cached("n"); len(got) != 0 || w.pods.behind() != 3 {
		t.Errorf("the cache has %v on the node before it is told", got)
	}
	w.must(w.pods.tell())
	if got := w.cached("n"); !slices.Equal(got, []string{"a"}) {
		t.Errorf("the cache has %v on the node, want a", got)
	}
	w.must(w.pods.tell())
	w.must(w.pods.tell())
	w.must(w.pods.tell())
	w.expect("changed a", "new c", "deleted b")
	if got := w.cached(""); !slices.Equal(got, []string{"c"}) {
		t.Errorf("the cache has %v unbound, want c", got)
	}
}

func TestCacheRelists(t *testing.T) {
	w := watching(t, "a", "b", "c")
	w.expect("initial a", "initial b", "initial c")
	w.bind("a", "n")
	w.create("d")
	w.must(w.api.Delete(t.Context(), pod("b")))
	w.must(w.pods.relist())
	w.expect("changed a", "new d", "vanished default/b")
	if w.pods.behind() != 0 {
		t.Error("what was listed is to be heard again")
	}
}

func TestCacheNeedsIndexes(t *testing.T) {
	w := watching(t)
	if err := w.cache.List(t.Context(), &corev1.PodList{}, client.MatchingFields{"status.phase": "Running"}); err == nil {
		t.Error("a field without an index was found by")
	}
}
