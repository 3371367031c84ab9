// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"karpenter/model"
	"karpenter/solve/pack"
)

// round is one decision about what to remove.
type round struct {
	inquiry
	permits
	memories []pack.Memory        // for questions that are asked at once
	turns    map[string]*turnover // of static pools, as far as they were asked for
	reserved map[string]int64     // by reservation: how many replacements in static pools count on it
}

// turnover is what a static pool lets be replaced of its nodes.
type turnover struct {
	cause model.Cause // why none of them
	why   string      // "" = some may be, within budgets
	room  int         // how many
	full  string      // why there is no more
	// reservations are what the template allows, if nothing can be launched
	// because they are all full.
	reservations []*model.Offering
}

func reasons() []model.Reason {
	return []model.Reason{model.Empty, model.Drifted, model.Underutilized, model.Unhealthy}
}
