package client

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/smithy-go/middleware"
)

// guarded extends a client: a call that changes something is not sent, nor sent
// again, while allowed says why not.
func guarded(allowed func() error) func(*middleware.Stack) error {
	return func(stack *middleware.Stack) error {
		return stack.Finalize.Add(middleware.FinalizeMiddlewareFunc("KarpenterGuard",
			func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
				if name := middleware.GetOperationName(ctx); !reads(name) {
					if err := allowed(); err != nil {
						return middleware.FinalizeOutput{}, middleware.Metadata{}, fmt.Errorf("%s is not sent: %w", name, err)
					}
				}
				return next.HandleFinalize(ctx, in)
			}), middleware.After)
	}
}

// reads reports whether an operation changes nothing. A message that is received
// comes back.
func reads(operation string) bool {
	for _, prefix := range []string{"Describe", "Get", "List", "Receive"} {
		if strings.HasPrefix(operation, prefix) {
			return true
		}
	}
	return false
}
