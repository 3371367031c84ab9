// SPDX-License-Identifier: Apache-2.0

// Package kubelet simulates the kubelets of instances that do not exist. For every Node annotated
// kwok.x-k8s.io/node=fake it does what a kubelet does as seen from the API server: it renews the node's Lease, makes
// the node Ready, runs the pods bound to it, and confirms their deletion. Nothing else of a kubelet exists: no logs,
// exec, port-forward, probes, readiness gates, volumes or image pulls.
//
// Vocabulary: a node is simulated if it carries the annotation; it is alive unless it is annotated
// sandbox/heartbeat=false. A node that is not alive behaves like an instance without power: its Lease ages and its pods
// neither start nor stop. A node whose object is deleted is gone, and its pods are left to pod garbage
// collection, as after a real instance's end.
//
// Invariants:
//  1. Taints, labels, annotations, capacity and allocatable that exist are never changed.
//  2. A pod's end is confirmed by deletion with grace 0 and its UID as precondition, never before min(grace, stop delay).
//  3. Every decision is a function of the cached object, first-sight times and options (nextStep, nodePatch), so the
//     process may be killed and started again at any time.
package kubelet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Annotations that steer the simulation.
const (
	FakeNodeAnnotation  = "kwok.x-k8s.io/node" // on a Node: "fake" has it simulated
	HeartbeatAnnotation = "sandbox/heartbeat"  // on a Node: "false" makes the instance dead
	ReadyAnnotation     = "sandbox/ready"      // on a Node: "false" keeps it NotReady
	DurationAnnotation  = "sandbox/duration"   // on a Pod meant to complete: how long it runs, such as "30s"
)

// Workers per kind of work. Heartbeats have their own, for a node whose Lease waits behind pods is declared dead.
const (
	nodeWorkers  = 8
	podWorkers   = 32
	leaseWorkers = 16
)

const byNode = "node" // index of pods by node name

// fleet is all simulated kubelets of one cluster.
type fleet struct {
	client  kubernetes.Interface
	options Options
	log     *slog.Logger
	now     func() time.Time

	nodes cache.Indexer
	pods  cache.Indexer

	nodeWork  *work
	podWork   *work
	leaseWork *work

	nodeSights *sightings[nodeSight]
	podSights  *sightings[podSight]
	nodeIPs    *addresses
	podIPs     *addresses
	leases     *leases
}

// Run simulates kubelets until ctx is done, then returns nil. The cluster need not be reachable yet.
func Run(ctx context.Context, config *rest.Config, options Options, log *slog.Logger) error {
	if err := options.Validate(); err != nil {
		return err
	}
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	config.QPS = -1 // the worker pools are the limit
	config.UserAgent = "sandbox-kubelets"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	return run(ctx, client, options, log)
}

func run(ctx context.Context, client kubernetes.Interface, options Options, log *slog.Logger) error {
	nodeInformers := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(trim))
	podInformers := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(trim),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermNotEqualSelector("spec.nodeName", "").String()
		}))
	nodes, pods := nodeInformers.Core().V1().Nodes().Informer(), podInformers.Core().V1().Pods().Informer()
	if err := pods.AddIndexers(cache.Indexers{byNode: nodeNameOf}); err != nil {
		return err
	}
	f := newFleet(client, options, log, nodes.GetIndexer(), pods.GetIndexer())
	_, nodesErr := nodes.AddEventHandler(f.nodeEvents())
	_, podsErr := pods.AddEventHandler(f.podEvents())
	if err := errors.Join(nodesErr, podsErr); err != nil {
		return err
	}
	nodeInformers.Start(ctx.Done())
	podInformers.Start(ctx.Done())
	defer nodeInformers.Shutdown()
	defer podInformers.Shutdown()
	if !cache.WaitForCacheSync(ctx.Done(), nodes.HasSynced, pods.HasSynced) {
		return nil // stopped before the cluster answered
	}
	f.work(ctx)
	return nil
}

func newFleet(client kubernetes.Interface, options Options, log *slog.Logger, nodes, pods cache.Indexer) *fleet {
	f := &fleet{
		client: client, options: options, log: log, now: time.Now,
		nodes: nodes, pods: pods,
		nodeSights: newSightings[nodeSight](), podSights: newSightings[podSight](),
		nodeIPs: newAddresses(nodeRange), podIPs: newAddresses(podRange),
		leases: newLeases(),
	}
	f.nodeWork = newWork(nodeWorkers, log, f.syncNode)
	f.podWork = newWork(podWorkers, log, f.syncPod)
	f.leaseWork = newWork(leaseWorkers, log, f.syncLease)
	return f
}

func nodeNameOf(object any) ([]string, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return nil, fmt.Errorf("index of pods: unexpected %T", object)
	}
	return []string{pod.Spec.NodeName}, nil
}

// work runs all workers until ctx is done and they have finished.
func (f *fleet) work(ctx context.Context) {
	var all sync.WaitGroup
	for _, w := range []*work{f.nodeWork, f.podWork, f.leaseWork} {
		all.Go(func() { w.run(ctx) })
	}
	all.Wait()
}

func (f *fleet) nodeEvents() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { f.nodeSeen(nil, object.(*corev1.Node)) },
		UpdateFunc: func(before, after any) { f.nodeSeen(before.(*corev1.Node), after.(*corev1.Node)) },
		DeleteFunc: func(object any) {
			if node, ok := last[*corev1.Node](object); ok {
				f.nodeSights.forget(node.UID)
				f.nodeIPs.release(node.UID)
				f.leaseWork.add(node.Name)
			}
		},
	}
}

// nodeSeen queues what a node's change may make due. before is nil when the node is new.
func (f *fleet) nodeSeen(before, node *corev1.Node) {
	if !simulated(node) {
		return
	}
	if before != nil && (before.UID != node.UID || !simulated(before)) {
		before = nil // a namesake, or a node that is simulated from now on
	}
	f.nodeSights.observe(node.UID, func(s *nodeSight, isNew bool) {
		if isNew {
			s.first = f.now()
		}
	})
	if ip := internalIP(node); ip != "" {
		f.nodeIPs.claim(node.UID, ip)
	}
	f.nodeWork.add(node.Name)
	if before != nil && alive(before) == alive(node) && ready(before) == ready(node) {
		return
	}
	if before == nil || alive(before) != alive(node) {
		f.leaseWork.add(node.Name)
	}
	keys, err := f.pods.IndexKeys(byNode, node.Name)
	if err != nil {
		f.log.Error("find pods of a node", "node", node.Name, "error", err)
	}
	for _, key := range keys {
		f.podWork.add(key)
	}
}

func (f *fleet) podEvents() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { f.podSeen(object.(*corev1.Pod)) },
		UpdateFunc: func(_, after any) { f.podSeen(after.(*corev1.Pod)) },
		DeleteFunc: func(object any) {
			if pod, ok := last[*corev1.Pod](object); ok {
				f.podSights.forget(pod.UID)
				f.podIPs.release(pod.UID)
			}
		},
	}
}

func (f *fleet) podSeen(pod *corev1.Pod) {
	f.podSights.observe(pod.UID, func(s *podSight, isNew bool) { s.update(pod, isNew, f.now()) })
	if pod.Status.PodIP != "" && !pod.Spec.HostNetwork {
		f.podIPs.claim(pod.UID, pod.Status.PodIP)
	}
	f.podWork.add(cache.NewObjectName(pod.Namespace, pod.Name).String())
}

// last returns the object of a delete event, which after a missed watch is wrapped.
func last[T any](object any) (T, bool) {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	t, ok := object.(T)
	return t, ok
}

// liveNode returns the named node if it is simulated and alive.
func (f *fleet) liveNode(name string) (*corev1.Node, bool) {
	object, exists, err := f.nodes.GetByKey(name)
	if err != nil || !exists {
		return nil, false
	}
	node, ok := object.(*corev1.Node)
	return node, ok && simulated(node) && alive(node)
}

func simulated(node *corev1.Node) bool { return node.Annotations[FakeNodeAnnotation] == "fake" }
func alive(node *corev1.Node) bool     { return node.Annotations[HeartbeatAnnotation] != "false" }

// ready reports whether the API server holds the node to be Ready.
func ready(node *corev1.Node) bool {
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
