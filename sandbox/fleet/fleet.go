// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// The autoscaler's own resources.
var (
	claimsResource = schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodeclaims"}
	poolsResource  = schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodepools"}
)

// refusals selects the events by which the autoscaler says why pods wait.
const refusals = "source=karpenter,reason=FailedScheduling"

// Fleet is a cluster being watched. Its methods are safe for concurrent use.
type Fleet struct {
	ledger *ledger
}

// Watch returns when everything there is has been seen, and keeps watching until ctx is done. The CRDs must be served.
// Every change is written into history, too, unless that is nil. Machines that do not carry their price cost what prices,
// which may be nil, say.
func Watch(ctx context.Context, config *rest.Config, history *History, prices Prices) (*Fleet, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1 // a handful of watches
	config.UserAgent = "sandbox-view"
	compact := rest.CopyConfig(config)
	compact.ContentType = runtime.ContentTypeProtobuf
	compact.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	client, err := kubernetes.NewForConfig(compact)
	if err != nil {
		return nil, err
	}
	untyped, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	f := &Fleet{ledger: newLedger(time.Now, prices)}
	core := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(trimPod))
	events := informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.FieldSelector = refusals }))
	custom := dynamicinformer.NewDynamicSharedInformerFactory(untyped, 0)
	subscriptions := []subscription{
		{core.Core().V1().Nodes().Informer(), f.ledger.nodeEvents()},
		{core.Core().V1().Pods().Informer(), f.ledger.podEvents()},
		{custom.ForResource(claimsResource).Informer(), f.ledger.claimEvents()},
		{custom.ForResource(poolsResource).Informer(), f.ledger.poolEvents()},
		{events.Core().V1().Events().Informer(), f.ledger.refusalEvents()},
	}
	if history != nil {
		subscriptions = append(subscriptions, history.subscriptions(core, custom)...)
	}
	synced, err := add(subscriptions...)
	if err != nil {
		return nil, err
	}
	core.Start(ctx.Done())
	events.Start(ctx.Done())
	custom.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return nil, fmt.Errorf("first sight of the cluster: %w", context.Cause(ctx))
	}
	return f, nil
}

// View tells what there is.
func (f *Fleet) View() View { return f.ledger.view() }

// Changed returns a channel that is closed at the next change. Ask before View, then none is missed.
func (f *Fleet) Changed() <-chan struct{} { return f.ledger.next() }

type subscription struct {
	informer cache.SharedIndexInformer
	handler  cache.ResourceEventHandler
}

// add subscribes all and returns what tells that each handler has seen the first list.
func add(all ...subscription) ([]cache.InformerSynced, error) {
	var synced []cache.InformerSynced
	var errs []error
	for _, s := range all {
		registration, err := s.informer.AddEventHandler(s.handler)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		synced = append(synced, registration.HasSynced)
	}
	return synced, errors.Join(errs...)
}

// handle makes a handler of what to do with an object that exists and with one that is gone.
func handle[T any](put, drop func(T)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { put(object.(T)) },
		UpdateFunc: func(_, object any) { put(object.(T)) },
		DeleteFunc: func(object any) {
			if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = gone.Obj
			}
			if object, ok := object.(T); ok {
				drop(object)
			}
		},
	}
}

func (l *ledger) nodeEvents() cache.ResourceEventHandler {
	return handle(func(n *corev1.Node) { l.putNode(readNode(n)) }, func(n *corev1.Node) { l.dropNode(n.Name) })
}

func (l *ledger) claimEvents() cache.ResourceEventHandler {
	return handle(func(c *unstructured.Unstructured) { l.putClaim(readClaim(c)) },
		func(c *unstructured.Unstructured) { l.dropClaim(c.GetName()) })
}

func (l *ledger) poolEvents() cache.ResourceEventHandler {
	return handle(func(p *unstructured.Unstructured) { l.putPool(readPool(p)) },
		func(p *unstructured.Unstructured) { l.dropPool(p.GetName()) })
}

func (l *ledger) podEvents() cache.ResourceEventHandler {
	key := func(p *corev1.Pod) string { return p.Namespace + "/" + p.Name }
	return handle(func(p *corev1.Pod) { l.putPod(key(p), readPod(p)) }, func(p *corev1.Pod) { l.dropPod(key(p), readPod(p)) })
}

func (l *ledger) refusalEvents() cache.ResourceEventHandler {
	return handle(func(e *corev1.Event) { l.putRefusal(e.InvolvedObject.UID, e.Message) }, func(*corev1.Event) {})
}
