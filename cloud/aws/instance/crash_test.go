// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"slices"
	"testing"
	"time"

	"karpenter/cloud/aws/template"
	"karpenter/model"
)

// The answer to a fleet is lost, or the process dies before it is recorded:
// whenever EC2 shows the instance, the claim ends with that one and no other.
func TestCrashOfOneLaunch(t *testing.T) {
	for _, delay := range []time.Duration{0, 3 * time.Second, 15 * time.Second} {
		for _, crash := range []bool{true, false} {
			inBubble(t, func(t *testing.T, s *stage) {
				s.ec2.delay = delay
				o := order("claim", model.OnDemand)
				if crash {
					if _, err := s.create(o); err != nil {
						t.Fatal(err)
					}
					s.restart()
				} else {
					s.ec2.lose = 1
					if _, err := s.create(o); err == nil {
						t.Fatal("the answer was not lost")
					}
				}
				id := s.untilLaunched(o)
				check(t, "instances", s.ec2.alive(), []string{id})
				check(t, "unclaimed", s.unclaimed(), []string(nil))
			})
		}
	}
}

// untilLaunched tries again every second, as the lifecycle controller does.
func (s *stage) untilLaunched(o *template.Want) string {
	s.t.Helper()
	for range 60 {
		i, err := s.create(o)
		if err == nil {
			return i.ID
		}
		if got := reasonOf(err); got != "LookingForInstance" {
			s.t.Fatalf("reason %q: %v", got, err)
		}
		time.Sleep(time.Second)
	}
	s.t.Fatalf("%s is not launched after a minute", o.Claim.Name)
	return ""
}

// When nothing was started, the claim is launched once it is sure.
func TestCrashBeforeTheLaunch(t *testing.T) {
	inBubble(t, func(t *testing.T, s *stage) {
		o := order("claim", model.OnDemand)
		s.claims["claim"] = claimOf(o)
		s.restart()
		began := time.Now()
		id := s.untilLaunched(o)
		check(t, "instances", s.ec2.alive(), []string{id})
		if waited := time.Since(began); waited < Settling || waited > Settling+2*time.Second {
			t.Errorf("launched after %s", waited)
		}
		// A claim that is newer than the process waits for nothing.
		began = time.Now()
		if _, err := s.create(order("newer", model.OnDemand)); err != nil || time.Since(began) > time.Second {
			t.Errorf("newer: %v after %s", err, time.Since(began))
		}
	})
}

// Ten claims are launched with one fleet and three have recorded their
// instances when the process dies: the other seven find theirs.
func TestCrashOfABatch(t *testing.T) {
	for _, delay := range []time.Duration{0, 10 * time.Second} {
		inBubble(t, func(t *testing.T, s *stage) {
			s.ec2.delay = delay
			all := orders(10)
			ids, _ := s.createAll(all)
			check(t, "fleets", len(s.ec2.inputs), 1)
			for _, i := range []int{2, 5, 8} {
				s.record(all[i], ids[i])
			}
			s.restart()
			check(t, "unclaimed at once", s.unclaimed(), []string(nil))
			again := make([]string, len(all))
			for i, o := range all {
				if again[i] = ids[i]; i != 2 && i != 5 && i != 8 {
					again[i] = s.untilLaunched(o)
				}
			}
			check(t, "machines", distinct(again), distinct(ids))
			check(t, "instances", s.ec2.alive(), distinct(ids))
			check(t, "unclaimed", s.unclaimed(), []string(nil))
		})
	}
}

// Of seven claims of which two were deleted while no one watched, five take
// instances; the other two instances are no one's.
func TestCrashWithClaimsGone(t *testing.T) {
	inBubble(t, func(t *testing.T, s *stage) {
		all := orders(7)
		s.createAll(all)
		s.restart()
		s.mu.Lock()
		delete(s.claims, "claim-01")
		delete(s.claims, "claim-04")
		s.mu.Unlock()
		s.restart()
		var got []string
		for i, o := range all {
			if i != 1 && i != 4 {
				got = append(got, s.untilLaunched(o))
			}
		}
		check(t, "machines", len(distinct(got)), 5)
		left := s.unclaimed()
		check(t, "unclaimed", len(left), 2)
		for _, id := range left {
			if slices.Contains(got, id) {
				t.Errorf("%s is a claim's", id)
			}
		}
	})
}

// A fleet that gave 3 of 10 was followed by one for the 7 others; nothing was
// recorded. All ten find an instance, none is left over.
func TestCrashAfterTwoFleets(t *testing.T) {
	inBubble(t, func(t *testing.T, s *stage) {
		all := orders(10)
		s.ec2.room = 3
		ids, _ := s.createAll(all)
		s.ec2.room = 100
		for i, o := range all {
			if ids[i] == "" {
				time.Sleep(time.Second)
				if _, err := s.create(o); err != nil {
					t.Fatal(err)
				}
			}
		}
		s.restart()
		var got []string
		for _, o := range all {
			got = append(got, s.untilLaunched(o))
		}
		check(t, "machines", distinct(got), s.ec2.alive())
		check(t, "unclaimed", s.unclaimed(), []string(nil))
	})
}

// The tag that is set once a node is known settles whose an instance is, and
// an instance that is tagged for another claim is not taken.
func TestTagSettles(t *testing.T) {
	inBubble(t, func(t *testing.T, s *stage) {
		all := orders(2)
		ids, _ := s.createAll(all)
		for i, o := range all { // crosswise
			if err := s.Tag(t.Context(), ids[1-i], map[string]string{"karpenter.sh/nodeclaim": o.Claim.Name}); err != nil {
				t.Fatal(err)
			}
		}
		s.restart()
		check(t, "first", s.untilLaunched(all[0]), ids[1])
		check(t, "second", s.untilLaunched(all[1]), ids[0])
	})
}

// The instance of a launch whose answer was lost may belong to a claim that is
// looking; it is not taken for no one's meanwhile.
func TestInstanceOfOpenClaimIsNotAnOrphan(t *testing.T) {
	inBubble(t, func(t *testing.T, s *stage) {
		o := order("claim", model.OnDemand)
		s.ec2.lose = 1
		if _, err := s.create(o); err == nil {
			t.Fatal("the answer was not lost")
		}
		check(t, "unclaimed", s.unclaimed(), []string(nil))
		check(t, "instance", s.untilLaunched(o), s.ec2.alive()[0])
	})
}
