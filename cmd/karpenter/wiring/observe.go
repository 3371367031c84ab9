// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"context"
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	autoscaling "karpenter/api/autoscaling/v1beta1"
	v1 "karpenter/api/v1"
	"karpenter/kube/meter"
)

// observing reports whether there are metrics about single pods, nodes, node
// pools and conditions.
func (w *wiring) observing() bool { return !w.config.DisableClusterStateObservability }

// observed returns the registry for metrics about single objects. If these are
// off, it is a registry that is never scraped.
func (w *wiring) observed() prometheus.Registerer {
	if w.observing() {
		return w.Registry
	}
	return prometheus.NewRegistry()
}

// observe publishes what the cluster is, unless that is off.
func (w *wiring) observe(ctx context.Context) error {
	if !w.observing() {
		return nil
	}
	reader, err := meter.Stored(ctx, w.mgr.GetClient(), w.mgr.GetCache())
	if err != nil {
		return fmt.Errorf("informer for pods: %w", err)
	}
	meter.RegisterState(w.Registry, reader, w.waits.Leads)
	meter.RegisterNodes(w.Registry, meter.Nodes{Reader: reader, Leads: w.waits.Leads, Labels: w.convert.Labels, Clock: w.clock})
	kinds, err := w.watched()
	if err != nil {
		return err
	}
	return meter.NewConditions(w.Registry, w.clock, w.waits.Leads, w.recorder, kinds).Watch(ctx, w.mgr.GetCache())
}

// watched returns the kinds whose conditions are published.
func (w *wiring) watched() ([]meter.Watched, error) {
	ofPool := []string{v1.NodePoolLabelKey}
	var classes []meter.Watched
	for _, gvk := range w.provider.NodeClasses() {
		object, err := w.mgr.GetScheme().New(gvk)
		if err != nil {
			return nil, fmt.Errorf("node class %s: %w", gvk.Kind, err)
		}
		class, ok := object.(client.Object)
		if !ok {
			return nil, fmt.Errorf("node class %s is no object of the API", gvk.Kind)
		}
		classes = append(classes, ours(class, gvk.GroupKind()))
		ofPool = append(ofPool, v1.NodeClassLabelKey(gvk.GroupKind()))
	}
	claim := ours(&v1.NodeClaim{}, schema.GroupKind{Group: v1.Group, Kind: "NodeClaim"})
	claim.Keys = ofPool
	node := meter.Watched{
		Object: &corev1.Node{}, Of: meter.NodeConditions, Kind: "Node", Name: "node",
		Keys: append(ofPool[:len(ofPool):len(ofPool)], v1.NodeInitializedLabelKey),
		Tell: func(o client.Object) bool { return o.GetLabels()[v1.NodePoolLabelKey] != "" },
	}
	out := append(classes, claim, node, ours(&v1.NodePool{}, schema.GroupKind{Group: v1.Group, Kind: "NodePool"}))
	if w.config.Gates.CapacityBuffer {
		buffer := ours(&autoscaling.CapacityBuffer{}, schema.GroupKind{Group: autoscaling.Group, Kind: "CapacityBuffer"})
		buffer.Of = func(o client.Object) []metav1.Condition {
			b, ok := o.(*autoscaling.CapacityBuffer)
			if !ok {
				return nil
			}
			return b.Status.Conditions
		}
		out = append(out, buffer)
	}
	return out, nil
}

// ours returns the settings for a kind whose conditions only Karpenter writes.
func ours(object client.Object, gk schema.GroupKind) meter.Watched {
	return meter.Watched{
		Object: object, Of: meter.ConditionsOf, Group: gk.Group, Kind: gk.Kind, Name: strings.ToLower(gk.Kind), Twin: true,
	}
}
