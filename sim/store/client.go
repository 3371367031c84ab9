// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Client returns a client whose writes are recorded under the name.
func (s *Store) Client(by string) client.Client { return &direct{s, by} }

type direct struct {
	store *Store
	by    string
}

func (d *direct) Scheme() *runtime.Scheme     { return d.store.scheme }
func (d *direct) RESTMapper() meta.RESTMapper { return d.store.mapper }

func (d *direct) GroupVersionKindFor(o runtime.Object) (schema.GroupVersionKind, error) {
	return d.store.KindOf(o)
}

func (d *direct) IsObjectNamespaced(o runtime.Object) (bool, error) { return d.store.Namespaced(o) }

func (d *direct) Get(ctx context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	c, err := d.store.collectionOf(o)
	if err != nil {
		return err
	}
	stored, ok := c.objects[key]
	if !ok {
		return notFound(c.resource, key.Name)
	}
	into(o, stored)
	return nil
}

func (d *direct) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	gvk, err := d.store.KindOf(list)
	if err != nil {
		return err
	}
	o := client.ListOptions{}
	o.ApplyOptions(options)
	if o.Limit > 0 || o.Continue != "" {
		return apierrors.NewBadRequest("lists in pages are not served")
	}
	objects, _ := d.store.Snapshot(gvk)
	var found []client.Object
	for _, object := range objects {
		if !Matches(object, &o) {
			continue
		}
		ok, err := selected(object, o.FieldSelector)
		if err != nil {
			return err
		}
		if ok {
			found = append(found, object)
		}
	}
	return Fill(list, found, true)
}

// Matches reports whether the object is in the namespace and has the labels
// that the options ask for.
func Matches(o client.Object, options *client.ListOptions) bool {
	return (options.Namespace == "" || options.Namespace == o.GetNamespace()) &&
		(options.LabelSelector == nil || options.LabelSelector.Matches(labels.Set(o.GetLabels())))
}

// selected evaluates the fields the API server can select by.
func selected(o client.Object, selector fields.Selector) (bool, error) {
	if selector == nil {
		return true, nil
	}
	set := fields.Set{"metadata.name": o.GetName(), "metadata.namespace": o.GetNamespace()}
	if pod, ok := o.(*corev1.Pod); ok {
		set["spec.nodeName"], set["status.phase"] = pod.Spec.NodeName, string(pod.Status.Phase)
	}
	for _, r := range selector.Requirements() {
		if !set.Has(r.Field) {
			return false, apierrors.NewBadRequest(fmt.Sprintf("field label not supported: %s", r.Field))
		}
	}
	return selector.Matches(set), nil
}

// Fill sets the items of the list, to copies if asked to.
func Fill(list client.ObjectList, objects []client.Object, copies bool) error {
	items := reflect.ValueOf(list).Elem().FieldByName("Items")
	if !items.IsValid() {
		return fmt.Errorf("%T has no items", list)
	}
	out := reflect.MakeSlice(items.Type(), len(objects), len(objects))
	for i, o := range objects {
		if copies {
			o = o.DeepCopyObject().(client.Object)
		}
		out.Index(i).Set(reflect.ValueOf(o).Elem())
	}
	items.Set(out)
	return nil
}

func (d *direct) Create(ctx context.Context, o client.Object, _ ...client.CreateOption) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return d.store.create(d.by, o)
}

func (d *direct) Update(ctx context.Context, o client.Object, _ ...client.UpdateOption) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return d.store.update(d.by, o, whole)
}

func (d *direct) Patch(ctx context.Context, o client.Object, patch client.Patch, _ ...client.PatchOption) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return d.store.patch(d.by, o, patch, whole)
}

func (d *direct) Delete(ctx context.Context, o client.Object, options ...client.DeleteOption) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var all client.DeleteOptions
	return d.store.delete(d.by, o, *all.ApplyOptions(options))
}

func (d *direct) DeleteAllOf(context.Context, client.Object, ...client.DeleteAllOfOption) error {
	return apierrors.NewBadRequest("deleting collections is not served")
}

func (d *direct) Apply(context.Context, runtime.ApplyConfiguration, ...client.ApplyOption) error {
	return apierrors.NewBadRequest("apply is served for the status of pods only")
}

func (d *direct) Status() client.SubResourceWriter { return d.SubResource("status") }

func (d *direct) SubResource(name string) client.SubResourceClient { return &sub{d, name} }

// sub is a subresource: status, eviction and binding are served.
type sub struct {
	*direct
	name string
}

func (s *sub) refuse() error {
	return apierrors.NewBadRequest(fmt.Sprintf("subresource %s does not serve this", s.name))
}

func (s *sub) Get(context.Context, client.Object, client.Object, ...client.SubResourceGetOption) error {
	return s.refuse()
}

func (s *sub) Create(ctx context.Context, o, body client.Object, _ ...client.SubResourceCreateOption) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	switch b := body.(type) {
	case *policyv1.Eviction:
		return s.store.evict(s.by, o, b)
	case *corev1.Binding:
		return s.store.bind(s.by, o, b)
	}
	return s.refuse()
}

func (s *sub) Update(ctx context.Context, o client.Object, _ ...client.SubResourceUpdateOption) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.name != string(status) {
		return s.refuse()
	}
	return s.store.update(s.by, o, status)
}

func (s *sub) Patch(ctx context.Context, o client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.name != string(status) {
		return s.refuse()
	}
	return s.store.patch(s.by, o, patch, status)
}

func (s *sub) Apply(ctx context.Context, configuration runtime.ApplyConfiguration, options ...client.SubResourceApplyOption) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.name != string(status) {
		return s.refuse()
	}
	var all client.SubResourceApplyOptions
	return s.store.applyStatus(s.by, configuration, *all.ApplyOpts(options))
}
