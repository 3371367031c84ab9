// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"sync"

	"karpenter/model"
)

// Where nodes have many taints and pods many tolerations, comparing them takes long, and
// most nodes have the taints of their NodePool. So rows of nodes with equal taints share
// what is known of them.

// Bounds of what is kept.
const (
	fewTaints   = 8       // are compared each time
	mostTaints  = 1 << 10 // different lists of taints
	mostVerdict = 1 << 12 // lists of tolerations for each
)

// taints is a list of taints, and which tolerations it was compared with.
type taints struct {
	list []model.Taint

	mu       sync.Mutex
	verdicts map[tolerations]verdict
}

// tolerations identifies a list of them, which never changes.
type tolerations struct {
	first *model.Toleration
	count int
}

// verdict is what Untolerated returns.
type verdict struct {
	taint model.Taint
	bad   bool
}

func newTaints(list []model.Taint) *taints {
	return &taints{list: list, verdicts: map[tolerations]verdict{}}
}

func (t *taints) untolerated(by []model.Toleration) (model.Taint, bool) {
	if len(by) == 0 {
		return model.Untolerated(t.list, nil)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	id := tolerations{&by[0], len(by)}
	v, known := t.verdicts[id]
	if !known {
		v.taint, v.bad = model.Untolerated(t.list, by)
		if len(t.verdicts) >= mostVerdict {
			clear(t.verdicts)
		}
		t.verdicts[id] = v
	}
	return v.taint, v.bad
}
