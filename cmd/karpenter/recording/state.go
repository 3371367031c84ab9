// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// State is the objects of a recording at one moment. It reads as a cluster does, and
// is safe for concurrent use. Objects that it hands out with
// client.UnsafeDisableDeepCopy must not be modified.
type State struct {
	of *Recording

	mu      sync.Mutex
	next    int // position of the first change that has not happened yet
	objects map[schema.GroupKind]map[client.ObjectKey]client.Object
}

var _ client.Reader = (*State)(nil)

// At returns the state at the time.
func (r *Recording) At(at time.Time) *State {
	s := &State{of: r, objects: map[schema.GroupKind]map[client.ObjectKey]client.Object{}}
	s.Advance(at)
	return s
}

// Advance applies all changes up to the time, and reports whether there were
// any.
func (s *State) Advance(to time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := s.next
	for s.next < len(s.of.Changes) && !s.of.Changes[s.next].At.After(to) {
		s.apply(&s.of.Changes[s.next])
		s.next++
	}
	return s.next > from
}

func (s *State) apply(c *Change) {
	gvk, err := apiutil.GVKForObject(c.Object, s.of.scheme)
	if err != nil {
		return // Read made the object of the scheme
	}
	kind := s.objects[gvk.GroupKind()]
	if kind == nil {
		kind = map[client.ObjectKey]client.Object{}
		s.objects[gvk.GroupKind()] = kind
	}
	if c.Deleted {
		delete(kind, client.ObjectKeyFromObject(c.Object))
	} else {
		kind[client.ObjectKeyFromObject(c.Object)] = c.Object
	}
}

// Get implements client.Reader.
func (s *State) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	gvk, err := apiutil.GVKForObject(into, s.of.scheme)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.objects[gvk.GroupKind()][key]
	if !ok {
		plural, _ := meta.UnsafeGuessKindToResource(gvk)
		return apierrors.NewNotFound(plural.GroupResource(), key.Name)
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(found.DeepCopyObject()).Elem())
	return nil
}

// List implements client.Reader. It never answers in pages.
func (s *State) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	gvk, err := apiutil.GVKForObject(list, s.of.scheme)
	if err != nil {
		return err
	}
	o := client.ListOptions{}
	o.ApplyOptions(options)
	kind := schema.GroupKind{Group: gvk.Group, Kind: strings.TrimSuffix(gvk.Kind, "List")}
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []client.Object
	for _, object := range s.objects[kind] {
		ok, err := matches(object, &o)
		if err != nil {
			return err
		}
		if ok {
			found = append(found, object)
		}
	}
	slices.SortFunc(found, func(a, b client.Object) int {
		return strings.Compare(a.GetNamespace()+"/"+a.GetName(), b.GetNamespace()+"/"+b.GetName())
	})
	items := make([]runtime.Object, len(found))
	for i, object := range found {
		items[i] = object
		if o.UnsafeDisableDeepCopy == nil || !*o.UnsafeDisableDeepCopy {
			items[i] = object.DeepCopyObject()
		}
	}
	list.SetContinue("")
	return meta.SetList(list, items)
}

func matches(object client.Object, o *client.ListOptions) (bool, error) {
	if o.Namespace != "" && o.Namespace != object.GetNamespace() {
		return false, nil
	}
	if o.LabelSelector != nil && !o.LabelSelector.Matches(labels.Set(object.GetLabels())) {
		return false, nil
	}
	if o.FieldSelector == nil {
		return true, nil
	}
	set := fields.Set{"metadata.name": object.GetName(), "metadata.namespace": object.GetNamespace()}
	for _, r := range o.FieldSelector.Requirements() {
		if !set.Has(r.Field) {
			return false, fmt.Errorf("a recording cannot select by %s", r.Field)
		}
	}
	return o.FieldSelector.Matches(set), nil
}
