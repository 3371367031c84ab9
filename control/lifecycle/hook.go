// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "karpenter/api/v1"
)

// Hook may hold up the registration of a Node until something outside, such
// as an agent on the instance, is done.
type Hook interface {
	// Name is shown on the claim while the hook delays it.
	Name() string
	// Registered is asked each time a claim with a Node is about to be
	// registered. The zero result without an error lets it pass; any other
	// result says when to ask again. The hook may change the labels and
	// annotations of the claim, which is its own copy; changes end up on the
	// claim and its Node. It must be fast and safe for concurrent use.
	Registered(ctx context.Context, claim *v1.NodeClaim) (reconcile.Result, error)
}

// pendingHooks is what holds up a registration.
type pendingHooks struct {
	names []string // in the order of the hooks
	after time.Duration
	err   error
}

func (p *pendingHooks) message() string { return strings.Join(p.names, ", ") }

// runHooks calls all hooks in parallel and merges their changes into the claim.
// Later hooks win over earlier ones.
func (r *Reconciler) runHooks(ctx context.Context, claim *v1.NodeClaim) pendingHooks {
	copies := make([]*v1.NodeClaim, len(r.Hooks))
	results := make([]reconcile.Result, len(r.Hooks))
	failures := make([]error, len(r.Hooks))
	var running sync.WaitGroup
	for i, h := range r.Hooks {
		copies[i] = claim.DeepCopy()
		running.Go(func() { results[i], failures[i] = h.Registered(ctx, copies[i]) })
	}
	running.Wait()

	var pending pendingHooks
	labels, annotations := maps.Clone(claim.Labels), maps.Clone(claim.Annotations)
	for i, h := range r.Hooks {
		labels = carry(claim.Labels, copies[i].Labels, labels)
		annotations = carry(claim.Annotations, copies[i].Annotations, annotations)
		if failures[i] == nil && results[i].IsZero() {
			continue
		}
		pending.names = append(pending.names, h.Name())
		if failures[i] != nil {
			pending.err = errors.Join(pending.err, fmt.Errorf("registration hook %s: %w", h.Name(), failures[i]))
		}
		if after := results[i].RequeueAfter; after > 0 && (pending.after == 0 || after < pending.after) {
			pending.after = after
		}
	}
	claim.Labels, claim.Annotations = labels, annotations
	return pending
}

// carry applies to onto what changed from before to after.
func carry(before, after, onto map[string]string) map[string]string {
	for k, v := range after {
		if old, ok := before[k]; !ok || old != v {
			onto = merged(onto, map[string]string{k: v})
		}
	}
	for k := range before {
		if _, ok := after[k]; !ok {
			delete(onto, k)
		}
	}
	return onto
}
