// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/aws/smithy-go/middleware"

	"karpenter/cloud"
)

// fenceKey is where the context of a call that changes something keeps the fence.
type fenceKey struct{}

// guarded extends a client: a call that changes something is not sent or
// repeated while the fence is closed, and it is cancelled when the fence
// closes.
func guarded(fence cloud.Fence) func(*middleware.Stack) error {
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

// fencedBody is the body of a request that changes something. It can be read
// only while the fence is open, even if the connection took long, or the
// process was suspended in between.
type fencedBody struct {
	io.ReadCloser
	fence cloud.Fence
}

// Read implements io.Reader.
func (b fencedBody) Read(p []byte) (int, error) {
	if err := b.fence.Check(); err != nil {
		return 0, err
	}
	return b.ReadCloser.Read(p)
}

// Reads reports whether an operation changes nothing. Receiving a message
// counts as reading, because the message is delivered again.
func Reads(operation string) bool {
	for _, prefix := range []string{"Describe", "Get", "List", "Receive"} {
		if strings.HasPrefix(operation, prefix) {
			return true
		}
	}
	return false
}
