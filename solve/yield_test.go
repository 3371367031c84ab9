// SPDX-License-Identifier: Apache-2.0

package solve_test

import (
	"fmt"
	"math"
	"testing"

	"karpenter/model"
	"karpenter/solve"
	"karpenter/solve/solvetest"
)

// TestBuffersGiveWay makes every other demand one of a buffer: plans are valid,
// and no fewer pods that exist have a place than without buffers.
func TestBuffersGiveWay(t *testing.T) {
	situations(t, plain(), 300, func(s *model.Snapshot) []string {
		with, without := buffered(s)
		plan := solve.Decide(with, model.DefaultPolicy())
		wrong := solvetest.Check(with, model.DefaultPolicy(), plan)
		alone := solve.Decide(without, model.DefaultPolicy())
		if got, want := homeless(plan), homeless(alone); got > want {
			wrong = append(wrong, fmt.Sprintf("%d pods that exist have no place, and %d without buffers", got, want))
		}
		return wrong
	})
}

// buffered returns the situation with every other demand a buffer's, and the
// one without these.
func buffered(s *model.Snapshot) (with, without *model.Snapshot) {
	a, b := *s, *s
	a.Pending, b.Pending = nil, nil
	for i, pending := range s.Pending {
		if i%2 == 0 {
			a.Pending, b.Pending = append(a.Pending, pending), append(b.Pending, pending)
			continue
		}
		shape := *pending.Shape
		shape.Priority, shape.Key = math.MinInt32, shape.Key+" buffer"
		pods := make([]model.Pod, len(pending.Pods))
		for j, p := range pending.Pods {
			pods[j] = p
			pods[j].Buffer = "default/b"
		}
		a.Pending = append(a.Pending, model.Pending{Shape: &shape, Peer: pending.Peer, Pods: pods})
	}
	return &a, &b
}

// homeless counts the pods that exist and have no place.
func homeless(plan *model.Plan) int {
	n := 0
	for _, v := range plan.Verdicts {
		for _, p := range v.Pods {
			if p.Buffer == "" {
				n++
			}
		}
	}
	return n
}
