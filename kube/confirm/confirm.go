// SPDX-License-Identifier: Apache-2.0

// Package confirm asks the API server about NodeClaims that were created but
// have not appeared in a watch event.
package confirm

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "karpenter/api/v1"
	"karpenter/kube/convert"
	"karpenter/world"
)

// World knows the claims that were created, from the code that created them.
type World interface {
	// Unconfirmed returns the claims whose event is overdue.
	Unconfirmed(now time.Time) []string
	// Confirmed and DeleteClaim record that a claim exists, or no longer
	// exists.
	Confirmed(claim world.Claim, now time.Time)
	DeleteClaim(name string)
}

// Claims asks the API server whether the overdue claims exist. A timeout cannot
// decide that, because a cache may lag: if the world forgot a claim that
// exists, it would be launched again, beyond limits.
func Claims(ctx context.Context, live client.Reader, w World, c convert.Converter, now time.Time) error {
	for _, name := range w.Unconfirmed(now) {
		claim := &v1.NodeClaim{}
		switch err := live.Get(ctx, client.ObjectKey{Name: name}, claim); {
		case apierrors.IsNotFound(err):
			w.DeleteClaim(name)
		case err != nil:
			return fmt.Errorf("get node claim %s: %w", name, err)
		default:
			if known, ok := c.Claim(claim); ok {
				w.Confirmed(known, now)
			}
		}
	}
	return nil
}
