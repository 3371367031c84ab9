// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	features "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	tracker "k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/controller/daemon"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	"k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
)

// scheduler is kube-scheduler's own framework with every plugin of its default
// profile. It talks to no API server: what its listers know and the snapshot
// it decides on are put in by hand.
type scheduler struct {
	ctx       context.Context
	framework framework.Framework
	cluster   *cluster
	listers   informers.SharedInformerFactory
	devices   *dynamicresources.DefaultDRAManager
}

// newScheduler returns a scheduler that has default constraints if any are
// given.
func newScheduler(t *testing.T, defaults ...corev1.TopologySpreadConstraint) *scheduler {
	t.Helper()
	metrics.Register()
	// Alpha: without the gate the API server takes no pods whose tolerations compare numbers.
	if err := features.DefaultMutableFeatureGate.Set("TaintTolerationComparisonOperators=true"); err != nil {
		t.Fatal(err)
	}
	ctx := klog.NewContext(t.Context(), klog.Logger{})
	config, err := latest.Default()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range config.Profiles[0].PluginConfig {
		if args, ok := c.Args.(*schedulerconfig.PodTopologySpreadArgs); ok && len(defaults) > 0 {
			args.DefaultConstraints, args.DefaultingType = defaults, schedulerconfig.ListDefaulting
		}
	}
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "nowhere.invalid"})
	if err != nil {
		t.Fatal(err)
	}
	listers := informers.NewSharedInformerFactory(client, 0) // never started
	claims := assumecache.NewAssumeCache(klog.Logger{}, listers.Resource().V1().ResourceClaims().Informer(), "ResourceClaim", "", nil)
	slices, err := tracker.StartTracker(ctx, tracker.Options{SliceInformer: listers.Resource().V1().ResourceSlices(), KubeClient: client})
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{Snapshot: cache.NewEmptySnapshot()}
	devices := dynamicresources.NewDRAManager(ctx, claims, slices, listers)
	f, err := runtime.NewFramework(ctx, plugins.NewInTreeRegistry(), &config.Profiles[0],
		runtime.WithClientSet(client), runtime.WithInformerFactory(listers), runtime.WithSnapshotSharedLister(c),
		runtime.WithParallelism(1),
		runtime.WithSharedDRAManager(devices),
		runtime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(listers.Storage().V1().CSINodes().Lister())))
	if err != nil {
		t.Fatal(err)
	}
	return &scheduler{ctx: ctx, framework: f, cluster: c, listers: listers, devices: devices}
}

// know makes the objects of the situation all that the scheduler's listers
// have.
func (s *scheduler) know(c *situation) {
	disks, defaults := storage{}, defaults{}
	if c.storage != nil {
		disks = *c.storage
	}
	if c.defaults != nil {
		defaults = *c.defaults
	}
	core, apps, store := s.listers.Core().V1(), s.listers.Apps().V1(), s.listers.Storage().V1()
	replace(core.Namespaces().Informer(), c.namespaces)
	replace(core.PersistentVolumeClaims().Informer(), disks.claims)
	replace(core.PersistentVolumes().Informer(), disks.volumes)
	replace(store.StorageClasses().Informer(), disks.classes)
	replace(store.CSINodes().Informer(), disks.nodes)
	replace(core.Services().Informer(), defaults.services)
	replace(core.ReplicationControllers().Informer(), defaults.controllers)
	replace(apps.ReplicaSets().Informer(), defaults.replicaSets)
	replace(apps.StatefulSets().Informer(), defaults.statefulSets)
}

// replace fills the store of an informer that never runs.
func replace[T any](informer toolscache.SharedIndexInformer, objects []T) {
	list := make([]any, len(objects))
	for i, o := range objects {
		list[i] = o
	}
	if err := informer.GetIndexer().Replace(list, ""); err != nil {
		panic(err) // a store in memory
	}
}

// cluster is the snapshot of the moment.
type cluster struct{ *cache.Snapshot }

// see makes the scheduler look at these nodes and at those of the pods that
// are bound and have not ended, as its informers would.
func (s *scheduler) see(nodes []*corev1.Node, pods []*corev1.Pod) {
	running := slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool {
		return p.Spec.NodeName == "" || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	})
	s.cluster.Snapshot = cache.NewSnapshot(running, nodes)
}

// refusal returns why the scheduler would not bind the pod to the node, "" if
// it would.
func (s *scheduler) refusal(pod *corev1.Pod, node string) string {
	return s.refusals(pod, node)[0]
}

// refusals returns for each node why the scheduler would not bind the pod to
// it, "" if it would.
func (s *scheduler) refusals(pod *corev1.Pod, nodes ...string) []string {
	out := make([]string, len(nodes))
	state := framework.NewCycleState()
	result, status, _ := s.framework.RunPreFilterPlugins(s.ctx, state, pod)
	for i, node := range nodes {
		info, err := s.cluster.NodeInfos().Get(node)
		switch {
		case !status.IsSuccess():
			out[i] = reasons(status)
		case !result.AllNodes() && !result.NodeNames.Has(node):
			out[i] = "NodeAffinity: it names other nodes"
		case err != nil:
			out[i] = err.Error()
		default:
			if status := s.framework.RunFilterPlugins(s.ctx, state, pod, info); !status.IsSuccess() {
				out[i] = reasons(status)
			}
		}
	}
	return out
}

func reasons(status *fwk.Status) string {
	return fmt.Sprintf("%s: %s", status.Plugin(), strings.Join(status.Reasons(), ", "))
}

// daemonPod returns the pod the DaemonSet controller makes for the node, or nil.
func daemonPod(d *appsv1.DaemonSet, node *corev1.Node) *corev1.Pod {
	if run, _ := daemon.NodeShouldRunDaemonPod(klog.Logger{}, node, d); !run {
		return nil
	}
	return daemon.NewPod(d, node.Name).DeepCopy()
}
