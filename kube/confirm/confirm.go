// SPDX-License-Identifier: Apache-2.0

// Package confirm asks the API server about NodeClaims that were created and of
// which no event has come.
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

// World knows of claims from those who have created them.
type World interface {
	// Unconfirmed returns claims of which an event is overdue.
	Unconfirmed(now time.Time) []string
	// Confirmed and DeleteClaim take in what has become of one.
	Confirmed(claim world.Claim, now time.Time)
	DeleteClaim(name string)
}

// Claims finds out what has become of the claims that are overdue. Time alone
// does not tell: a cache may lag, and forgetting one that exists would launch it
// again, beyond limits.
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
