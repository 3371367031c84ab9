// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"karpenter/kube/optional"
)

// required are the cluster-wide custom kinds that the process needs. Caches know them without asking the
// API server, so their informers list until a missing CRD is installed.
type required []schema.GroupVersionKind

func requiredKinds(kinds []client.Object, scheme *runtime.Scheme) (required, error) {
	var out required
	for _, kind := range kinds {
		gvk, err := apiutil.GVKForObject(kind, scheme)
		if err != nil {
			return nil, fmt.Errorf("required kind %T: %w", kind, err)
		}
		out = append(out, gvk)
	}
	return out, nil
}

// mapper returns a mapper that knows the required kinds and asks the other one for the rest.
func (r required) mapper(other meta.RESTMapper) meta.RESTMapper {
	known := meta.NewDefaultRESTMapper(nil)
	for _, gvk := range r {
		optional.AddKind(known, gvk, meta.RESTScopeRoot)
	}
	return meta.FirstHitRESTMapper{MultiRESTMapper: meta.MultiRESTMapper{known, other}}
}

// served passes while the API server serves the required kinds.
func (r required) served(mapper meta.RESTMapper) healthz.Checker {
	return func(*http.Request) error {
		var failures []error
		for _, gvk := range r {
			if _, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version); err != nil {
				failures = append(failures, fmt.Errorf("%s %s is not served: %w", gvk.Kind, gvk.Version, err))
			}
		}
		return errors.Join(failures...)
	}
}

// watchFailed logs why an informer cannot list or watch. If the API server does not serve the kind, the
// message names the CRD to install.
func watchFailed(ctx context.Context, r *toolscache.Reflector, err error) {
	var status apierrors.APIStatus
	if !optional.Unserved(err) || !errors.As(err, &status) || status.Status().Details == nil || status.Status().Details.Group == "" {
		toolscache.DefaultWatchErrorHandler(ctx, r, err)
		return
	}
	d := status.Status().Details
	log.FromContext(ctx).Error(err, "a CRD is missing, or does not serve the version of this program; waiting for it. "+
		"Install the CRDs: helm upgrade --install karpenter-crd CHART", "crd", d.Kind+"."+d.Group)
}
