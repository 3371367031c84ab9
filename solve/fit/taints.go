// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"fmt"
	"strings"
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
	verdicts map[*model.Toleration]verdict // by first of a list, which never changes
}

// verdict is what Untolerated returns.
type verdict struct {
	taint model.Taint
	bad   bool
}

func (t *taints) untolerated(tolerations []model.Toleration) (model.Taint, bool) {
	if len(tolerations) == 0 {
		return model.Untolerated(t.list, nil)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	v, known := t.verdicts[&tolerations[0]]
	if !known {
		v.taint, v.bad = model.Untolerated(t.list, tolerations)
		if len(t.verdicts) >= mostVerdict {
			clear(t.verdicts)
		}
		t.verdicts[&tolerations[0]] = v
	}
	return v.taint, v.bad
}

// Untolerated returns the node's first taint that keeps pods of s away.
func (n *NodeRow) Untolerated(s *model.Shape) (model.Taint, bool) {
	if n.taints == nil {
		return model.Untolerated(n.Taints, s.Tolerations)
	}
	return n.taints.untolerated(s.Tolerations)
}

// share has rows of nodes with equal taints know of each other.
func (m *Memory) share(n *NodeRow) {
	if len(n.Taints) <= fewTaints {
		return
	}
	var b strings.Builder
	for _, t := range n.Taints {
		fmt.Fprintf(&b, "%q %q %q;", t.Key, t.Value, t.Effect)
	}
	known := m.taints[b.String()]
	if known == nil {
		if m.taints == nil || len(m.taints) >= mostTaints {
			m.taints = map[string]*taints{}
		}
		known = &taints{list: n.Taints, verdicts: map[*model.Toleration]verdict{}}
		m.taints[b.String()] = known
	}
	n.taints = known
}
