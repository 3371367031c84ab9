// SPDX-License-Identifier: Apache-2.0

package optional

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// ErrUnread reports that objects of an optional kind cannot be read at present.
var ErrUnread = errors.New("an optional kind cannot be read")

// Refused reports whether the error is the API server's answer that it does not serve
// the kind, or that this process may not read it. Another attempt at once would have
// the same result.
func Refused(err error) bool {
	return apierrors.IsForbidden(err) || Unserved(err)
}

// Unserved reports whether the error says that the API server does not serve the kind.
func Unserved(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) || meta.IsNoMatchError(err)
}

// divided is two caches, one for required and one for optional kinds. Nothing
// waits for the second one.
type divided struct {
	cache.Cache // of required kinds
	optional    cache.Cache
	scheme      *runtime.Scheme
	kinds       map[schema.GroupVersionKind]client.Object
	unread      func(client.Object) error
}

// NewCache returns a constructor for a manager's cache that keeps optional
// kinds apart. unread returns why objects of one of them cannot be read at
// present, nil if they can.
func NewCache(kinds []client.Object, unread func(client.Object) error) cache.NewCacheFunc {
	return func(config *rest.Config, o cache.Options) (cache.Cache, error) {
		d := &divided{scheme: o.Scheme, kinds: map[schema.GroupVersionKind]client.Object{}, unread: unread}
		mapper := meta.NewDefaultRESTMapper(nil)
		for _, kind := range kinds {
			gvk, err := apiutil.GVKForObject(kind, o.Scheme)
			if err != nil {
				return nil, fmt.Errorf("optional kind %T: %w", kind, err)
			}
			d.kinds[gvk] = kind
			AddKind(mapper, gvk, meta.RESTScopeNamespace)
		}
		apart := o
		apart.Mapper = mapper // the informer lists the kind until the API server serves it
		apart.DefaultWatchErrorHandler = func(ctx context.Context, r *toolscache.Reflector, err error) {
			if !Refused(err) {
				toolscache.DefaultWatchErrorHandler(ctx, r, err)
			}
		}
		var err error
		if o.ByObject, apart.ByObject, err = d.divide(o.ByObject); err != nil {
			return nil, err
		}
		if d.Cache, err = cache.New(config, o); err != nil {
			return nil, err
		}
		d.optional, err = cache.New(config, apart)
		return d, err
	}
}

// divide returns the settings of required kinds, and of optional ones.
func (d *divided) divide(all map[client.Object]cache.ByObject) (required, apart map[client.Object]cache.ByObject, err error) {
	required, apart = map[client.Object]cache.ByObject{}, map[client.Object]cache.ByObject{}
	for o, by := range all {
		gvk, err := apiutil.GVKForObject(o, d.scheme)
		if err != nil {
			return nil, nil, err
		}
		if d.kinds[gvk] != nil {
			apart[o] = by
		} else {
			required[o] = by
		}
	}
	return required, apart, nil
}

// AddKind adds a kind to a mapper under the name of its resource. The mapper's own guess
// for NodeOverlay would be nodeoverlaies.
func AddKind(mapper *meta.DefaultRESTMapper, gvk schema.GroupVersionKind, scope meta.RESTScope) {
	singular := strings.ToLower(gvk.Kind)
	plural := singular + "s"
	if strings.HasSuffix(singular, "s") {
		plural = singular + "es"
	}
	mapper.AddSpecific(gvk, gvk.GroupVersion().WithResource(plural), gvk.GroupVersion().WithResource(singular), scope)
}

// of returns the cache of a kind, and the kind if it is optional.
func (d *divided) of(gvk schema.GroupVersionKind) (cache.Cache, client.Object) {
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	if kind, ok := d.kinds[gvk]; ok {
		return d.optional, kind
	}
	return d.Cache, nil
}

// reader returns the cache from which an object, or a list, can be read. Of an optional
// kind it waits until objects can be read, or it is known that they cannot.
func (d *divided) reader(ctx context.Context, o runtime.Object) (cache.Cache, error) {
	gvk, err := apiutil.GVKForObject(o, d.scheme)
	if err != nil {
		return nil, err
	}
	c, kind := d.of(gvk)
	if kind == nil {
		return c, nil
	}
	informer, err := c.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, err
	}
	var why error
	err = wait.PollUntilContextCancel(ctx, turn, true, func(context.Context) (bool, error) {
		why = d.unread(kind)
		return why != nil || informer.HasSynced(), nil
	})
	if why != nil {
		return nil, fmt.Errorf("%w: %v", ErrUnread, why) // not as an answer about the object
	}
	return c, err
}

// turn is how often readers look whether they can go on.
const turn = 50 * time.Millisecond

// Get implements client.Reader.
func (d *divided) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	c, err := d.reader(ctx, o)
	if err != nil {
		return err
	}
	return c.Get(ctx, key, o, options...)
}

// List implements client.Reader.
func (d *divided) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	c, err := d.reader(ctx, list)
	if err != nil {
		return err
	}
	return c.List(ctx, list, options...)
}

// GetInformer implements cache.Informers.
func (d *divided) GetInformer(ctx context.Context, o client.Object, options ...cache.InformerGetOption) (cache.Informer, error) {
	gvk, err := apiutil.GVKForObject(o, d.scheme)
	if err != nil {
		return nil, err
	}
	c, _ := d.of(gvk)
	return c.GetInformer(ctx, o, options...)
}

// GetInformerForKind implements cache.Informers.
func (d *divided) GetInformerForKind(ctx context.Context, gvk schema.GroupVersionKind, options ...cache.InformerGetOption) (cache.Informer, error) {
	c, _ := d.of(gvk)
	return c.GetInformerForKind(ctx, gvk, options...)
}

// RemoveInformer implements cache.Informers.
func (d *divided) RemoveInformer(ctx context.Context, o client.Object) error {
	gvk, err := apiutil.GVKForObject(o, d.scheme)
	if err != nil {
		return err
	}
	c, _ := d.of(gvk)
	return c.RemoveInformer(ctx, o)
}

// IndexField implements client.FieldIndexer.
func (d *divided) IndexField(ctx context.Context, o client.Object, field string, extract client.IndexerFunc) error {
	gvk, err := apiutil.GVKForObject(o, d.scheme)
	if err != nil {
		return err
	}
	c, _ := d.of(gvk)
	return c.IndexField(ctx, o, field, extract)
}

// Start implements cache.Informers.
func (d *divided) Start(ctx context.Context) error {
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error { return d.Cache.Start(ctx) })
	both.Go(func() error { return d.optional.Start(ctx) })
	return both.Wait()
}
