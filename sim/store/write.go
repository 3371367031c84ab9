// SPDX-License-Identifier: Apache-2.0

package store

import (
	"encoding/json"
	"fmt"
	"reflect"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func (s *Store) create(by string, o client.Object) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.collectionOf(o)
	if err != nil {
		return err
	}
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return err
	}
	object, err := s.typed(c.resource, tree)
	if err != nil {
		return err
	}
	if err := s.begin(c, object); err != nil {
		return err
	}
	s.put(writing{c, by, "create"}, nil, object)
	into(o, object)
	return nil
}

// begin gives a new object what the server gives it.
func (s *Store) begin(c *collection, o client.Object) error {
	switch {
	case o.GetResourceVersion() != "":
		return apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
	case c.namespaced && o.GetNamespace() == "":
		return apierrors.NewBadRequest("an empty namespace may not be set during creation")
	}
	if o.GetName() == "" {
		if o.GetGenerateName() == "" {
			return apierrors.NewInvalid(c.gvk.GroupKind(), "", field.ErrorList{field.Required(field.NewPath("metadata", "name"), "name or generateName is required")})
		}
		for taken := true; taken; _, taken = c.objects[client.ObjectKeyFromObject(o)] { // as the API server does
			o.SetName(o.GetGenerateName() + s.suffix())
		}
	}
	if _, exists := c.objects[client.ObjectKeyFromObject(o)]; exists {
		return apierrors.NewAlreadyExists(c.plural, o.GetName())
	}
	o.SetUID(s.newUID())
	o.SetCreationTimestamp(*now())
	o.SetDeletionTimestamp(nil)
	o.SetDeletionGracePeriodSeconds(nil)
	o.SetManagedFields(nil)
	if c.counted {
		o.SetGeneration(1)
	}
	if c.custom {
		setStatus(o, nil)
		return s.redefault(c, o)
	}
	if pod, ok := o.(*corev1.Pod); ok {
		pod.Status = corev1.PodStatus{Phase: corev1.PodPending}
		if pod.Spec.TerminationGracePeriodSeconds == nil {
			grace := int64(corev1.DefaultTerminationGracePeriodSeconds)
			pod.Spec.TerminationGracePeriodSeconds = &grace
		}
	}
	return nil
}

// redefault fills in a status that was just cleared. It has to be absent for
// its default to apply, which it is not in the JSON of a struct.
func (s *Store) redefault(c *collection, o client.Object) error {
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return err
	}
	delete(tree, "status")
	filled, err := s.typed(c.resource, tree)
	if err != nil {
		return err
	}
	reflect.ValueOf(o).Elem().Set(reflect.ValueOf(filled).Elem())
	return nil
}

// part is what a write may change of an object.
type part string

const (
	whole  part = ""       // all but the status
	status part = "status" // nothing else
)

// setStatus sets the status of o to that of other, which it shares, or to
// nothing.
func setStatus(o, other client.Object) {
	to := reflect.ValueOf(o).Elem().FieldByName("Status")
	if !to.IsValid() {
		return
	}
	if other == nil {
		to.SetZero()
		return
	}
	to.Set(reflect.ValueOf(other).Elem().FieldByName("Status"))
}

func sameStatus(a, b client.Object) bool {
	x := reflect.ValueOf(a).Elem().FieldByName("Status")
	return !x.IsValid() || equality.Semantic.DeepEqual(x.Interface(), reflect.ValueOf(b).Elem().FieldByName("Status").Interface())
}

func sameSpec(a, b client.Object) bool {
	x := reflect.ValueOf(a).Elem().FieldByName("Spec")
	return !x.IsValid() || equality.Semantic.DeepEqual(x.Interface(), reflect.ValueOf(b).Elem().FieldByName("Spec").Interface())
}

func (s *Store) update(by string, o client.Object, p part) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, old, err := s.stored(o)
	if err != nil {
		return err
	}
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return err
	}
	given, err := s.typed(c.resource, tree)
	if err != nil {
		return err
	}
	object, err := s.replace(writing{c, by, "update"}, old, given, p)
	if err != nil {
		return err
	}
	into(o, object)
	return nil
}

func (s *Store) patch(by string, o client.Object, patch client.Patch, p part) error {
	data, err := patch.Data(o)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, old, err := s.stored(o)
	if err != nil {
		return err
	}
	tree, err := patched(patch.Type(), old, data)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	given, err := s.typed(c.resource, tree)
	if err != nil {
		return err
	}
	object, err := s.replace(writing{c, by, "patch"}, old, given, p)
	if err != nil {
		return err
	}
	into(o, object)
	return nil
}

// patched returns the object with the patch.
func patched(kind types.PatchType, old client.Object, patch []byte) (map[string]any, error) {
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(old)
	if err != nil {
		return nil, err
	}
	if kind == types.MergePatchType {
		change := map[string]any{}
		if err := json.Unmarshal(patch, &change); err != nil {
			return nil, err
		}
		merge(tree, change)
		return tree, nil
	}
	before, err := json.Marshal(tree)
	if err != nil {
		return nil, err
	}
	after, err := patchedText(kind, before, patch, old)
	if err != nil {
		return nil, err
	}
	tree = map[string]any{}
	return tree, json.Unmarshal(after, &tree)
}

func patchedText(kind types.PatchType, before, patch []byte, sample any) ([]byte, error) {
	switch kind {
	case types.StrategicMergePatchType:
		return strategicpatch.StrategicMergePatch(before, patch, sample)
	case types.JSONPatchType:
		operations, err := jsonpatch.DecodePatch(patch)
		if err != nil {
			return nil, err
		}
		return operations.Apply(before)
	}
	return nil, fmt.Errorf("patch type %q is not served", kind)
}

// merge applies a JSON merge patch (RFC 7386) to the tree.
func merge(tree, change map[string]any) {
	for key, v := range change {
		part, isTree := v.(map[string]any)
		switch {
		case v == nil:
			delete(tree, key)
		case !isTree:
			tree[key] = v
		default:
			below, ok := tree[key].(map[string]any)
			if !ok {
				below = map[string]any{}
				tree[key] = below
			}
			merge(below, part)
		}
	}
}

// replace stores the part of given as the next version of old. A write that
// changes nothing leaves the version as it is.
func (s *Store) replace(w writing, old, given client.Object, p part) (client.Object, error) {
	if err := agrees(w.resource, old, given); err != nil {
		return nil, err
	}
	object := given
	if p == status {
		w.verb += "-status"
		object = shallow(old)
		setStatus(object, given)
	} else {
		setStatus(object, old)
		keepSystemFields(object, old)
		if old.GetDeletionTimestamp() != nil && gained(old.GetFinalizers(), object.GetFinalizers()) {
			return nil, apierrors.NewInvalid(w.gvk.GroupKind(), old.GetName(), field.ErrorList{
				field.Forbidden(field.NewPath("metadata", "finalizers"), "no new finalizers can be added if the object is being deleted")})
		}
		if w.counted && !sameSpec(old, object) {
			object.SetGeneration(old.GetGeneration() + 1)
		}
	}
	if pod, ok := object.(*corev1.Pod); ok {
		disown(pod, old.(*corev1.Pod))
	}
	object.SetResourceVersion(old.GetResourceVersion())
	if p == status && sameStatus(old, object) || p == whole && equality.Semantic.DeepEqual(old, object) {
		return old, nil
	}
	s.put(w, old, object)
	return object, nil
}

// shallow returns a copy of the stored object that shares what it refers to:
// neither is modified.
func shallow(o client.Object) client.Object {
	out := reflect.New(reflect.TypeOf(o).Elem())
	out.Elem().Set(reflect.ValueOf(o).Elem())
	return out.Interface().(client.Object)
}

// agrees reports a conflict when the write was made for another version or
// another object of the name.
func agrees(r resource, old, given client.Object) error {
	if v := given.GetResourceVersion(); v != "" && v != old.GetResourceVersion() {
		return apierrors.NewConflict(r.plural, old.GetName(), fmt.Errorf("the object has been modified; please apply your changes to the latest version and try again"))
	}
	if uid := given.GetUID(); uid != "" && uid != old.GetUID() {
		return apierrors.NewConflict(r.plural, old.GetName(), fmt.Errorf("precondition failed: UID in precondition: %s, UID in object meta: %s", uid, old.GetUID()))
	}
	return nil
}

// keepSystemFields keeps what no client writes.
func keepSystemFields(o, old client.Object) {
	o.SetName(old.GetName())
	o.SetNamespace(old.GetNamespace())
	o.SetUID(old.GetUID())
	o.SetCreationTimestamp(old.GetCreationTimestamp())
	o.SetDeletionTimestamp(old.GetDeletionTimestamp())
	o.SetDeletionGracePeriodSeconds(old.GetDeletionGracePeriodSeconds())
	o.SetGeneration(old.GetGeneration())
	o.SetManagedFields(old.GetManagedFields())
}

// gained reports whether something is in now that was not in old.
func gained(old, now []string) bool {
	known := make(map[string]bool, len(old))
	for _, f := range old {
		known[f] = true
	}
	for _, f := range now {
		if !known[f] {
			return true
		}
	}
	return false
}

// collectionOf returns where objects of the kind are.
func (s *Store) collectionOf(o client.Object) (*collection, error) {
	r, err := s.resourceOf(o)
	if err != nil {
		return nil, err
	}
	return s.kinds[r.gvk], nil
}

// stored returns the object of the same kind and key.
func (s *Store) stored(o client.Object) (*collection, client.Object, error) {
	c, err := s.collectionOf(o)
	if err != nil {
		return nil, nil, err
	}
	old, ok := c.objects[client.ObjectKeyFromObject(o)]
	if !ok {
		return nil, nil, notFound(c.resource, o.GetName())
	}
	return c, old, nil
}
