// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/client-go/util/retry"
)

// fieldManager owns the fields that are applied.
const fieldManager = "sandbox"

var crdResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// Applier writes objects to a cluster by server-side apply.
type Applier struct {
	client    dynamic.Interface
	discovery discovery.DiscoveryInterface
}

// NewApplier returns an Applier to the cluster.
func NewApplier(config *rest.Config) (*Applier, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.UserAgent = fieldManager
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	found, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	return &Applier{client: client, discovery: found}, nil
}

// InstallCRDs applies CustomResourceDefinitions, taking over what others changed, and returns once all are served.
func (a *Applier) InstallCRDs(ctx context.Context, crds []*unstructured.Unstructured) error {
	for _, crd := range crds {
		if crd.GetKind() != "CustomResourceDefinition" {
			return fmt.Errorf("install %s: it is a %s, not a CustomResourceDefinition", crd.GetName(), crd.GetKind())
		}
		if err := a.write(ctx, a.client.Resource(crdResource), crd); err != nil {
			return err
		}
	}
	for _, crd := range crds {
		if err := a.awaitEstablished(ctx, crd.GetName()); err != nil {
			return fmt.Errorf("wait until %s is served: %w", crd.GetName(), err)
		}
	}
	return nil
}

func (a *Applier) awaitEstablished(ctx context.Context, name string) error {
	only := func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("metadata.name", name).String()
	}
	one := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			only(&o)
			return a.client.Resource(crdResource).List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			only(&o)
			return a.client.Resource(crdResource).Watch(ctx, o)
		},
	}
	_, err := watchtools.UntilWithSync(ctx, one, &unstructured.Unstructured{}, nil, func(e watch.Event) (bool, error) {
		crd, ok := e.Object.(*unstructured.Unstructured)
		return ok && established(crd), nil
	})
	return err
}

func established(crd *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == "Established" && c["status"] == "True" {
			return true
		}
	}
	return false
}

// Apply writes the objects, in order.
func (a *Applier) Apply(ctx context.Context, objects []*unstructured.Unstructured) error {
	return a.each(ctx, objects, a.write)
}

// ApplyAbsent writes those objects that do not exist, and leaves those alone that do.
func (a *Applier) ApplyAbsent(ctx context.Context, objects []*unstructured.Unstructured) error {
	return a.each(ctx, objects, func(ctx context.Context, to dynamic.ResourceInterface, object *unstructured.Unstructured) error {
		_, err := to.Get(ctx, object.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return a.write(ctx, to, object)
		}
		return err
	})
}

// Delete removes the objects and, in the background, what they own; those that do not exist are fine.
func (a *Applier) Delete(ctx context.Context, objects []*unstructured.Unstructured) error {
	return a.each(ctx, objects, func(ctx context.Context, to dynamic.ResourceInterface, object *unstructured.Unstructured) error {
		background := metav1.DeletePropagationBackground
		err := to.Delete(ctx, object.GetName(), metav1.DeleteOptions{PropagationPolicy: &background})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}

type action func(ctx context.Context, to dynamic.ResourceInterface, object *unstructured.Unstructured) error

func (a *Applier) each(ctx context.Context, objects []*unstructured.Unstructured, do action) error {
	groups, err := restmapper.GetAPIGroupResources(a.discovery)
	if err != nil {
		return fmt.Errorf("ask which resources exist: %w", err)
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	for _, object := range objects {
		to, err := a.resourceOf(mapper, object)
		if err == nil {
			err = do(ctx, to, object)
		}
		if err != nil {
			return fmt.Errorf("%s %s: %w", strings.ToLower(object.GetKind()), object.GetName(), err)
		}
	}
	return nil
}

func (a *Applier) resourceOf(mapper meta.RESTMapper, object *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := object.GroupVersionKind()
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return a.client.Resource(mapping.Resource), nil
	}
	namespace := object.GetNamespace()
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	return a.client.Resource(mapping.Resource).Namespace(namespace), nil
}

// write applies the object. A resource that was defined a moment ago may answer NotFound a few times.
func (a *Applier) write(ctx context.Context, to dynamic.ResourceInterface, object *unstructured.Unstructured) error {
	backoff := wait.Backoff{Duration: 20 * time.Millisecond, Factor: 2, Steps: 8}
	return retry.OnError(backoff, func(err error) bool { return apierrors.IsNotFound(err) && ctx.Err() == nil }, func() error {
		_, err := to.Apply(ctx, object.GetName(), object.DeepCopy(), metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
		if err != nil && errors.Is(ctx.Err(), context.Canceled) {
			return ctx.Err()
		}
		return err
	})
}
