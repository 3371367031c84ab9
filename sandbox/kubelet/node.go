// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// syncNode makes a live node's status what its kubelet would report.
func (f *fleet) syncNode(ctx context.Context, name string) (time.Duration, error) {
	node, ok := f.liveNode(name)
	if !ok {
		return 0, nil
	}
	sight, ok := f.nodeSights.get(node.UID)
	if !ok {
		return 0, nil // replaced by a namesake whose event is on its way
	}
	wantReady := node.Annotations[ReadyAnnotation] != "false"
	if booting := sight.first.Add(f.options.NodeReadyDelay).Sub(f.now()); wantReady && booting > 0 && !reported(node) {
		return booting, nil
	}
	patch := f.nodePatch(node, wantReady)
	if patch == nil {
		return 0, nil
	}
	body, err := json.Marshal(patch)
	if err != nil {
		return 0, err
	}
	// A patch, as by a real kubelet, so that concurrent writes of labels or taints cause no
	// conflict.
	_, err = f.client.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, body, metav1.PatchOptions{}, "status")
	if err != nil {
		return 0, fmt.Errorf("report status of node %s: %w", name, err)
	}
	return 0, nil
}

// reported reports whether a kubelet has spoken for the node before; only the first time waits for the ready delay.
func reported(node *corev1.Node) bool {
	return node.Status.NodeInfo.KubeletVersion != "" && ready(node)
}

// statusPatch is a strategic merge patch of a node's status; conditions and addresses merge by type. The uid guards
// against a namesake.
type statusPatch struct {
	Metadata struct {
		UID types.UID `json:"uid"`
	} `json:"metadata"`
	Status nodeStatus `json:"status"`
}

type nodeStatus struct {
	Phase       corev1.NodePhase       `json:"phase,omitempty"`
	Conditions  []corev1.NodeCondition `json:"conditions,omitempty"`
	Addresses   []corev1.NodeAddress   `json:"addresses,omitempty"`
	NodeInfo    *corev1.NodeSystemInfo `json:"nodeInfo,omitempty"`
	Capacity    corev1.ResourceList    `json:"capacity,omitempty"`
	Allocatable corev1.ResourceList    `json:"allocatable,omitempty"`
}

// nodePatch returns what is missing from the node's status, nil if nothing.
func (f *fleet) nodePatch(node *corev1.Node, wantReady bool) *statusPatch {
	conditions := nodeConditions(node, wantReady, metav1.NewTime(f.now()))
	if conditions == nil {
		return nil
	}
	patch := &statusPatch{Status: nodeStatus{Phase: corev1.NodeRunning, Conditions: conditions}}
	patch.Metadata.UID = node.UID
	if internalIP(node) == "" {
		patch.Status.Addresses = []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: f.nodeIPs.assign(node.UID)},
			{Type: corev1.NodeHostName, Address: node.Name},
		}
	}
	if node.Status.NodeInfo.KubeletVersion == "" {
		patch.Status.NodeInfo = f.nodeInfo(node)
	}
	if len(node.Status.Capacity) == 0 {
		patch.Status.Capacity = defaultCapacity()
	}
	if len(node.Status.Allocatable) == 0 {
		if patch.Status.Allocatable = patch.Status.Capacity; len(node.Status.Capacity) > 0 {
			patch.Status.Allocatable = node.Status.Capacity
		}
	}
	return patch
}

// nodeConditions returns a kubelet's five conditions, or nil if the node shows all of them already.
func nodeConditions(node *corev1.Node, wantReady bool, now metav1.Time) []corev1.NodeCondition {
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason, message string) corev1.NodeCondition {
		return corev1.NodeCondition{Type: kind, Status: status, Reason: reason, Message: message, LastHeartbeatTime: now, LastTransitionTime: now}
	}
	want := []corev1.NodeCondition{
		condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
		condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
		condition(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
		condition(corev1.NodeNetworkUnavailable, corev1.ConditionFalse, "RouteCreated", "simulated network"),
		condition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status"),
	}
	if !wantReady {
		want[4] = condition(corev1.NodeReady, corev1.ConditionFalse, "KubeletNotReady", "annotation "+ReadyAnnotation+" is false")
	}
	have := map[corev1.NodeConditionType]*corev1.NodeCondition{}
	for i := range node.Status.Conditions {
		have[node.Status.Conditions[i].Type] = &node.Status.Conditions[i]
	}
	same := true
	for i := range want {
		if old := have[want[i].Type]; old != nil && old.Status == want[i].Status {
			want[i].LastTransitionTime = old.LastTransitionTime
		} else {
			same = false
		}
	}
	if same {
		return nil
	}
	return want
}

func (f *fleet) nodeInfo(node *corev1.Node) *corev1.NodeSystemInfo {
	label := func(key, otherwise string) string {
		if value := node.Labels[key]; value != "" {
			return value
		}
		return otherwise
	}
	return &corev1.NodeSystemInfo{
		MachineID:               string(node.UID),
		SystemUUID:              string(node.UID),
		BootID:                  string(node.UID),
		KernelVersion:           "6.12.0-sandbox",
		OSImage:                 "Sandbox",
		ContainerRuntimeVersion: "sandbox://1.0.0",
		KubeletVersion:          f.options.KubeletVersion,
		OperatingSystem:         label(corev1.LabelOSStable, "linux"),
		Architecture:            label(corev1.LabelArchStable, runtime.GOARCH),
	}
}

// defaultCapacity is of a node created with none, so that a bare Node object is of use.
func defaultCapacity() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("4"),
		corev1.ResourceMemory:           resource.MustParse("16Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("100Gi"),
		corev1.ResourcePods:             resource.MustParse("110"),
	}
}

func internalIP(node *corev1.Node) string {
	for _, address := range node.Status.Addresses {
		if address.Type == corev1.NodeInternalIP {
			return address.Address
		}
	}
	return ""
}
