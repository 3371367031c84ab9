// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"net/http/httptest"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

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

// spec 50/21: not ready until NodePool and NodeClaim are served.
func TestReadyOnceCRDsAreMapped(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper(nil)
	check, request := mapped(mapper), httptest.NewRequest("GET", "/readyz", nil)
	for _, kind := range []string{"NodePool", "NodeClaim"} {
		if check(request) == nil {
			t.Errorf("ready without %s", kind)
		}
		mapper.Add(schema.GroupVersionKind{Group: v1.Group, Version: "v1", Kind: kind}, meta.RESTScopeRoot)
	}
	if err := check(request); err != nil {
		t.Errorf("not ready with both served: %v", err)
	}
}
