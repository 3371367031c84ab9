package kubelet

import (
	"context"

	"k8s.io/client-go/rest"
)

// Run stub.
func Run(ctx context.Context, config *rest.Config, options Options) error {
	<-ctx.Done()
	return nil
}
