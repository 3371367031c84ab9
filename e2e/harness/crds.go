// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"karpenter/api/crds"
	"karpenter/api/scheme"
)

// Scheme returns Kubernetes' own resources, CRDs and Karpenter's resources.
func Scheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	err := errors.Join(kubescheme.AddToScheme(s), apiextensionsv1.AddToScheme(s), scheme.AddToScheme(s))
	if err != nil {
		return nil, fmt.Errorf("build the scheme: %w", err)
	}
	return s, nil
}

// InstallCRDs creates the Karpenter CRDs and waits until they are served. Those
// that exist are updated.
func (c *Cluster) InstallCRDs(ctx context.Context) error {
	manifests, err := crds.Manifests()
	if err != nil {
		return err
	}
	for name, manifest := range manifests {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(manifest, &crd); err != nil {
			return fmt.Errorf("decode CRD manifest %s: %w", name, err)
		}
		if err := c.installCRD(ctx, &crd); err != nil {
			return fmt.Errorf("install CRD %s: %w", crd.Name, err)
		}
	}
	return nil
}

func (c *Cluster) installCRD(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
	spec := crd.Spec.DeepCopy()
	if err := c.Client.Create(ctx, crd); apierrors.IsAlreadyExists(err) {
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
			return err
		}
		crd.Spec = *spec
		if err := c.Client.Update(ctx, crd); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
			return false, err
		}
		for _, condition := range crd.Status.Conditions {
			if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
				return c.discovered(crd), nil
			}
		}
		return false, nil
	})
}

// discovered reports whether clients find the resource: the list of groups lags behind on a
// busy machine.
func (c *Cluster) discovered(crd *apiextensionsv1.CustomResourceDefinition) bool {
	kind := schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}
	return !slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		_, err := c.Client.RESTMapper().RESTMapping(kind, v.Name)
		return v.Served && err != nil
	})
}
