// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"karpenter/cloud/azure/azurefake"
)

// Config says whose virtual machines join which cluster. All fields are required
// but the overhead.
type Config struct {
	Azure *azurefake.Cloud
	Kube  kubernetes.Interface
	// Server is the URL of the API server, for virtual machines that join by themselves.
	Server string
	Region string
	// Every is the time from one look to the next.
	Every time.Duration
	// Overhead is the share of a size's memory that nodes do not see.
	Overhead float64
	Clock    clock.WithTicker
	Log      *slog.Logger
}

// Run boots virtual machines until ctx is done, then returns nil. What fails is
// logged and tried again.
func Run(ctx context.Context, c Config) error {
	l := &loop{Config: c, booted: map[string]bool{}, joining: map[string]joining{}}
	ticker := c.Clock.NewTicker(c.Every)
	defer ticker.Stop()
	for {
		if err := l.look(ctx); err != nil && ctx.Err() == nil {
			c.Log.Error("boot nodes: trying again", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

// loop remembers which virtual machines have booted, by provider ID: each does once; and
// by ARM ID those that are joining by themselves.
type loop struct {
	Config
	booted  map[string]bool
	joining map[string]joining
}

// look does what is due: boots virtual machines that run, ends the Nodes of those
// that do not.
func (l *loop) look(ctx context.Context) error {
	list, err := l.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	nodes := map[string]*corev1.Node{}
	for i := range list.Items {
		if n := &list.Items[i]; strings.HasPrefix(n.Spec.ProviderID, "azure://") && n.Annotations[simulatedKey] == simulatedValue {
			nodes[n.Spec.ProviderID] = n
		}
	}
	var errs []error
	known := map[string]bool{}
	for _, vm := range l.Azure.VMs() {
		id := providerID(&vm)
		known[id] = true
		switch there := nodes[id]; {
		case vm.Running:
			if there == nil && !l.booted[id] {
				errs = append(errs, l.boot(ctx, &vm))
			}
			l.booted[id] = l.booted[id] || there != nil
			if vm.Told && there != nil {
				errs = append(errs, l.announce(ctx, there))
			}
		case there != nil:
			errs = append(errs, l.end(ctx, there, vm.Evicted))
		}
	}
	for id, n := range nodes {
		if !known[id] {
			errs = append(errs, l.end(ctx, n, true))
		}
	}
	return errors.Join(errs...)
}

func (l *loop) boot(ctx context.Context, vm *azurefake.VM) error {
	if vm.CustomData != "" {
		return l.bootItself(ctx, vm)
	}
	n, err := Node(vm, l.Region, l.Overhead)
	if err != nil {
		l.booted[providerID(vm)] = true
		l.Log.Warn("a virtual machine does not join", "name", vm.Name, "why", err)
		return nil
	}
	if _, err := l.Kube.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create node %s: %w", n.Name, err)
	}
	l.booted[providerID(vm)] = true
	l.Log.Info("a virtual machine has booted", "node", n.Name, "size", vm.SKU.Name)
	return nil
}

// bootItself has a virtual machine join that nobody but its own script helps. If it cannot
// join, that is logged, and it does not try again.
func (l *loop) bootItself(ctx context.Context, vm *azurefake.VM) error {
	done, err := l.join(ctx, vm)
	if !done {
		return err
	}
	l.booted[providerID(vm)] = true
	if err != nil {
		l.Log.Warn("a virtual machine does not join", "name", vm.Name, "why", err)
		return nil
	}
	l.Log.Info("a virtual machine has joined", "node", vm.Name, "size", vm.SKU.Name)
	return nil
}

// preemption is the condition by which AKS' node problem detector announces the
// eviction of a spot virtual machine.
const preemption corev1.NodeConditionType = "PreemptionScheduled"

// announce has the Node say that its virtual machine will be evicted.
func (l *loop) announce(ctx context.Context, n *corev1.Node) error {
	if condition(n, preemption) == corev1.ConditionTrue {
		return nil
	}
	now := metav1.NewTime(l.Clock.Now())
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []corev1.NodeCondition{{
		Type: preemption, Status: corev1.ConditionTrue, Reason: "PreemptScheduled", Message: "Preempt is scheduled for this virtual machine",
		LastHeartbeatTime: now, LastTransitionTime: now,
	}}}})
	if err != nil {
		return err
	}
	_, err = l.Kube.CoreV1().Nodes().Patch(ctx, n.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("announce the eviction of node %s: %w", n.Name, err)
	}
	return nil
}

// end has the kubelet be dead, and deletes its Node once the cluster has noticed and
// the virtual machine is gone.
func (l *loop) end(ctx context.Context, n *corev1.Node, gone bool) error {
	nodes := l.Kube.CoreV1().Nodes()
	if n.Annotations[heartbeatKey] != dead {
		patch := fmt.Sprintf(`{"metadata":{"uid":%q,"annotations":{%q:%q}}}`, n.UID, heartbeatKey, dead)
		_, err := nodes.Patch(ctx, n.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("node %s, whose virtual machine has ended: %w", n.Name, err)
		}
		return nil
	}
	if !gone || ready(n) || !n.DeletionTimestamp.IsZero() {
		return nil
	}
	err := nodes.Delete(ctx, n.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(n.UID))})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete node %s, whose virtual machine is gone: %w", n.Name, err)
	}
	return nil
}

func ready(n *corev1.Node) bool { return condition(n, corev1.NodeReady) == corev1.ConditionTrue }

// condition returns the status of a condition, "" if the Node has none.
func condition(n *corev1.Node, of corev1.NodeConditionType) corev1.ConditionStatus {
	for _, c := range n.Status.Conditions {
		if c.Type == of {
			return c.Status
		}
	}
	return ""
}
