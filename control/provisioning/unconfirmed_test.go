// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"errors"
	"testing"
	"time"
)

// TestClaimsThatTheCacheNeverShows has a cache that never shows any claim: one that exists
// counts all the same, however long that takes, and one that is gone is made
// again.
func TestClaimsThatTheCacheNeverShows(t *testing.T) {
	s := newStage(t)
	s.pool("default", limited("nodes", "1"))
	s.pod("a", "1", nil)
	s.mustPass()
	first := s.wantClaims(1)[0].Name
	for range 5 {
		s.clock.SetTime(s.clock.Now().Add(time.Minute))
		s.mustPass()
		if got := s.wantClaims(1)[0].Name; got != first {
			t.Fatalf("claim %s in place of %s", got, first)
		}
	}
	s.pod("b", "3", nil) // fits what the claim promises as little as one more node fits the limit
	s.mustPass()
	s.wantClaims(1)
}

// TestUnseenClaims has a claim go before any event about it has come.
func TestUnseenClaims(t *testing.T) {
	s := newStage(t)
	s.pool("default", nil)
	s.pod("a", "1", nil)
	s.mustPass()
	gone := s.wantClaims(1)[0]
	gone.Finalizers = nil
	if err := errors.Join(s.Client.Update(t.Context(), &gone), s.Client.Delete(t.Context(), &gone)); err != nil {
		t.Fatal(err)
	}
	s.mustPass()
	s.wantClaims(0)
	s.clock.SetTime(s.clock.Now().Add(time.Minute))
	s.mustPass()
	s.wantClaims(1)
}

// TestClaimsUnseenForLong has a claim go after the API server was asked about it,
// and no event come even then.
func TestClaimsUnseenForLong(t *testing.T) {
	s := newStage(t)
	s.pool("default", nil)
	s.pod("a", "1", nil)
	s.mustPass()
	s.mustPass()
	s.clock.SetTime(s.clock.Now().Add(time.Minute))
	s.mustPass()
	gone := s.wantClaims(1)[0]
	gone.Finalizers = nil
	if err := errors.Join(s.Client.Update(t.Context(), &gone), s.Client.Delete(t.Context(), &gone)); err != nil {
		t.Fatal(err)
	}
	s.clock.SetTime(s.clock.Now().Add(time.Minute))
	s.mustPass()
	if got := s.wantClaims(1)[0].Name; got == gone.Name {
		t.Fatalf("claim %s is back", got)
	}
}
