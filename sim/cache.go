// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/sim/store"
)

// lagging is the cache of a process: what it has been told of the store.
type lagging struct {
	store      *store.Store
	transforms map[schema.GroupVersionKind]toolscache.TransformFunc
	listening  func() string // who adds a handler now

	mu        sync.Mutex
	informers map[schema.GroupVersionKind]*informer
	inOrder   []*informer // by kind; nil = not known
	indexers  map[schema.GroupVersionKind]map[string]client.IndexerFunc
}

var _ cache.Cache = (*lagging)(nil)

func newCache(s *store.Store, objects map[client.Object]cache.ByObject, listening func() string) (*lagging, error) {
	c := &lagging{
		store: s, transforms: map[schema.GroupVersionKind]toolscache.TransformFunc{}, listening: listening,
		informers: map[schema.GroupVersionKind]*informer{}, indexers: map[schema.GroupVersionKind]map[string]client.IndexerFunc{},
	}
	for o, by := range objects {
		gvk, err := s.KindOf(o)
		if err != nil {
			return nil, err
		}
		c.transforms[gvk] = by.Transform
	}
	return c, nil
}

// sorted returns the informers by kind.
func (c *lagging) sorted() []*informer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inOrder == nil {
		c.inOrder = slices.SortedFunc(maps.Values(c.informers), func(a, b *informer) int { return cmp.Compare(a.gvk.Kind, b.gvk.Kind) })
	}
	return c.inOrder
}

func (c *lagging) informer(gvk schema.GroupVersionKind) (*informer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := c.informers[gvk]; i != nil {
		return i, nil
	}
	i := &informer{
		gvk: gvk, store: c.store, transform: c.transforms[gvk], listening: c.listening,
		objects: map[client.ObjectKey]client.Object{}, indexers: c.indexers[gvk],
		indexed: map[string]map[string]map[client.ObjectKey]struct{}{},
	}
	if err := i.list(); err != nil {
		return nil, err
	}
	c.informers[gvk] = i
	c.inOrder = nil
	return i, nil
}

// GetInformer implements cache.Cache.
func (c *lagging) GetInformer(_ context.Context, o client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	gvk, err := c.store.KindOf(o)
	if err != nil {
		return nil, err
	}
	return c.informer(gvk)
}

// GetInformerForKind implements cache.Cache.
func (c *lagging) GetInformerForKind(_ context.Context, gvk schema.GroupVersionKind, _ ...cache.InformerGetOption) (cache.Informer, error) {
	if !c.store.Scheme().Recognizes(gvk) {
		return nil, &meta.NoKindMatchError{GroupKind: gvk.GroupKind()}
	}
	return c.informer(gvk)
}

// RemoveInformer implements cache.Cache.
func (c *lagging) RemoveInformer(_ context.Context, o client.Object) error {
	gvk, err := c.store.KindOf(o)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.informers, gvk)
	c.inOrder = nil
	return nil
}

// Start implements cache.Cache.
func (c *lagging) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// WaitForCacheSync implements cache.Cache.
func (c *lagging) WaitForCacheSync(ctx context.Context) bool { return ctx.Err() == nil }

// IndexField implements cache.Cache.
func (c *lagging) IndexField(_ context.Context, o client.Object, field string, values client.IndexerFunc) error {
	gvk, err := c.store.KindOf(o)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.informers[gvk] != nil {
		return fmt.Errorf("index %s by %s: the informer runs", gvk.Kind, field)
	}
	if c.indexers[gvk] == nil {
		c.indexers[gvk] = map[string]client.IndexerFunc{}
	}
	c.indexers[gvk][field] = values
	return nil
}

// Get implements client.Reader.
func (c *lagging) Get(ctx context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	gvk, err := c.store.KindOf(o)
	if err != nil {
		return err
	}
	i, err := c.informer(gvk)
	if err != nil {
		return err
	}
	i.mu.Lock()
	stored := i.objects[key]
	i.mu.Unlock()
	if stored == nil {
		return c.store.NotFound(gvk, key.Name)
	}
	reflect.ValueOf(o).Elem().Set(reflect.ValueOf(stored.DeepCopyObject()).Elem())
	return nil
}

// List implements client.Reader.
func (c *lagging) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	gvk, err := c.store.KindOf(list)
	if err != nil {
		return err
	}
	i, err := c.informer(gvk)
	if err != nil {
		return err
	}
	o := client.ListOptions{}
	o.ApplyOptions(options)
	candidates, err := i.selected(o.FieldSelector)
	if err != nil {
		return err
	}
	found := slices.DeleteFunc(candidates, func(x client.Object) bool { return !store.Matches(x, &o) })
	return store.Fill(list, found, o.UnsafeDisableDeepCopy == nil || !*o.UnsafeDisableDeepCopy)
}

// selected returns the objects that the indexes have for the selector, sorted
// by key.
func (i *informer) selected(selector fields.Selector) ([]client.Object, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if selector == nil || selector.Empty() {
		return slices.Clone(i.all()), nil
	}
	var keys map[client.ObjectKey]struct{}
	for n, r := range selector.Requirements() {
		if _, ok := i.indexers[r.Field]; !ok {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("there is no index of %s by %s", i.gvk.Kind, r.Field))
		}
		found := i.indexed[r.Field][r.Value]
		if n == 0 {
			keys = maps.Clone(found)
			continue
		}
		maps.DeleteFunc(keys, func(k client.ObjectKey, _ struct{}) bool { _, ok := found[k]; return !ok })
	}
	out := make([]client.Object, 0, len(keys))
	for _, key := range slices.SortedFunc(maps.Keys(keys), compareKeys) {
		out = append(out, i.objects[key])
	}
	return out, nil
}
