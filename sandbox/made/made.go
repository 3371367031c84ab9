// SPDX-License-Identifier: Apache-2.0

// Package made makes large clusters of objects: nodes, their claims and the pods on them are written to etcd as
// they would be after days of growing, which takes a minute and not an hour.
//
// One instance is launched and run for real, and shows what its claim, its node and a pod look like. All others are copies
// of these. The cluster is at rest: pods fill all nodes, which are of the cheapest kind, so that there is nothing to
// consolidate.
package made

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"karpenter/sandbox/controlplane"
	"karpenter/sandbox/session"
)

const (
	namespace = metav1.NamespaceDefault
	workers   = 24          // requests at once
	look      = time.Second // how often what is waited for is looked at
	patience  = 3 * time.Minute
	complete  = "made" // file that says that all objects of a cluster are written
)

// Claims are where NodeClaims are.
var Claims = schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodeclaims"}

// Cluster says what to make.
type Cluster struct {
	Nodes, Pods int
	Cores       int // of each instance
	// Pool is the NodePool of all nodes, and its NodeClass. It must ask for instances with so many Cores.
	Pool []*unstructured.Unstructured
	// Session is what the first instance is launched with. Its provider must be KWOK.
	Session session.Options
	// Report receives, line by line, what is going on.
	Report io.Writer
}

// Validate returns an error for invalid values.
func (c *Cluster) Validate() error {
	switch {
	case c.Session.Provider != session.KWOK:
		return errors.New("clusters of objects are made for the provider " + session.KWOK + " only")
	case c.Nodes < 1 || c.Pods%c.Nodes != 0 || c.Pods == 0 || deployments%(c.Pods/c.Nodes) != 0:
		return fmt.Errorf("%d pods on %d nodes: want as many pods on each node, a divisor of %d", c.Pods, c.Nodes, deployments)
	}
	return nil
}

// In makes the cluster in the folder, unless it is there. No process is left running.
func (c *Cluster) In(ctx context.Context, folder string) error {
	if err := c.Validate(); err != nil {
		return err
	}
	mark := filepath.Join(folder, complete)
	if _, err := os.Stat(mark); err == nil {
		return nil
	}
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	fmt.Fprintf(c.Report, "sandbox: making %d nodes and %d pods in %s\n", c.Nodes, c.Pods, folder)
	first, err := c.grow(ctx, folder)
	if err != nil {
		return fmt.Errorf("grow the first node: %w", err)
	}
	if err := c.copies(ctx, folder, first); err != nil {
		return err
	}
	return os.WriteFile(mark, nil, 0o600)
}

// pattern is what everything is copied from.
type pattern struct {
	claim *unstructured.Unstructured
	node  *corev1.Node
	pod   *corev1.Pod
}

// grow makes the controller launch one instance, copies its objects, and
// removes it again.
func (c *Cluster) grow(ctx context.Context, folder string) (_ *pattern, err error) {
	options := c.Session
	options.ControlPlane.Dir = folder
	s, err := session.Start(ctx, options)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	client, untyped, err := clients(s.Config())
	if err != nil {
		return nil, err
	}
	if err := s.Apply(ctx, c.Pool); err != nil {
		return nil, err
	}
	apps := client.AppsV1().Deployments(namespace)
	first := service("first", c.probe(), 1)
	if first, err = apps.Create(ctx, first, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	p := &pattern{}
	if err := await(ctx, func(ctx context.Context) (bool, error) { return p.read(ctx, client, untyped) }); err != nil {
		return nil, fmt.Errorf("%w; the controller's log is %s", err, s.ControllerLog())
	}
	if err := apps.Delete(ctx, first.Name, metav1.DeleteOptions{}); err != nil {
		return nil, err
	}
	if err := untyped.Resource(Claims).Delete(ctx, p.claim.GetName(), metav1.DeleteOptions{}); err != nil {
		return nil, err
	}
	return p, await(ctx, func(ctx context.Context) (bool, error) {
		_, err := untyped.Resource(Claims).Get(ctx, p.claim.GetName(), metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return false, err
		}
		pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		return err == nil && len(pods.Items) == 0, err
	})
}

// read reports whether the first pod runs on a node whose claim has nothing left to wait for: it is initialized, and
// consolidatable.
func (p *pattern) read(ctx context.Context, client kubernetes.Interface, untyped dynamic.Interface) (bool, error) {
	pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{FieldSelector: "status.phase=Running"})
	if err != nil || len(pods.Items) == 0 {
		return false, err
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: "karpenter.sh/initialized=true"})
	if err != nil || len(nodes.Items) == 0 {
		return false, err
	}
	claims, err := untyped.Resource(Claims).List(ctx, metav1.ListOptions{})
	if err != nil || len(claims.Items) == 0 {
		return false, err
	}
	p.pod, p.node, p.claim = &pods.Items[0], &nodes.Items[0], &claims.Items[0]
	conditions, _, _ := unstructured.NestedSlice(p.claim.Object, "status", "conditions")
	has := func(kind string) bool {
		return slices.ContainsFunc(conditions, func(c any) bool {
			fields, ok := c.(map[string]any)
			return ok && fields["type"] == kind && fields["status"] == "True"
		})
	}
	return has("Initialized") && has("Consolidatable"), nil
}

// copies writes all objects.
func (c *Cluster) copies(ctx context.Context, folder string, of *pattern) error {
	options := c.Session.ControlPlane
	options.Dir, options.Bare = folder, true
	cp, err := controlplane.Start(ctx, options)
	if err != nil {
		return err
	}
	defer func() {
		// An API server of many objects may not stop in time. What it has answered is written.
		if stopped := cp.Stop(); stopped != nil {
			fmt.Fprintln(c.Report, "sandbox:", stopped)
		}
	}()
	config, err := clientcmd.BuildConfigFromFlags("", cp.Kubeconfig())
	if err != nil {
		return err
	}
	client, untyped, err := clients(config)
	if err != nil {
		return err
	}
	etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{cp.EtcdURL()}, DialTimeout: patience})
	if err != nil {
		return err
	}
	defer etcd.Close()
	w := &writer{Cluster: c, of: of, client: client, untyped: untyped}
	began := time.Now()
	pods, err := w.first(ctx)
	if err != nil {
		return err
	}
	all, err := newCopier(ctx, w, pods, etcd)
	if err != nil {
		return err
	}
	if err := all.all(ctx, 1, c.Nodes, all.nodeOf); err != nil {
		return err
	}
	if err := all.all(ctx, len(pods), c.Pods, all.podOf); err != nil {
		return err
	}
	fmt.Fprintf(c.Report, "sandbox: written within %v\n", time.Since(began).Round(time.Second))
	return nil
}

func clients(config *rest.Config) (kubernetes.Interface, dynamic.Interface, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	untyped, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, nil, err
	}
	config.ContentType = runtime.ContentTypeProtobuf
	client, err := kubernetes.NewForConfig(config)
	return client, untyped, err
}

func await(ctx context.Context, done wait.ConditionWithContextFunc) error {
	return wait.PollUntilContextTimeout(ctx, look, patience, true, done)
}

// first creates the first node and one pod of each deployment, and returns their names.
func (w *writer) first(ctx context.Context) ([]string, error) {
	sets, err := w.workloads(ctx)
	if err != nil {
		return nil, err
	}
	if err := w.node(ctx); err != nil {
		return nil, err
	}
	var out []string
	for i, set := range sets {
		name, err := w.pod(ctx, set, i)
		if err != nil {
			return nil, err
		}
		out = append(out, name)
	}
	return out, nil
}

// workloads makes the deployments and their replica sets, which it returns.
func (w *writer) workloads(ctx context.Context) ([]*appsv1.ReplicaSet, error) {
	var out []*appsv1.ReplicaSet
	for i := range deployments {
		d, err := w.client.AppsV1().Deployments(namespace).Create(ctx, service(name(i), w.size(i), w.Pods/deployments), metav1.CreateOptions{})
		if err != nil {
			return nil, err
		}
		set, err := w.client.AppsV1().ReplicaSets(namespace).Create(ctx, replicaSet(d), metav1.CreateOptions{})
		if err != nil {
			return nil, err
		}
		out = append(out, set)
	}
	return out, nil
}
