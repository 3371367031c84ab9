// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"karpenter/sim/store"
)

// informer is a process's copy of the objects of a kind, as far as it has been
// told, and those who hear of it. Its news come in two stages as with
// client-go: first the copy is brought up to an event, then each listener
// hears of it in its own time.
type informer struct {
	gvk       schema.GroupVersionKind
	store     *store.Store
	transform toolscache.TransformFunc // nil = none
	listening func() string            // who adds a handler now

	mu        sync.Mutex
	position  int // in the store's log
	objects   map[client.ObjectKey]client.Object
	sorted    []client.Object                                     // nil = not known
	indexers  map[string]client.IndexerFunc                       // by field
	indexed   map[string]map[string]map[client.ObjectKey]struct{} // field → value → keys
	listeners []*listener
}

var _ cache.Informer = (*informer)(nil)

// list reads everything, as when a watch begins.
func (i *informer) list() error {
	objects, position := i.store.Snapshot(i.gvk)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.position = position
	for _, o := range objects {
		if _, err := i.set(o); err != nil {
			return err
		}
	}
	return nil
}

// kept returns the object as the cache keeps it.
func (i *informer) kept(o client.Object) (client.Object, error) {
	if i.transform == nil {
		return o, nil
	}
	out, err := i.transform(o.DeepCopyObject())
	if err != nil {
		return nil, err
	}
	return out.(client.Object), nil
}

// set enters the object and returns what is kept of it.
func (i *informer) set(o client.Object) (client.Object, error) {
	o, err := i.kept(o)
	if err != nil {
		return nil, err
	}
	key := client.ObjectKeyFromObject(o)
	i.unset(key)
	i.objects[key] = o
	for field, values := range i.indexers {
		i.enter(field, values, o)
	}
	return o, nil
}

func (i *informer) enter(field string, values client.IndexerFunc, o client.Object) {
	byValue := i.indexed[field]
	if byValue == nil {
		byValue = map[string]map[client.ObjectKey]struct{}{}
		i.indexed[field] = byValue
	}
	for _, v := range values(o) {
		if byValue[v] == nil {
			byValue[v] = map[client.ObjectKey]struct{}{}
		}
		byValue[v][client.ObjectKeyFromObject(o)] = struct{}{}
	}
}

func (i *informer) unset(key client.ObjectKey) {
	i.sorted = nil
	o, ok := i.objects[key]
	if !ok {
		return
	}
	delete(i.objects, key)
	for field, values := range i.indexers {
		for _, v := range values(o) {
			delete(i.indexed[field][v], key)
		}
	}
}

// behind returns how many events there are that it has not been told.
func (i *informer) behind() int {
	i.mu.Lock()
	position := i.position
	i.mu.Unlock()
	return i.store.Logged(i.gvk) - position
}

// tell brings the copy up to the next event, and passes it on.
func (i *informer) tell() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	log := i.store.Log(i.gvk, i.position)
	if len(log) == 0 {
		return nil
	}
	i.position++
	event := log[0]
	key := client.ObjectKeyFromObject(event.Object)
	old := i.objects[key]
	if event.Type == watch.Deleted {
		last, err := i.kept(event.Object)
		if err != nil {
			return err
		}
		i.unset(key)
		i.pass(news{deleted: last})
		return nil
	}
	now, err := i.set(event.Object)
	i.pass(news{old: old, now: now})
	return err
}

// relist brings the copy up to what there is, without saying what happened in
// between.
func (i *informer) relist() error {
	objects, position := i.store.Snapshot(i.gvk)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.position = position
	left := maps.Clone(i.objects)
	for _, o := range objects {
		key := client.ObjectKeyFromObject(o)
		old := left[key]
		delete(left, key)
		if old != nil && old.GetResourceVersion() == o.GetResourceVersion() {
			continue
		}
		now, err := i.set(o)
		if err != nil {
			return err
		}
		i.pass(news{old: old, now: now})
	}
	for _, key := range slices.SortedFunc(maps.Keys(left), compareKeys) {
		i.unset(key)
		i.pass(news{deleted: toolscache.DeletedFinalStateUnknown{Key: toolscache.NewObjectName(key.Namespace, key.Name).String(), Obj: left[key]}})
	}
	return nil
}

func compareKeys(a, b client.ObjectKey) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

func (i *informer) pass(n news) {
	for _, l := range i.listeners {
		l.news = append(l.news, n)
	}
}

// all returns the objects sorted by key, not to be modified.
func (i *informer) all() []client.Object {
	if i.sorted == nil {
		i.sorted = make([]client.Object, 0, len(i.objects))
		for _, key := range slices.SortedFunc(maps.Keys(i.objects), compareKeys) {
			i.sorted = append(i.sorted, i.objects[key])
		}
	}
	return i.sorted
}

// listener is one who hears of an informer's news, one after the other.
type listener struct {
	of      *informer
	who     string
	handler toolscache.ResourceEventHandler
	news    []news
	initial int // of the news: what existed when it began to listen
	synced  chan struct{}
}

type news struct {
	old, now client.Object // old is nil for a new object
	deleted  any           // nil = it was not
	initial  bool
}

// backlog returns how many news the listener has not heard.
func (l *listener) backlog() int {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	return len(l.news)
}

// hear tells the handler the next of its news.
func (l *listener) hear() {
	l.of.mu.Lock()
	n := l.news[0]
	l.news = l.news[1:]
	l.of.mu.Unlock()
	switch {
	case n.deleted != nil:
		l.handler.OnDelete(n.deleted)
	case n.old != nil:
		l.handler.OnUpdate(n.old, n.now)
	default:
		l.handler.OnAdd(n.now, n.initial)
	}
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	if n.initial {
		if l.initial--; l.initial == 0 {
			close(l.synced)
		}
	}
}

// HasSynced implements toolscache.ResourceEventHandlerRegistration.
func (l *listener) HasSynced() bool {
	select {
	case <-l.synced:
		return true
	default:
		return false
	}
}

// HasSyncedChecker implements toolscache.ResourceEventHandlerRegistration.
func (l *listener) HasSyncedChecker() toolscache.DoneChecker { return done{l.who, l.synced} }

// done is a toolscache.DoneChecker.
type done struct {
	name string
	ch   <-chan struct{}
}

func (d done) Name() string          { return d.name }
func (d done) Done() <-chan struct{} { return d.ch }

// AddEventHandler implements cache.Informer.
func (i *informer) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	l := &listener{of: i, who: i.listening(), handler: h, initial: len(i.objects), synced: make(chan struct{})}
	for _, o := range i.all() {
		l.news = append(l.news, news{now: o, initial: true})
	}
	if l.initial == 0 {
		close(l.synced)
	}
	i.listeners = append(i.listeners, l)
	return l, nil
}

// AddEventHandlerWithResyncPeriod implements cache.Informer. There are no
// resyncs.
func (i *informer) AddEventHandlerWithResyncPeriod(h toolscache.ResourceEventHandler, _ time.Duration) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(h)
}

// AddEventHandlerWithOptions implements cache.Informer.
func (i *informer) AddEventHandlerWithOptions(h toolscache.ResourceEventHandler, _ toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(h)
}

// RemoveEventHandler implements cache.Informer.
func (i *informer) RemoveEventHandler(h toolscache.ResourceEventHandlerRegistration) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.listeners = slices.DeleteFunc(i.listeners, func(l *listener) bool { return l == h })
	return nil
}

// AddIndexers implements cache.Informer, which is not used directly.
func (i *informer) AddIndexers(toolscache.Indexers) error {
	return errors.New("add indexes through the cache")
}

// HasSynced implements cache.Informer.
func (i *informer) HasSynced() bool { return true }

// HasSyncedChecker implements cache.Informer.
func (i *informer) HasSyncedChecker() toolscache.DoneChecker {
	closed := make(chan struct{})
	close(closed)
	return done{i.gvk.Kind, closed}
}

// IsStopped implements cache.Informer.
func (i *informer) IsStopped() bool { return false }
