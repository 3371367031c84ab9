// SPDX-License-Identifier: Apache-2.0

package cloud_test

import (
	"errors"
	"fmt"
	"testing"

	"karpenter/cloud"
)

// spec 55/1: each kind is recognised directly and through wrapping, as no
// other kind, and gives back its cause. Nil is none of them.
func TestErrorKinds(t *testing.T) {
	boom := errors.New("boom")
	is := map[string]func(error) bool{
		"not found": cloud.IsNotFound, "insufficient capacity": cloud.IsInsufficientCapacity,
		"node class not ready": cloud.IsNodeClassNotReady, "create": cloud.IsCreateError,
		"unevaluated": cloud.IsUnevaluatedNodePool,
	}
	for kind, err := range map[string]error{
		"not found":             &cloud.NotFoundError{Err: boom},
		"insufficient capacity": &cloud.InsufficientCapacityError{Err: boom},
		"node class not ready":  &cloud.NodeClassNotReadyError{Err: boom},
		"create":                &cloud.CreateError{Reason: "R", Message: "M", Err: boom},
		"unevaluated":           &cloud.UnevaluatedNodePoolError{Err: boom},
		"none":                  boom,
		"nil":                   nil,
	} {
		for depth := range 3 {
			for name, matches := range is {
				if got := matches(err); got != (name == kind) {
					t.Errorf("%v, wrapped %d times: taken for %s: %v", err, depth, name, got)
				}
			}
			if kind != "nil" && !errors.Is(err, boom) {
				t.Errorf("%v, wrapped %d times, has lost its cause", err, depth)
			}
			if err != nil {
				err = fmt.Errorf("layer %d: %w", depth, err)
			}
		}
	}
}

func TestErrorText(t *testing.T) {
	boom := errors.New("boom")
	for want, err := range map[string]error{
		"machine not found, boom":      &cloud.NotFoundError{Err: boom},
		"insufficient capacity, boom":  &cloud.InsufficientCapacityError{Err: boom},
		"node class not ready, boom":   &cloud.NodeClassNotReadyError{Err: boom},
		"create failed, boom":          &cloud.CreateError{Err: boom},
		"overlays not evaluated, boom": &cloud.UnevaluatedNodePoolError{Err: boom},
		"machine not found":            &cloud.NotFoundError{},
	} {
		if got := err.Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
