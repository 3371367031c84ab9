// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"fmt"
	"iter"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Store is one cluster's objects. It is safe for concurrent use. Stored
// objects are never modified, only replaced.
type Store struct {
	*Server
	rand *rand.Rand // of UIDs and generated names

	mu      sync.Mutex
	version int64
	kinds   map[schema.GroupVersionKind]*collection
	changes []Change // since the last Changes
}

// collection is the objects of a kind.
type collection struct {
	resource
	objects map[client.ObjectKey]client.Object
	sorted  []client.Object // nil = not known
	log     []Event
}

// Change is what one write did to one object.
type Change struct {
	By       string // who wrote
	Verb     string // create, update, patch, delete, evict or bind; "-status" appended for a status
	Kind     string
	Old, New client.Object // nil = did not exist, does not exist any more
}

// Object returns the object as it is now, or was last.
func (c Change) Object() client.Object {
	if c.New != nil {
		return c.New
	}
	return c.Old
}

// Event is an entry of the log that watches read.
type Event struct {
	Type    watch.EventType // Added, Modified or Deleted
	Object  client.Object   // not to be modified
	Version int64
}

// New returns an empty store that draws UIDs and names from r.
func New(server *Server, r *rand.Rand) *Store {
	s := &Store{Server: server, rand: r, kinds: map[schema.GroupVersionKind]*collection{}}
	for gvk, resource := range server.resources {
		s.kinds[gvk] = &collection{resource: resource, objects: map[client.ObjectKey]client.Object{}}
	}
	return s
}

// Changes returns what was changed since the last call, in order.
func (s *Store) Changes() []Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.changes
	s.changes = nil
	return out
}

// Version rises with every change.
func (s *Store) Version() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// Log returns the events of a kind from the given position on. The position
// of the next event is from plus their number.
func (s *Store) Log(gvk schema.GroupVersionKind, from int) []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.kinds[gvk]
	return c.log[min(from, len(c.log)):len(c.log):len(c.log)]
}

// Logged returns the position of the next event in the Log.
func (s *Store) Logged(gvk schema.GroupVersionKind) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.kinds[gvk].log)
}

// Snapshot returns the objects of a kind, sorted by key and not to be
// modified, and the position of the next event in the Log.
func (s *Store) Snapshot(gvk schema.GroupVersionKind) ([]client.Object, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.kinds[gvk]
	return c.list(), len(c.log)
}

// All yields the objects of a kind, sorted by key. They must not be modified.
func All[T client.Object](s *Store) iter.Seq[T] {
	return func(yield func(T) bool) {
		var kind T
		objects, _ := s.Snapshot(s.byType[reflect.TypeOf(kind)].gvk)
		for _, o := range objects {
			if !yield(o.(T)) {
				return
			}
		}
	}
}

// Find returns the object with the key, not to be modified, or nil.
func Find[T client.Object](s *Store, namespace, name string) T {
	s.mu.Lock()
	defer s.mu.Unlock()
	var none T
	c := s.kinds[s.byType[reflect.TypeOf(none)].gvk]
	if o, ok := c.objects[client.ObjectKey{Namespace: namespace, Name: name}]; ok {
		return o.(T)
	}
	return none
}

func (c *collection) list() []client.Object {
	if c.sorted == nil {
		c.sorted = make([]client.Object, 0, len(c.objects))
		for _, o := range c.objects {
			c.sorted = append(c.sorted, o)
		}
		slices.SortFunc(c.sorted, func(a, b client.Object) int {
			return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
		})
	}
	return c.sorted
}

// writing is one write of someone to an object of a kind.
type writing struct {
	*collection
	by, verb string
}

// put stores the object as a new version of old (nil = it is new). An object
// that waits for nothing but finalizers, and has none, is removed instead.
func (s *Store) put(w writing, old, object client.Object) {
	s.version++
	object.SetResourceVersion(strconv.FormatInt(s.version, 10))
	if object.GetDeletionTimestamp() != nil && len(object.GetFinalizers()) == 0 && graceless(object) {
		s.removed(w, old, object)
		return
	}
	kind := watch.Modified
	if old == nil {
		kind = watch.Added
	}
	key := client.ObjectKeyFromObject(object)
	w.objects[key] = object
	w.sorted = nil
	w.log = append(w.log, Event{kind, object, s.version})
	s.changes = append(s.changes, Change{w.by, w.verb, w.gvk.Kind, old, object})
}

func graceless(o client.Object) bool {
	grace := o.GetDeletionGracePeriodSeconds()
	return grace == nil || *grace == 0
}

// remove takes the object out of the store.
func (s *Store) remove(w writing, old client.Object) {
	last := old.DeepCopyObject().(client.Object)
	s.version++
	last.SetResourceVersion(strconv.FormatInt(s.version, 10))
	s.removed(w, old, last)
}

func (s *Store) removed(w writing, old, last client.Object) {
	delete(w.objects, client.ObjectKeyFromObject(last))
	w.sorted = nil
	w.log = append(w.log, Event{watch.Deleted, last, s.version})
	s.changes = append(s.changes, Change{w.by, w.verb, w.gvk.Kind, old, nil})
}

func (s *Store) newUID() types.UID {
	a, b := s.rand.Uint64(), s.rand.Uint64()
	return types.UID(fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x", uint32(a>>32), uint16(a>>16), a&0xfff, 0x8000|b>>50, b&(1<<48-1)))
}

const letters = "bcdfghjklmnpqrstvwxz2456789"

func (s *Store) suffix() string {
	out := make([]byte, 5)
	for i := range out {
		out[i] = letters[s.rand.IntN(len(letters))]
	}
	return string(out)
}

func now() *metav1.Time {
	t := metav1.NewTime(time.Now().Truncate(time.Second))
	return &t
}

// typed returns the tree as an object of the kind, with defaults.
func (s *Store) typed(r resource, tree map[string]any) (client.Object, error) {
	s.defaults.apply(r.gvk, tree)
	out, err := s.scheme.New(r.gvk)
	if err != nil {
		return nil, err
	}
	object := out.(client.Object)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(tree, object); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return object, nil
}

func notFound(r resource, name string) error { return apierrors.NewNotFound(r.plural, name) }

// into makes target equal to the stored object, without sharing anything.
func into(target, stored client.Object) {
	reflect.ValueOf(target).Elem().Set(reflect.ValueOf(stored.DeepCopyObject()).Elem())
}
