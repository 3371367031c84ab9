// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Positions of the resources every cluster has. Extended resources follow, as an
// Axis numbers them.
const (
	CPU = iota // millicores
	Memory
	Pods
	EphemeralStorage
	Nodes // 1 per node; only in capacities, usages and limits
	firstExtended
)

// Resources is a vector of quantities, indexed by position on an Axis. A
// missing tail is zero, so vectors of different lengths may be mixed.
type Resources []int64

// Axis numbers resource names. Names of what the cluster is made of, such as
// nodes and instance types, are permanent, and so are their positions. Names that
// only pods ask for are borrowed: any user can make them up, so a position is
// given to another name once no one borrows it. Safe for concurrent use.
type Axis struct {
	mu    sync.RWMutex
	names []string       // by position; an array that was handed out never changes
	users []int          // of each name; permanent, or 0 = the position is free
	index map[string]int // position of each of names
}

// permanent is the number of users of a name that stays.
const permanent = -1

// NewAxis returns an axis with the standard resources at their constants.
func NewAxis() *Axis {
	a := &Axis{index: map[string]int{}}
	for _, n := range []string{"cpu", "memory", "pods", "ephemeral-storage", "nodes"} {
		a.Index(n)
	}
	return a
}

// Index returns the position of name, which is permanent from now on.
func (a *Axis) Index(name string) int {
	if i, ok := a.Position(name); ok {
		return i
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	i := a.place(name)
	a.users[i] = permanent
	return i
}

// Position returns the position of name, and false if the name has no permanent
// one.
func (a *Axis) Position(name string) (int, bool) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	i, ok := a.index[name]
	return i, ok && a.users[i] == permanent
}

// Borrow returns the position of name, which the name has until each caller has
// called Return.
func (a *Axis) Borrow(name string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := a.place(name)
	if a.users[i] != permanent {
		a.users[i]++
	}
	return i
}

// Return undoes one Borrow of name. The caller must have no vector left with a
// quantity at the position, except in Snapshots, which have their own names.
func (a *Axis) Return(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := a.index[name]
	if a.users[i] == permanent {
		return
	}
	a.users[i]--
	n := len(a.names)
	for a.users[n-1] == 0 {
		n--
		delete(a.index, a.names[n])
	}
	a.names, a.users = a.names[:n:n], a.users[:n]
}

// place returns the position of name; a name that is new gets the first that is
// free.
func (a *Axis) place(name string) int {
	if i, ok := a.index[name]; ok {
		return i
	}
	i := slices.Index(a.users, 0)
	if i < 0 {
		i = len(a.names)
		a.names, a.users = append(a.names, name), append(a.users, 0)
	} else {
		delete(a.index, a.names[i])
		a.names = slices.Clone(a.names)
		a.names[i] = name
	}
	a.index[name] = i
	return i
}

// Names returns the names in order of position. A position that is free has the
// name that it had last. The caller must not modify the names, which do not
// change when the axis does.
func (a *Axis) Names() []string {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return slices.Clip(a.names)
}

// At returns the quantity at position i, zero when the vector is shorter.
func (r Resources) At(i int) int64 {
	if i < len(r) {
		return r[i]
	}
	return 0
}

// With returns a copy of r with position i set to v.
func (r Resources) With(i int, v int64) Resources {
	out := make(Resources, max(len(r), i+1))
	copy(out, r)
	out[i] = v
	return out
}

// Plus returns r + s.
func (r Resources) Plus(s Resources) Resources {
	return combine(r, s, func(a, b int64) int64 { return a + b })
}

// Minus returns r - s; entries may become negative.
func (r Resources) Minus(s Resources) Resources {
	return combine(r, s, func(a, b int64) int64 { return a - b })
}

// Max returns the larger of r and s in every position.
func (r Resources) Max(s Resources) Resources {
	return combine(r, s, func(a, b int64) int64 { return max(a, b) })
}

// Min returns the smaller of r and s in every position.
func (r Resources) Min(s Resources) Resources {
	return combine(r, s, func(a, b int64) int64 { return min(a, b) })
}

// Times returns r scaled by n.
func (r Resources) Times(n int64) Resources {
	out := make(Resources, len(r))
	for i, v := range r {
		out[i] = v * n
	}
	return out
}

func combine(r, s Resources, f func(a, b int64) int64) Resources {
	out := make(Resources, max(len(r), len(s)))
	for i := range out {
		out[i] = f(r.At(i), s.At(i))
	}
	return out
}

// Fits reports whether r can be taken from free: every requested quantity is
// available and nothing in free is overdrawn already. A request of zero fits
// even if the resource does not exist.
func (r Resources) Fits(free Resources) bool {
	for i, v := range free {
		if v < 0 || r.At(i) > v {
			return false
		}
	}
	for i := len(free); i < len(r); i++ {
		if r[i] > 0 {
			return false
		}
	}
	return true
}

// Equal reports whether r and s hold the same quantities.
func (r Resources) Equal(s Resources) bool {
	for i := range max(len(r), len(s)) {
		if r.At(i) != s.At(i) {
			return false
		}
	}
	return true
}

// IsZero reports whether every quantity is zero.
func (r Resources) IsZero() bool { return r.Equal(nil) }

// Format prints the non-zero quantities as "cpu=500m memory=1Gi …" using the
// names of the axis the vector was made on.
func (r Resources) Format(names []string) string {
	var b strings.Builder
	for i, v := range r {
		if v == 0 {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(names[i] + "=" + FormatQuantity(i, v))
	}
	return b.String()
}

// FormatQuantity prints one quantity the way people write it: millicores with
// m, bytes with the largest binary suffix that divides them.
func FormatQuantity(position int, v int64) string {
	switch position {
	case CPU:
		if v%1000 == 0 {
			return strconv.FormatInt(v/1000, 10)
		}
		return strconv.FormatInt(v, 10) + "m"
	case Memory, EphemeralStorage:
		for i, unit := range []string{"Pi", "Ti", "Gi", "Mi", "Ki"} {
			if size := int64(1) << (10 * (5 - i)); v != 0 && v%size == 0 {
				return strconv.FormatInt(v/size, 10) + unit
			}
		}
	}
	return strconv.FormatInt(v, 10)
}
