// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "karpenter/api/v1"
)

type caches struct{ full chan struct{} }

func (c caches) WaitForCacheSync(ctx context.Context) bool {
	select {
	case <-c.full:
		return true
	case <-ctx.Done():
		return false
	}
}

// spec 50/21: not ready until the caches are synced.
func TestReadyOnceCachesAreSynced(t *testing.T) {
	c := caches{make(chan struct{})}
	check, request := cachesSynced(c), httptest.NewRequest("GET", "/readyz", nil)
	if check(request) == nil {
		t.Error("ready before the caches are synced")
	}
	close(c.full)
	if err := check(request); err != nil {
		t.Errorf("not ready with caches synced: %v", err)
	}
}

// spec 50/21: not ready until the required kinds are served. Caches know them before.
func TestReadyOnceCRDsAreServed(t *testing.T) {
	objects := runtime.NewScheme()
	if err := v1.AddToScheme(objects); err != nil {
		t.Fatal(err)
	}
	needed, err := requiredKinds([]client.Object{&v1.NodePool{}, &v1.NodeClaim{}}, objects)
	if err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	check, request := needed.served(mapper), httptest.NewRequest("GET", "/readyz", nil)
	for _, gvk := range needed {
		if err := check(request); err == nil || !strings.Contains(err.Error(), gvk.Kind+" v1 is not served") {
			t.Errorf("without %s: %v", gvk.Kind, err)
		}
		if known, err := needed.mapper(mapper).RESTMapping(gvk.GroupKind(), "v1"); err != nil || known.Resource.Resource != strings.ToLower(gvk.Kind)+"s" {
			t.Errorf("caches know %s as %v: %v", gvk.Kind, known, err)
		}
		mapper.Add(gvk, meta.RESTScopeRoot)
	}
	if err := check(request); err != nil {
		t.Errorf("not ready with all served: %v", err)
	}
	other := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "DaemonSet"}
	mapper.Add(other, meta.RESTScopeNamespace)
	if known, err := needed.mapper(mapper).RESTMapping(other.GroupKind(), other.Version); err != nil || known.Scope.Name() != meta.RESTScopeNameNamespace {
		t.Errorf("caches know DaemonSets as %v: %v", known, err)
	}
}
