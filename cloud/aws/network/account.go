// SPDX-License-Identifier: Apache-2.0

package network

import (
	"math"
	"slices"
	"sync"
	"time"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/cloud/aws/launch"
)

// forgotten is the age after which a launch without a result is dropped.
const forgotten = 5 * time.Minute

// Pick is what a launch may use: one subnet in each zone.
type Pick struct {
	Subnets map[string]string // IDs, by zone
	takes   []*take
}

// take is the addresses one launch may need of one subnet.
type take struct {
	subnet  string
	n       int64
	at      time.Time
	settled time.Time // zero = the launch is under way
}

// state is what is known of a subnet.
type state struct {
	free  int64     // as EC2 said
	asked time.Time // when it was asked
	full  bool      // a launch has failed since
	takes []*take
}

// account keeps the free addresses of subnets. It may be used concurrently.
type account struct {
	lasting time.Duration // how long EC2's word holds
	mu      sync.Mutex
	subnets map[string]*state
}

// Take returns, for each zone of the subnets, the one with most free addresses,
// the first of several, and takes out of its account what the machine needs in
// that zone at least. A zone that is not in need takes nothing. Every Pick is
// settled when its launch is over.
func (s *Subnets) Take(subnets []awsv1.Subnet, need map[string]int64) *Pick {
	return s.account.take(subnets, need, s.clock.Now())
}

// Settle ends a launch: what it has taken of subnets in which no machine landed
// is free again. Settling twice changes nothing.
func (s *Subnets) Settle(pick *Pick, landed ...string) {
	s.account.settle(pick, landed, s.clock.Now())
}

// Exhausted records that EC2 found no free address in the subnet. The subnet
// comes last until EC2 is asked for the number again.
func (s *Subnets) Exhausted(id string) { s.account.exhausted(id, s.clock.Now()) }

// Free returns how many addresses the subnet has left by the account; less than
// none if launches under way may need more than there are.
func (s *Subnets) Free(id string) int64 {
	s.account.mu.Lock()
	defer s.account.mu.Unlock()
	return s.account.freeLocked(id, s.clock.Now())
}

func (a *account) take(subnets []awsv1.Subnet, need map[string]int64, now time.Time) *Pick {
	a.mu.Lock()
	defer a.mu.Unlock()
	options := make([]launch.Subnet, len(subnets))
	for i, subnet := range subnets {
		options[i] = launch.Subnet{ID: subnet.ID, Zone: subnet.Zone, Free: a.freeLocked(subnet.ID, now)}
	}
	pick := &Pick{Subnets: map[string]string{}}
	for zone, best := range launch.Subnets(options) {
		pick.Subnets[zone] = best.ID
		if n := need[zone]; n > 0 {
			t := &take{subnet: best.ID, n: n, at: now}
			s := a.stateLocked(best.ID)
			s.takes = append(s.takes, t)
			pick.takes = append(pick.takes, t)
		}
	}
	return pick
}

func (a *account) settle(pick *Pick, landed []string, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, t := range pick.takes {
		switch {
		case slices.Contains(landed, t.subnet):
			t.settled = now
		case t.settled.IsZero():
			s := a.stateLocked(t.subnet)
			s.takes = slices.DeleteFunc(s.takes, func(other *take) bool { return other == t })
		}
	}
	pick.takes = nil
}

func (a *account) exhausted(id string, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	*a.stateLocked(id) = state{asked: now, full: true}
}

// counted records EC2's numbers, unless newer ones are known. They do not
// include launches in progress, and launches that were settled later.
func (a *account) counted(free map[string]int64, asked time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, n := range free {
		s := a.stateLocked(id)
		if asked.Before(s.asked) {
			continue
		}
		s.free, s.asked, s.full = n, asked, false
		s.takes = slices.DeleteFunc(s.takes, func(t *take) bool {
			return !t.settled.IsZero() && t.settled.Before(asked) || asked.Sub(t.at) >= forgotten
		})
	}
	for id, s := range a.subnets {
		if asked.Sub(s.asked) > 2*a.lasting && len(s.takes) == 0 {
			delete(a.subnets, id)
		}
	}
}

func (a *account) stateLocked(id string) *state {
	s, ok := a.subnets[id]
	if !ok {
		s = &state{}
		a.subnets[id] = s
	}
	return s
}

func (a *account) freeLocked(id string, now time.Time) int64 {
	s, ok := a.subnets[id]
	if !ok {
		return 0
	}
	if s.full {
		return math.MinInt64
	}
	var n int64
	if now.Sub(s.asked) < a.lasting {
		n = s.free
	}
	for _, t := range s.takes {
		n -= t.n
	}
	return n
}
