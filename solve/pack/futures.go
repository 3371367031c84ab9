// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"karpenter/model"
	"karpenter/solve/fit"
)

// futures is what was worked out of new nodes of any draft of a problem: pods are
// counted again and again with nearly the same nodes.
type futures struct {
	byNode  map[string]*future
	equal   map[string]*future
	matches map[*model.Requirements]fit.Bits
}

// Bounds of what is kept.
const (
	mostFutures = 2048
	mostWays    = 1 << 28 // offers that all of them tell about
)

func newFutures() *futures {
	return &futures{byNode: map[string]*future{}, equal: map[string]*future{}, matches: map[*model.Requirements]fit.Bits{}}
}

// future is what may become of the nodes of some bins.
type future struct {
	pool    int
	demands model.Requirements
	ways    fit.Bits
	labels  map[string][]model.Requirement // by key
	values  map[question][]string
	meets   map[*model.Requirements][2]bool
}

// question is one to a future: the values of a label under alternatives, told
// by their address.
type question struct {
	alternatives *model.Requirements
	key          string
}
