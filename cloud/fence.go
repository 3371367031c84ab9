// SPDX-License-Identifier: Apache-2.0

package cloud

import "context"

// Fence says when something may be changed: while this replica leads.
type Fence interface {
	// Check returns why nothing may be changed now, nil if it may.
	Check() error
	// Hold returns a context for one change, which ends when changes may no
	// longer be made, or why none may be made now. The function is called when
	// the change is made.
	Hold(context.Context) (context.Context, context.CancelFunc, error)
}
