// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// memory answers reads as a cache would that has no cost: by kind, with an index
// of pods by node, and without copying what it returns deeply. It can do nothing
// else: methods it lacks panic.
type memory struct {
	client.Client
	objects map[reflect.Type]map[client.ObjectKey]client.Object
	order   map[reflect.Type][]client.ObjectKey // in which lists are returned
	onNode  map[string]map[client.ObjectKey]*corev1.Pod
}

func newMemory() *memory {
	return &memory{
		objects: map[reflect.Type]map[client.ObjectKey]client.Object{}, order: map[reflect.Type][]client.ObjectKey{},
		onNode: map[string]map[client.ObjectKey]*corev1.Pod{},
	}
}

// set adds or replaces an object, which the memory keeps.
func (m *memory) set(o client.Object) {
	kind, key := reflect.TypeOf(o).Elem(), client.ObjectKeyFromObject(o)
	if m.objects[kind] == nil {
		m.objects[kind] = map[client.ObjectKey]client.Object{}
	}
	if _, known := m.objects[kind][key]; known {
		m.forget(o)
	}
	m.order[kind] = append(m.order[kind], key)
	m.objects[kind][key] = o
	if p, ok := o.(*corev1.Pod); ok {
		if m.onNode[p.Spec.NodeName] == nil {
			m.onNode[p.Spec.NodeName] = map[client.ObjectKey]*corev1.Pod{}
		}
		m.onNode[p.Spec.NodeName][key] = p
	}
}

// forget removes the object of that kind and name.
func (m *memory) forget(o client.Object) {
	kind, key := reflect.TypeOf(o).Elem(), client.ObjectKeyFromObject(o)
	if p, ok := m.objects[kind][key].(*corev1.Pod); ok {
		delete(m.onNode[p.Spec.NodeName], key)
	}
	delete(m.objects[kind], key)
	m.order[kind] = slices.DeleteFunc(m.order[kind], func(k client.ObjectKey) bool { return k == key })
}

// Get implements client.Client.
func (m *memory) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	kind := reflect.TypeOf(into).Elem()
	o, ok := m.objects[kind][key]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{Resource: kind.Name()}, key.String())
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(o).Elem())
	return nil
}

// List implements client.Client.
func (m *memory) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	o := client.ListOptions{}
	o.ApplyOptions(options)
	if pods, ok := into.(*corev1.PodList); ok && o.FieldSelector != nil {
		node, ok := o.FieldSelector.RequiresExactMatch("spec.nodeName")
		if !ok {
			return fmt.Errorf("list pods: unexpected field selector %q", o.FieldSelector)
		}
		for _, p := range m.onNode[node] {
			pods.Items = append(pods.Items, *p)
		}
		return nil
	}
	if o.FieldSelector != nil && !o.FieldSelector.Empty() && len(m.objects[element(into)]) > 0 {
		return fmt.Errorf("list %T: unexpected field selector %q", into, o.FieldSelector)
	}
	var found []runtime.Object
	for _, key := range m.order[element(into)] {
		item := m.objects[element(into)][key]
		if (o.Namespace == "" || o.Namespace == key.Namespace) && (o.LabelSelector == nil || o.LabelSelector.Matches(labels.Set(item.GetLabels()))) {
			found = append(found, item)
		}
	}
	return meta.SetList(into, found)
}

// element returns the type of the items of a list.
func element(list client.ObjectList) reflect.Type {
	items, ok := reflect.TypeOf(list).Elem().FieldByName("Items")
	if !ok {
		return nil
	}
	return items.Type.Elem()
}
