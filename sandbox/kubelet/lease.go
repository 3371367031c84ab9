// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// A kubelet's own figures.
const (
	leaseDuration = 40 * time.Second
	renewJitter   = 0.04
)

// leases are the Leases as last written, by node name. Safe for concurrent use; a name is renewed by one worker at a time.
type leases struct {
	mu     sync.Mutex
	byNode map[string]*coordinationv1.Lease
}

func newLeases() *leases { return &leases{byNode: map[string]*coordinationv1.Lease{}} }

func (l *leases) get(node string) *coordinationv1.Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byNode[node]
}

func (l *leases) set(node string, lease *coordinationv1.Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if lease == nil {
		delete(l.byNode, node)
		return
	}
	l.byNode[node] = lease
}

// syncLease renews a live node's Lease and comes back when the next renewal is due.
func (f *fleet) syncLease(ctx context.Context, name string) (time.Duration, error) {
	node, ok := f.liveNode(name)
	if !ok {
		f.leases.set(name, nil)
		return 0, nil
	}
	lease, err := f.renew(ctx, node, f.leases.get(name))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		f.leases.set(name, nil)
		return minRetry, nil // someone else wrote or removed it: begin again
	}
	if err != nil {
		return 0, err
	}
	f.leases.set(name, lease)
	return wait.Jitter(f.options.RenewInterval, renewJitter), nil
}

// renew writes the Lease: last if this process knows it, else the existing or a new one.
func (f *fleet) renew(ctx context.Context, node *corev1.Node, last *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	client := f.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	renewed := metav1.NewMicroTime(f.now())
	if last == nil {
		lease, err := client.Create(ctx, newLease(node, renewed), metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			return lease, err
		}
		if last, err = client.Get(ctx, node.Name, metav1.GetOptions{}); err != nil {
			return nil, err
		}
	}
	lease := newLease(node, renewed)
	lease.ResourceVersion, lease.UID = last.ResourceVersion, last.UID
	return client.Update(ctx, lease, metav1.UpdateOptions{})
}

// newLease returns the node's Lease, owned by the node so that it goes when the node goes.
func newLease(node *corev1.Node, renewed metav1.MicroTime) *coordinationv1.Lease {
	holder, seconds := node.Name, int32(leaseDuration/time.Second)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name:      node.Name,
			Namespace: corev1.NamespaceNodeLease,
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID},
			},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &renewed},
	}
}
