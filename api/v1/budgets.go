// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"karpenter/api/unreadable"
)

// UnlimitedDisruptions is the number of disruptions allowed when no budget
// says otherwise.
const UnlimitedDisruptions = math.MaxInt32

// AllowedDisruptions returns how many of the pool's nodes may be disrupted for
// the reason at the time: the smallest number of the active budgets that apply
// to the reason. A budget that cannot be read, whatever its reasons, makes it
// 0, with an error naming the budget. So does any other field of the pool that
// could not be decoded.
//
// A budget without reasons applies to all; one whose reasons are an empty list
// to none.
func (p *NodePool) AllowedDisruptions(now time.Time, numNodes int, reason DisruptionReason) (int, error) {
	if err := unreadable.Error(p); err != nil {
		return 0, fmt.Errorf("node pool %s: %w", p.Name, err)
	}
	allowed := UnlimitedDisruptions
	var errs []error
	for i := range p.Spec.Disruption.Budgets {
		budget := &p.Spec.Disruption.Budgets[i]
		n, err := budget.AllowedDisruptions(now, numNodes)
		if err != nil {
			errs = append(errs, fmt.Errorf("node pool %s: spec.disruption.budgets[%d]: %w", p.Name, i, err))
			continue
		}
		if budget.Reasons == nil || slices.Contains(budget.Reasons, reason) {
			allowed = min(allowed, n)
		}
	}
	if len(errs) > 0 {
		return 0, errors.Join(errs...)
	}
	return allowed, nil
}

// AllowedDisruptions returns how many of numNodes nodes the budget allows to
// be disrupted: UnlimitedDisruptions while it is not active, and 0 with an
// error when it cannot be read.
func (b *Budget) AllowedDisruptions(now time.Time, numNodes int) (int, error) {
	active, err := b.IsActive(now)
	if err != nil {
		return 0, err
	}
	n, err := b.nodes(numNodes)
	if err != nil {
		return 0, err
	}
	if !active {
		return UnlimitedDisruptions, nil
	}
	return n, nil
}

// IsActive reports whether the budget holds at the time: always when it has no
// schedule, else when the schedule, in UTC, hit within the duration before. A
// hit exactly one duration ago is over.
func (b *Budget) IsActive(now time.Time) (bool, error) {
	if b.Schedule == nil && b.Duration == nil {
		return true, nil
	}
	if b.Schedule == nil || b.Duration == nil {
		return false, errors.New("schedule and duration must be set together")
	}
	schedule, err := cron.ParseStandard("TZ=UTC " + *b.Schedule)
	if err != nil {
		return false, fmt.Errorf("schedule %q: want five cron fields or a macro such as @daily: %w", *b.Schedule, err)
	}
	// Next returns the zero time for a schedule that never hits.
	hit := schedule.Next(now.UTC().Add(-b.Duration.Duration))
	return !hit.IsZero() && !hit.After(now), nil
}

// nodes returns the number the budget's nodes field stands for, percentages
// rounded up.
func (b *Budget) nodes(numNodes int) (int, error) {
	digits, percent := strings.CutSuffix(b.Nodes, "%")
	n, err := strconv.ParseUint(digits, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange) && !percent:
		return UnlimitedDisruptions, nil
	case err != nil:
		return 0, fmt.Errorf("nodes %q: want a number or a percentage from 0%% to 100%%: %w", b.Nodes, err)
	case percent && n > 100:
		return 0, fmt.Errorf("nodes %q: want a percentage from 0%% to 100%%", b.Nodes)
	case percent:
		return (numNodes*int(n) + 99) / 100, nil
	default:
		return int(min(n, UnlimitedDisruptions)), nil
	}
}
