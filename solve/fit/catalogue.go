// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"maps"
	"slices"

	"karpenter/model"
)

// Catalogue is everything that can be launched in a Snapshot: the type rows and
// offers of its pools, heaviest pool first.
type Catalogue struct {
	Pools  []Pool
	Types  []TypeRow
	Offers []Offer

	// Quantum is the largest price that all prices are multiples of, and Least
	// the lowest of them that is not zero.
	Quantum, Least model.Price

	defined   map[string]bool // labels of which some pool, type or offer knows a value
	wellKnown model.LabelSet
	daemons   []model.Daemon
	most      model.Resources     // of each resource, what the type with most of it has for pods
	reserved  map[string]OfferSet // reservation → its offers
	none      Bits                // no offers

	answers
}

// answers are what was found out about the offers, to be asked again.
type answers struct {
	matches      map[string]Bits // requirement text → offers that allow it
	older        map[string]Bits // as matches was when it became too large
	labels       map[poolKey]*labels
	alike        map[string][][]int32
	open         map[poolKey]bool
	words        map[poolKey][]string // what hints look for misspellings among
	demands      map[string]*constraints
	alternatives int // of all demands
	spellings    map[string]*Spelling
	sets         map[uint64]OfferSet // by digest: of equal sets of offers one is kept
	setWords     int                 // of all of them
}

// Pool is a pool with its rows.
type Pool struct {
	*model.Pool
	// Requirements are the pool's own with its name and the labels every
	// registered node gets added.
	Requirements model.Requirements
	Types        Range    // of Catalogue.Types
	Offers       Range    // of Catalogue.Offers
	Allowed      OfferSet // offers that the pool's own requirements allow
	Usable       OfferSet // those of them that can be launched now

	telling model.Requirements // those that are about labels of types and offers
}

// TypeRow is an instance type in one pool.
type TypeRow struct {
	*model.InstanceType
	Pool   int
	Offers Range
	Daemon model.Resources // what the pool's daemons take on such a node
	Free   model.Resources // what is left for pods
}

// Offer is one offering of a type row.
type Offer struct {
	*model.Offering
	Type int
}

// labels is what the types and offers of a pool demand of a label.
type labels struct {
	all     []labelled
	byValue map[string]int // positions in all; nil = some of them demand more or less than one value
	single  Bits           // the offers in all, counted from the first word of the pool's, unless byValue is nil
}

// labelled is the offers of a pool of which the type, or the offer itself,
// demands the same of a label.
type labelled struct {
	model.Requirement
	offers []int32
}

// Spelling is what is known of a label of the nodes of each offer.
type Spelling struct {
	Labels []model.Requirement // no two alike
	Of     []int32             // by offer: the index of its label; -1 = its nodes lack it
	Absent Bits                // the offers whose nodes lack it
	Open   Bits                // the offers whose nodes have one of several values
}

// constraints are the selectors, terms and tolerations of shapes, compiled.
type constraints struct {
	// Offers is where labels and taints allow such a pod; whether one fits is
	// for the caller to see. Shapes with equal constraints share the set.
	Offers OfferSet
	alts   []alternative
	digest string // see Constraints; "" = to be worked out
}

// alternative is one conjunction of the shape's node affinity.
type alternative struct {
	demands model.Requirements
	offers  OfferSet
}

type poolKey struct {
	pool int
	key  string
}

// Reserved returns the offers that take from the reservation.
func (c *Catalogue) Reserved(id string) OfferSet { return c.reserved[id] }

// Reservations returns the reservations that some offer takes from, sorted.
func (c *Catalogue) Reservations() []string { return slices.Sorted(maps.Keys(c.reserved)) }

// in returns the offers of a range.
func (c *Catalogue) in(r Range) Bits {
	out := NewBits(len(c.Offers))
	out.addRange(r)
	return out
}
