// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"maps"

	"karpenter/model"
)

// Place is the domains a node is in, by key; see State.Keys.
type Place [][]int

// Hostname stands for the hostname among keys: every node is a domain of it.
const Hostname = -1

// domains numbers the values of one key.
type domains struct {
	names  []string
	index  map[string]int
	shared bool // index is another's, too
}

// number returns the number of a value, which it may add.
func (d *domains) number(value string) int {
	if i, ok := d.index[value]; ok {
		return i
	}
	switch {
	case d.index == nil:
		d.index = map[string]int{}
	case d.shared:
		d.index = maps.Clone(d.index)
	}
	d.shared = false
	d.index[value] = len(d.names)
	d.names = append(d.names, value)
	return len(d.names) - 1
}

// Outlook knows what may become of the nodes that a plan adds to those there
// are.
type Outlook interface {
	// Meets reports whether the site meets one of the alternatives in some and
	// in all of the ways it may turn out.
	Meets(site int, alternatives []model.Requirements) (some, all bool)
	// Values returns the values of a label the site may turn out with where it
	// meets one of the alternatives, or in any way when they are nil.
	Values(site int, alternatives []model.Requirements, key string) []string
}
