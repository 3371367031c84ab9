// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/aws/smithy-go/middleware"
)

// Fence says when something may be changed: while this replica leads.
type Fence interface {
	// Check returns why nothing may be changed now, nil if it may.
	Check() error
	// Hold returns a context for one change, which ends when changes may no
	// longer be made, or why none may be made now. The function is called when
	// the change is made.
	Hold(context.Context) (context.Context, context.CancelFunc, error)
}

// fenceKey is where the context of a call that changes something keeps the Fence.
type fenceKey struct{}

// guarded extends a client: a call that changes something is not sent, nor sent
// again, when the fence says why not, and is given up when it does meanwhile.
func guarded(fence Fence) func(*middleware.Stack) error {
	return func(stack *middleware.Stack) error {
		return stack.Finalize.Add(middleware.FinalizeMiddlewareFunc("KarpenterGuard",
			func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
				name := middleware.GetOperationName(ctx)
				if Reads(name) {
					return next.HandleFinalize(ctx, in)
				}
				held, release, err := fence.Hold(ctx)
				if err != nil {
					return middleware.FinalizeOutput{}, middleware.Metadata{}, fmt.Errorf("%s is not sent: %w", name, err)
				}
				defer release() // the answer has been read
				out, metadata, err := next.HandleFinalize(middleware.WithStackValue(held, fenceKey{}, fence), in)
				if err != nil && held.Err() != nil && ctx.Err() == nil {
					err = fmt.Errorf("%s is abandoned: %w", name, context.Cause(held))
				}
				return out, metadata, err
			}), middleware.After)
	}
}

// fencedBody is the body of a request that changes something: it is given out
// only while that is allowed, however long a connection took to make, and
// whether or not the process stood still meanwhile.
type fencedBody struct {
	io.ReadCloser
	fence Fence
}

// Read implements io.Reader.
func (b fencedBody) Read(p []byte) (int, error) {
	if err := b.fence.Check(); err != nil {
		return 0, err
	}
	return b.ReadCloser.Read(p)
}

// Reads reports whether an operation changes nothing. A message that is received
// comes back.
func Reads(operation string) bool {
	for _, prefix := range []string{"Describe", "Get", "List", "Receive"} {
		if strings.HasPrefix(operation, prefix) {
			return true
		}
	}
	return false
}
