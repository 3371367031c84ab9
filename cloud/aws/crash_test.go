// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/aws/awsfake"
)

// untilLaunched tries again every second, as the lifecycle controller does.
func (r *region) untilLaunched(claim *v1.NodeClaim) string {
	r.t.Helper()
	for range 60 {
		m, err := r.Create(r.t.Context(), claim)
		if err == nil {
			return m.ProviderID
		}
		var create *cloud.CreateError
		if !errors.As(err, &create) {
			r.t.Fatal(err)
		}
		r.clock.Step(time.Second)
	}
	r.t.Fatalf("%s is not launched after a minute", claim.Name)
	return ""
}

// orphans returns what would be ended as no one's, at any age.
func (r *region) orphans() []string {
	r.t.Helper()
	machines, err := r.List(r.t.Context())
	must(r.t, err)
	list := &v1.NodeClaimList{}
	must(r.t, r.api.List(r.t.Context(), list))
	var out []string
	for _, m := range cloud.Orphans(machines, list.Items, r.clock.Now().Add(time.Hour)) {
		out = append(out, m.ProviderID)
	}
	return out
}

// The process dies before the machine is recorded, or the answer is lost: there
// is one machine in the end, and it is the claim's. EC2 shows it late.
func TestCrashAfterCreateFleet(t *testing.T) {
	for _, lost := range []bool{true, false} {
		r := newRegion(t, func(c *awsfake.Config) { c.VisibleAfter = 8 * time.Second })
		claim := r.claim("claim")
		if lost {
			r.aws.Fail("CreateFleet", awsfake.Failure{Code: "InternalError", Server: true, Lost: true, Times: 1})
			if _, err := r.Create(t.Context(), claim); err == nil {
				t.Fatal("the answer was not lost")
			}
		} else if _, err := r.Create(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
		for restarts := range 3 {
			r.restart()
			check(t, "orphans", r.orphans(), []string(nil))
			id := r.untilLaunched(claim)
			check(t, "machines", len(r.running()), 1)
			check(t, "the claim's", strings.HasSuffix(id, r.running()[0]), true)
			check(t, "orphans in the end", r.orphans(), []string(nil))
			if restarts == 1 {
				r.clock.Step(time.Hour)
			}
		}
		check(t, "fleets", r.aws.Calls()["CreateFleet"], 1)
	}
}

// Of ten claims launched with one fleet three have recorded their machines when
// the process dies.
func TestCrashOfABatch(t *testing.T) {
	r := newRegion(t, func(c *awsfake.Config) { c.VisibleAfter = 8 * time.Second })
	machines := r.createAll("claim", 10)
	claims := slices.Sorted(maps.Keys(machines))
	for _, name := range []string{claims[1], claims[4], claims[9]} {
		r.record(r.read(name), &cloud.Machine{ProviderID: machines[name]})
	}
	fleets := r.aws.Calls()["CreateFleet"]
	r.restart()
	got := map[string]string{}
	for _, name := range claims {
		claim := r.read(name)
		got[name] = claim.Status.ProviderID
		if got[name] == "" {
			got[name] = r.untilLaunched(claim)
			r.record(claim, &cloud.Machine{ProviderID: got[name]})
		}
	}
	check(t, "fleets", r.aws.Calls()["CreateFleet"], fleets)
	check(t, "machines", slices.Sorted(maps.Values(got)), slices.Sorted(maps.Values(machines)))
	check(t, "instances", len(r.running()), 10)
	check(t, "orphans", r.orphans(), []string(nil))
}

func (r *region) read(name string) *v1.NodeClaim {
	r.t.Helper()
	claim := &v1.NodeClaim{}
	must(r.t, r.api.Get(r.t.Context(), keyOf(name), claim))
	return claim
}

// A claim that is deleted while no one knows what became of its launch takes the
// machine with it; one that is gone leaves it to be collected.
func TestCrashAndDelete(t *testing.T) {
	for _, gone := range []bool{true, false} {
		r := newRegion(t, nil)
		claim := r.claim("claim")
		if _, err := r.Create(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
		if gone {
			must(t, r.api.Delete(t.Context(), claim))
		}
		r.restart()
		r.clock.Step(time.Minute)
		if gone {
			list, err := r.List(t.Context())
			must(t, err)
			check(t, "orphans", len(r.orphans()), 1)
			must(t, r.Delete(t.Context(), list[0].Remnant()))
		} else {
			must(t, r.Delete(t.Context(), claim))
		}
		r.clock.Step(time.Minute)
		check(t, "running", r.running(), []string(nil))
		if err := r.Delete(t.Context(), claim); !cloud.IsNotFound(err) {
			t.Errorf("gone %v: %v", gone, err)
		}
	}
}

// A caller that does not wait for its launch gets the machine with the next
// call.
func TestCallerGoesAway(t *testing.T) {
	r := newRegion(t, nil)
	claim := r.claim("claim")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Create(ctx, claim); err == nil {
		t.Fatal("no error")
	}
	_, err := r.Create(t.Context(), claim)
	must(t, err)
	check(t, "running", len(r.running()), 1)
}
