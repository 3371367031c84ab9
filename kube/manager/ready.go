// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
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
