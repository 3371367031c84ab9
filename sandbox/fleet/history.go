// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// History is every change of Nodes, NodeClaims, NodePools and Pods that the API server showed. It only grows. The zero
// value is ready; its methods are safe for concurrent use.
//
// Each kind of object has a watch of its own, and one may be ahead of another. What is asked of a History is worked out
// in the order of the resource versions, which is the order in which things happened; so it is asked when all is quiet.
type History struct {
	mu      sync.Mutex
	changes []change
}

// change is what an object became. One of node, claim, pool and pod is set; key names it among its kind.
type change struct {
	version uint64
	seen    time.Time
	key     string
	gone    bool
	node    *node
	claim   *claim
	pool    *Pool
	pod     *pod
}

func (h *History) subscriptions(core informers.SharedInformerFactory, custom dynamicinformer.DynamicSharedInformerFactory) []subscription {
	return []subscription{
		{core.Core().V1().Nodes().Informer(), record(h, func(n *corev1.Node) change { return change{node: new(readNode(n))} })},
		{core.Core().V1().Pods().Informer(), record(h, func(p *corev1.Pod) change { return change{pod: new(readPod(p))} })},
		{custom.ForResource(claimsResource).Informer(), record(h, func(c *unstructured.Unstructured) change { return change{claim: new(readClaim(c))} })},
		{custom.ForResource(poolsResource).Informer(), record(h, func(p *unstructured.Unstructured) change { return change{pool: new(readPool(p))} })},
	}
}

func record[T metav1.Object](h *History, read func(T) change) cache.ResourceEventHandler {
	add := func(object T, gone bool) {
		c := read(object)
		c.key, c.gone, c.seen = object.GetNamespace()+"/"+object.GetName(), gone, time.Now()
		c.version, _ = strconv.ParseUint(object.GetResourceVersion(), 10, 64) // the API server's are numbers
		h.add(c)
	}
	return handle(func(object T) { add(object, false) }, func(object T) { add(object, true) })
}

func (h *History) add(c change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.changes = append(h.changes, c)
}

// inOrder returns all changes, in the order in which they happened.
func (h *History) inOrder() []change {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := slices.Clone(h.changes)
	slices.SortStableFunc(all, func(a, b change) int {
		switch {
		case a.version < b.version:
			return -1
		case a.version > b.version:
			return 1
		}
		return 0
	})
	return all
}
