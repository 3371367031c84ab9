// SPDX-License-Identifier: Apache-2.0

package cloud

import "context"

// Fence permits changes only while this replica leads.
type Fence interface {
	// Check returns an error if nothing may be changed now.
	Check() error
	// Hold returns a context for one change, or an error if nothing may be
	// changed now. The context ends when changes are no longer permitted. The
	// caller calls the function when the change is done.
	Hold(context.Context) (context.Context, context.CancelFunc, error)
}
