// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"

	"karpenter/cmd/karpenter/wiring"
)

// Vendor is a cloud with a provider of its own, for which the Run's Cloud
// stands: see simcloud.Cloud.Stand.
type Vendor interface {
	// Provider makes the provider of one life of the process. Every call it
	// makes to the cloud goes through the door.
	Provider(context.Context, Door, wiring.Supplies) (wiring.Provider, error)
	// Look has the Run's Cloud show what there is now. It is called after every
	// step.
	Look() error
}

// Door lets a call of the process through when its turn has come, and may have
// it fail. Verb and name are those of the Call; input is the rest of what it asks, as
// JSON can tell it; writes says that it changes something.
type Door func(ctx context.Context, verb, name string, input any, writes bool, do func() error) error
