// SPDX-License-Identifier: Apache-2.0

package top

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	awsv1 "karpenter/api/aws/v1"
	kwokv1alpha1 "karpenter/api/kwok/v1alpha1"
	v1 "karpenter/api/v1"
	"karpenter/cmd/karpenter/recording"
	"karpenter/cmd/karpenter/situation"
	"karpenter/kube/feed"
)

// watched is a kind that is watched.
type watched struct {
	object   client.Object
	required bool // without it there is nothing to see
	selector fields.Selector
	// recorded kinds are watched for a recording only.
	recorded bool
}

func kinds() []watched {
	named := func(name string) fields.Selector { return fields.OneTermEqualSelector("metadata.name", name) }
	return []watched{
		{object: &corev1.Node{}, required: true},
		{object: &corev1.Pod{}, required: true},
		{object: &v1.NodeClaim{}},
		{object: &v1.NodePool{}},
		{object: &corev1.Event{}, selector: fields.OneTermEqualSelector("source", Publisher)},
		{object: &corev1.ConfigMap{}, selector: named(situation.Name)},
		{object: &corev1.Namespace{}},
		{object: &appsv1.DaemonSet{}},
		{object: &policyv1.PodDisruptionBudget{}},
		{object: &corev1.PersistentVolumeClaim{}},
		{object: &corev1.PersistentVolume{}},
		{object: &storagev1.StorageClass{}},
		{object: &storagev1.CSINode{}},
		{object: &awsv1.EC2NodeClass{}, recorded: true},
		{object: &kwokv1alpha1.KWOKNodeClass{}, recorded: true},
		{object: &appsv1.Deployment{}, recorded: true},
		{object: &coordinationv1.Lease{}, selector: named("karpenter-leader-election"), recorded: true},
	}
}

// Live is a Source that watches a cluster.
type Live struct {
	cache   cache.Cache
	direct  client.Reader // of kinds that are not watched
	scheme  *runtime.Scheme
	changed chan struct{}
	// absent is why kinds are not watched: the cluster does not know them, or the
	// user may not read them.
	absent  map[schema.GroupKind]error
	watched map[schema.GroupKind]bool

	mu      sync.Mutex
	trouble string
	record  *recording.Writer // nil = nothing is recorded
	failed  error             // what went wrong with the recording

	keeping sync.Mutex
	kept    kept
}

// Watch watches the cluster until ctx is done, and returns when everything was seen
// once. What changes is written to record, too, unless that is nil.
func Watch(ctx context.Context, config *rest.Config, scheme *runtime.Scheme, record *recording.Writer) (*Live, error) {
	direct, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	l := &Live{
		direct: direct, scheme: scheme, changed: make(chan struct{}, 1), record: record,
		absent: map[schema.GroupKind]error{}, watched: map[schema.GroupKind]bool{}, kept: kept{direct, map[string]string{}},
	}
	objects := feed.Trims()
	byType := map[string]client.Object{}
	for o := range objects {
		byType[fmt.Sprintf("%T", o)] = o
	}
	var present []watched
	for _, k := range kinds() {
		if k.recorded && record == nil {
			continue
		}
		if err := l.probe(ctx, direct, k); err != nil {
			return nil, err
		}
		if l.absent[l.kindOf(k.object)] != nil {
			continue
		}
		present = append(present, k)
		l.watched[l.kindOf(k.object)] = true
		key := byType[fmt.Sprintf("%T", k.object)]
		if key == nil {
			key = k.object
		}
		by := objects[key]
		by.Field = k.selector
		objects[key] = by
	}
	if err := l.recordDefinitions(ctx, direct); err != nil {
		return nil, err
	}
	l.cache, err = cache.New(config, cache.Options{
		Scheme: scheme, ByObject: objects, ReaderFailOnMissingInformer: true,
		DefaultWatchErrorHandler: func(_ context.Context, _ *toolscache.Reflector, err error) { l.lost(err) },
	})
	if err != nil {
		return nil, err
	}
	return l, l.start(ctx, present)
}

// probe finds out whether the kind can be read. Only an error about a kind that is
// required, or that has nothing to do with the kind, is returned.
func (l *Live) probe(ctx context.Context, c client.Client, k watched) error {
	gvk, err := apiutil.GVKForObject(k.object, l.scheme)
	if err != nil {
		return err
	}
	list, err := l.scheme.New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err != nil {
		return err
	}
	options := &client.ListOptions{Limit: 1, FieldSelector: k.selector}
	err = c.List(ctx, list.(client.ObjectList), options)
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err) && k.required:
		return situation.Hinted(fmt.Errorf("list %ss: %w", gvk.Kind, err))
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		l.absent[gvk.GroupKind()] = err
		return nil
	}
	return fmt.Errorf("list %ss: %w", gvk.Kind, err)
}

func (l *Live) start(ctx context.Context, present []watched) error {
	handlers := make([]toolscache.ResourceEventHandlerRegistration, 0, len(present))
	for _, k := range present {
		informer, err := l.cache.GetInformer(ctx, k.object, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watch %T: %w", k.object, err)
		}
		handler, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { l.seen(o, false) },
			UpdateFunc: func(_, o any) { l.seen(o, false) },
			DeleteFunc: func(o any) {
				if gone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
					o = gone.Obj
				}
				l.seen(o, true)
			},
		})
		if err != nil {
			return fmt.Errorf("watch %T: %w", k.object, err)
		}
		handlers = append(handlers, handler)
	}
	go func() {
		if err := l.cache.Start(ctx); err != nil {
			l.lost(err)
		}
	}()
	if !l.cache.WaitForCacheSync(ctx) {
		return fmt.Errorf("read the cluster: %w", context.Cause(ctx))
	}
	for _, h := range handlers {
		if !toolscache.WaitForCacheSync(ctx.Done(), h.HasSynced) {
			return fmt.Errorf("read the cluster: %w", context.Cause(ctx))
		}
	}
	if l.record != nil {
		go l.keepRecord(ctx)
	}
	return nil
}

// definitions are the CRDs that a recording holds, without their schemas.
func definitions() []string {
	return []string{"nodepools.karpenter.sh", "nodeclaims.karpenter.sh", "ec2nodeclasses.karpenter.k8s.aws", "kwoknodeclasses.karpenter.kwok.sh"}
}

// recordDefinitions records the CRDs that there are and that the user may read.
func (l *Live) recordDefinitions(ctx context.Context, c client.Reader) error {
	if l.record == nil {
		return nil
	}
	for _, name := range definitions() {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		err := c.Get(ctx, client.ObjectKey{Name: name}, crd)
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			continue
		}
		for i := range crd.Spec.Versions {
			crd.Spec.Versions[i].Schema = nil
		}
		if err == nil {
			err = l.record.Write(recording.Change{At: time.Now(), Object: slim(crd)})
		}
		if err != nil {
			return fmt.Errorf("record CustomResourceDefinition %s: %w", name, err)
		}
	}
	return nil
}

// seen takes note of a change.
func (l *Live) seen(object any, deleted bool) {
	l.mu.Lock()
	l.trouble = ""
	if o, ok := object.(client.Object); ok && l.record != nil {
		l.failed = errors.Join(l.failed, l.record.Write(recording.Change{At: time.Now(), Deleted: deleted, Object: slim(o)}))
	}
	l.mu.Unlock()
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// slim returns the object without what no command reads. Who wrote the ConfigMap
// when is read.
func slim(o client.Object) client.Object {
	if _, ok := o.(*corev1.ConfigMap); ok {
		return o
	}
	o = o.DeepCopyObject().(client.Object)
	o.SetManagedFields(nil)
	if annotations := o.GetAnnotations(); annotations != nil {
		delete(annotations, corev1.LastAppliedConfigAnnotation)
		o.SetAnnotations(annotations)
	}
	return o
}

func (l *Live) lost(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) { // watches end and begin again
		l.trouble = "connection lost, trying again: " + err.Error()
	}
}

// StopRecording has nothing recorded any more, and returns what went wrong with the
// recording.
func (l *Live) StopRecording() error {
	if l.record != nil {
		ctx, cancel := context.WithTimeout(context.Background(), keepLast)
		defer cancel()
		l.keepNow(ctx)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.record = nil
	return l.failed
}

// Changed implements Source.
func (l *Live) Changed() <-chan struct{} { return l.changed }

// Now implements Source.
func (l *Live) Now() time.Time { return time.Now() }

// Trouble implements Source.
func (l *Live) Trouble() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.trouble
}

func (l *Live) kindOf(o client.Object) schema.GroupKind {
	gvk, err := apiutil.GVKForObject(o, l.scheme)
	if err != nil {
		return schema.GroupKind{}
	}
	return gvk.GroupKind()
}

// Get implements client.Reader.
func (l *Live) Get(ctx context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	if err := l.absent[l.kindOf(o)]; err != nil {
		return err
	}
	if !l.watched[l.kindOf(o)] {
		return l.direct.Get(ctx, key, o)
	}
	return l.cache.Get(ctx, key, o)
}

// List implements client.Reader. It never answers in pages, and kinds that are
// watched by name are not selected by name again.
func (l *Live) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	gvk, err := apiutil.GVKForObject(list, l.scheme)
	if err != nil {
		return err
	}
	kind := schema.GroupKind{Group: gvk.Group, Kind: gvk.Kind[:len(gvk.Kind)-len("List")]}
	if err := l.absent[kind]; err != nil {
		return err
	}
	if !l.watched[kind] {
		return l.direct.List(ctx, list, options...)
	}
	o := &client.ListOptions{}
	o.ApplyOptions(options)
	o.Limit, o.Continue, o.FieldSelector = 0, "", nil
	if err := l.cache.List(ctx, list, o); err != nil {
		return err
	}
	list.SetContinue("") // the cache says that it cannot continue, and there is nothing to continue with
	return nil
}
