// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	v1 "karpenter/api/v1"
)

// syncWait is how long a probe waits for caches that are not full yet.
const syncWait = 200 * time.Millisecond

// syncer is the part of a cache that knows whether it is full.
type syncer interface {
	WaitForCacheSync(ctx context.Context) bool
}

// cachesSynced passes once every informer has seen what existed when it
// started.
func cachesSynced(caches syncer) healthz.Checker {
	return func(r *http.Request) error {
		ctx, cancel := context.WithTimeout(r.Context(), syncWait)
		defer cancel()
		if !caches.WaitForCacheSync(ctx) {
			return errors.New("caches are not synced")
		}
		return nil
	}
}

// mapped passes while the API server serves the CRDs there is no working
// without.
func mapped(mapper meta.RESTMapper) healthz.Checker {
	return func(*http.Request) error {
		for _, kind := range []string{"NodePool", "NodeClaim"} {
			if _, err := mapper.RESTMapping(schema.GroupKind{Group: v1.Group, Kind: kind}, "v1"); err != nil {
				return fmt.Errorf("%s v1 is not served: %w", kind, err)
			}
		}
		return nil
	}
}
