// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"
)

// NoGate is the value of a gate that lets everything through.
const NoGate = -1

// Gates are upper limits for a plan; NoGate is no limit.
type Gates struct {
	Cost      float64 // dollars per hour, afterwards
	Evictions int
	Pending   int // pods
}

// Check returns what in the report is more than the gates allow.
func (g Gates) Check(r Report) error {
	var errs []error
	if g.Cost >= 0 && float64(r.After.Cost) > g.Cost {
		errs = append(errs, fmt.Errorf("the nodes would cost $%s/h, more than --max-cost %v", r.After.Cost, g.Cost))
	}
	if g.Evictions >= 0 && r.Evictions > g.Evictions {
		errs = append(errs, fmt.Errorf("%s would be evicted, more than --max-evictions %d", counted(r.Evictions, "pod"), g.Evictions))
	}
	if g.Pending >= 0 && r.After.Pending > g.Pending {
		errs = append(errs, fmt.Errorf("%s would stay pending, more than --max-pending %d", counted(r.After.Pending, "pod"), g.Pending))
	}
	return errors.Join(errs...)
}
