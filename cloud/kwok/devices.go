// SPDX-License-Identifier: Apache-2.0

package kwok

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/model"
)

// configsRead is how often DRAConfigs are read: as often as the driver does it.
const configsRead = 30 * time.Second

// draConfig has the relevant parts of a DRAConfig, the configuration of the
// driver for dynamic resource allocation in upstream's tests. It lists the
// devices to publish on simulated Nodes, so they are known before the launch.
type draConfig struct {
	Spec struct {
		Driver string    `json:"driver"`
		Pools  []draPool `json:"pools"`
	} `json:"spec"`
}

type draPool struct {
	NodeSelectorTerms []corev1.NodeSelectorTerm `json:"nodeSelectorTerms"` // none matches nothing
	ResourceSlices    []struct {
		Devices []resourcev1.Device `json:"devices"`
	} `json:"resourceSlices"`
}

// deviceSource adds devices to instance types. Safe for concurrent use.
type deviceSource struct {
	live client.Reader

	mu      sync.Mutex
	read    time.Time
	configs []draConfig
	views   map[string]*deviceView // by NodePool
}

// deviceView is the types of a NodePool with devices, and what they were made of.
type deviceView struct {
	labels map[string]string
	types  []*cloud.InstanceType
	made   map[*cloud.InstanceType]*cloud.InstanceType
	out    []*cloud.InstanceType
}

// with returns the types with the devices that Nodes of the pool will have: the same
// slice, and for each type the same pointer, as long as nothing has changed.
func (d *deviceSource) with(ctx context.Context, now time.Time, pool *v1.NodePool, types []*cloud.InstanceType) []*cloud.InstanceType {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now.Sub(d.read) >= configsRead || now.Before(d.read) {
		d.read = now
		d.refresh(ctx)
	}
	if len(d.configs) == 0 {
		return types
	}
	v := d.views[pool.Name]
	if v == nil || !maps.Equal(v.labels, pool.Spec.Template.Labels) {
		v = &deviceView{labels: maps.Clone(pool.Spec.Template.Labels)}
		d.views[pool.Name] = v
	}
	if slices.Equal(v.types, types) {
		return v.out
	}
	labels := model.LabelRequirements(pool.Spec.Template.Labels).And(model.NewRequirement(v1.NodePoolLabelKey, model.In, pool.Name))
	made := make(map[*cloud.InstanceType]*cloud.InstanceType, len(types))
	v.types, v.out = types, make([]*cloud.InstanceType, len(types))
	for i, t := range types {
		made[t] = v.made[t]
		if made[t] == nil {
			next := *t
			next.DevicePools = poolsOf(d.configs, t, labels)
			made[t] = &next
		}
		v.out[i] = made[t]
	}
	v.made = made
	return v.out
}

// refresh reads the DRAConfigs. A cluster that does not know the kind has none; after
// another error, those known stay.
func (d *deviceSource) refresh(ctx context.Context) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "test.karpenter.sh", Version: "v1alpha1", Kind: "DRAConfigList"})
	if err := d.live.List(ctx, list); err != nil && !meta.IsNoMatchError(err) {
		log.FromContext(ctx).V(1).Info("the devices of simulated nodes stay as they are", "reason", err.Error())
		return
	}
	var configs []draConfig
	for i := range list.Items {
		var c draConfig
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &c); err != nil {
			log.FromContext(ctx).Info("leaving out a DRAConfig that cannot be read", "DRAConfig", list.Items[i].GetName(), "reason", err.Error())
			continue
		}
		configs = append(configs, c)
	}
	if !reflect.DeepEqual(configs, d.configs) {
		d.configs, d.views = configs, map[string]*deviceView{}
	}
}

// poolsOf returns what the drivers will publish on a Node of the type with the labels,
// one pool for each. Pools of one driver that are for the same Node have one name, and
// are never complete together.
func poolsOf(configs []draConfig, t *cloud.InstanceType, labels model.Requirements) []cloud.DevicePool {
	found := map[string][]draPool{}
	for _, c := range configs {
		for _, p := range c.Spec.Pools {
			if slices.ContainsFunc(p.NodeSelectorTerms, func(term corev1.NodeSelectorTerm) bool { return selects(&term, t.Requirements.And(labels...)) }) {
				found[c.Spec.Driver] = append(found[c.Spec.Driver], p)
			}
		}
	}
	var out []cloud.DevicePool
	for _, driver := range slices.Sorted(maps.Keys(found)) {
		if len(found[driver]) > 1 {
			continue
		}
		pool := cloud.DevicePool{Driver: driver, Name: fmt.Sprintf("%s/%s", driver, t.Name)}
		for _, s := range found[driver][0].ResourceSlices {
			pool.Devices = append(pool.Devices, s.Devices...)
		}
		out = append(out, pool)
	}
	return out
}

// selects reports whether the term selects Nodes with the labels. What Nodes are
// called is not known.
func selects(term *corev1.NodeSelectorTerm, labels model.Requirements) bool {
	if len(term.MatchFields) > 0 || len(term.MatchExpressions) == 0 {
		return false
	}
	var demand model.Requirements
	for _, e := range term.MatchExpressions {
		demand = demand.And(model.NewRequirement(e.Key, model.Operator(e.Operator), e.Values...))
	}
	_, ok := labels.Satisfies(demand)
	return ok
}
