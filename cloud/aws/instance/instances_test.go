// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"errors"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"karpenter/cloud"
	"karpenter/model"
)

// launched starts n instances and has EC2 show them.
func launched(s *stage, n int) []string {
	s.t.Helper()
	all := orders(n)
	ids, errs := s.createAll(all)
	if err := errors.Join(errs...); err != nil {
		s.t.Fatal(err)
	}
	for i, o := range all {
		s.record(o, ids[i])
	}
	if _, err := s.List(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	return ids
}

func terminated(i *types.Instance) {
	i.State = &types.InstanceState{Name: types.InstanceStateNameTerminated}
}

// spec 65/138: a terminated instance is not found, and one that is on its way
// out is not terminated again.
func TestTerminatedInstanceNotFound(t *testing.T) {
	inBubble(t, func(t *testing.T, s *stage) {
		ids := launched(s, 1)
		if err := s.End(t.Context(), ids[0]); err != nil {
			t.Fatal(err)
		}
		if err := s.End(t.Context(), ids[0]); err != nil {
			t.Fatal(err)
		}
		check(t, "terminations", s.ec2.count("TerminateInstances"), 1)
		if i, err := s.Read(t.Context(), ids[0]); err != nil || !i.Ending() {
			t.Errorf("ending: %+v, %v", i, err)
		}
		s.ec2.set(ids[0], terminated)
		for range 2 {
			if _, err := s.Read(t.Context(), ids[0]); !cloud.IsNotFound(err) {
				t.Errorf("read: %v", err)
			}
			if err := s.End(t.Context(), ids[0]); !cloud.IsNotFound(err) {
				t.Errorf("end: %v", err)
			}
		}
		if _, err := s.Get(t.Context(), "i-unknown"); !cloud.IsNotFound(err) {
			t.Errorf("unknown: %v", err)
		}
	})
}

// What is known is not asked for again; what is asked for at once is asked for
// together.
func TestGetAsksOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, s *stage) {
		ids := launched(s, 9)
		before := s.ec2.count("DescribeInstances")
		for _, id := range ids {
			if i, err := s.Get(t.Context(), id); err != nil || i.ID != id {
				t.Errorf("%s: %+v, %v", id, i, err)
			}
		}
		check(t, "calls", s.ec2.count("DescribeInstances")-before, 0)
		each(len(ids), len(ids), func(i int) {
			if got, err := s.Read(t.Context(), ids[i]); err != nil || got.ID != ids[i] {
				t.Errorf("%s: %+v, %v", ids[i], got, err)
			}
		})
		check(t, "calls", s.ec2.count("DescribeInstances")-before, 1)
	})
}

// One ID that EC2 does not know spoils the answer for all, so the others are asked
// for again.
func TestUnknownAmongOthers(t *testing.T) {
	inBubble(t, func(t *testing.T, s *stage) {
		ids := append(launched(s, 3), "i-unknown")
		each(len(ids), len(ids), func(i int) {
			if got, err := s.Read(t.Context(), ids[i]); cloud.IsNotFound(err) != (i == 3) || i < 3 && got.ID != ids[i] {
				t.Errorf("%s: %+v, %v", ids[i], got, err)
			}
		})
	})
}

// EC2 does not show a new instance: it is there nevertheless, but is not taken
// to be there forever.
func TestNotShownYet(t *testing.T) {
	inBubble(t, func(t *testing.T, s *stage) {
		s.ec2.delay = 5 * Settling
		i, err := s.create(order("claim", model.OnDemand))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := s.Get(t.Context(), i.ID); err != nil || got.Described {
			t.Errorf("get: %+v, %v", got, err)
		}
		if list, err := s.List(t.Context()); err != nil || len(list) != 1 {
			t.Errorf("list: %v, %v", list, err)
		}
		if err := s.End(t.Context(), i.ID); err != nil {
			t.Errorf("end: %v", err) // to be tried again
		}
		for range Settling / 1e9 {
			sleep()
		}
		if _, err := s.Get(t.Context(), i.ID); !cloud.IsNotFound(err) {
			t.Errorf("get after a while: %v", err)
		}
		if list, err := s.List(t.Context()); err != nil || len(list) != 0 {
			t.Errorf("list after a while: %v, %v", list, err)
		}
	})
}

// A list is complete or it is an error; a page that fails for a reason of EC2's
// is asked for again.
func TestListIsComplete(t *testing.T) {
	inBubble(t, func(t *testing.T, s *stage) {
		ids := launched(s, 7)
		list, err := s.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, i := range list {
			got = append(got, i.ID)
		}
		check(t, "list", got, distinct(ids))
		s.ec2.refuse["DescribeInstances"] = &smithy.GenericAPIError{Code: "InternalError", Fault: smithy.FaultServer}
		before := s.ec2.count("DescribeInstances")
		if list, err := s.List(t.Context()); err == nil {
			t.Errorf("list %v without error", list)
		}
		check(t, "tries", s.ec2.count("DescribeInstances")-before, 3)
		for _, code := range []string{"UnauthorizedOperation", "RequestLimitExceeded"} {
			s.ec2.refuse["DescribeInstances"] = apiError(code)
			before = s.ec2.count("DescribeInstances")
			if list, err := s.List(t.Context()); err == nil {
				t.Errorf("list %v without error", list)
			}
			check(t, "tries after "+code, s.ec2.count("DescribeInstances")-before, 1)
		}
	})
}

// Instances are terminated together; those that this leaves alive, each alone.
func TestEndTogether(t *testing.T) {
	for survive, calls := range map[bool]int{false: 1, true: 6} {
		inBubble(t, func(t *testing.T, s *stage) {
			ids := launched(s, 5)
			s.ec2.survive = survive
			var wg sync.WaitGroup
			for _, id := range ids {
				wg.Go(func() {
					if err := s.End(t.Context(), id); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			check(t, "calls", s.ec2.count("TerminateInstances"), calls)
			check(t, "alive", s.ec2.alive(), []string(nil))
		})
	}
}

func TestTerminateInstanceDenied(t *testing.T) {
	inBubble(t, func(t *testing.T, s *stage) {
		ids := launched(s, 1)
		s.ec2.refuse["TerminateInstances"] = apiError("UnauthorizedOperation")
		if err := s.End(t.Context(), ids[0]); err == nil || cloud.IsNotFound(err) {
			t.Errorf("error %v", err)
		}
		check(t, "counted", testutil.ToFloat64(s.config.Metrics.endFailures.WithLabelValues("zone-a", "id-a")), 1.0)
	})
}

// Nothing is done in a zone that traffic is shifted away from, and what was
// known of it holds. spec 65/68
func TestZonalShift(t *testing.T) {
	inBubble(t, func(t *testing.T, s *stage) {
		ids := launched(s, 2)
		s.config.Shifted = func(zoneID string) bool { return zoneID == "id-a" }
		s.ec2.set(ids[0], terminated)
		if i, err := s.Read(t.Context(), ids[0]); err != nil || i.Ending() {
			t.Errorf("read: %+v, %v", i, err)
		}
		if err := s.End(t.Context(), ids[1]); err == nil {
			t.Error("ended")
		}
		if err := s.Reboot(t.Context(), ids[1]); err == nil { // spec 48/85
			t.Error("rebooted")
		}
		if err := s.Tag(t.Context(), ids[1], map[string]string{"Name": "node"}); err == nil {
			t.Error("tagged")
		}
		if list, err := s.List(t.Context()); err != nil || len(list) != 2 {
			t.Errorf("list: %v, %v", list, err)
		}
		check(t, "calls", s.ec2.count("TerminateInstances")+s.ec2.count("CreateTags")+s.ec2.count("RebootInstances"), 0)
	})
}

func TestTag(t *testing.T) {
	inBubble(t, func(t *testing.T, s *stage) {
		ids := launched(s, 1)
		if err := s.Tag(t.Context(), ids[0], map[string]string{"Name": "node"}); err != nil {
			t.Fatal(err)
		}
		if i, err := s.Get(t.Context(), ids[0]); err != nil || i.Tags["Name"] != "node" || i.Tags["team"] != "a" {
			t.Errorf("%+v, %v", i, err)
		}
		if err := s.Tag(t.Context(), "i-unknown", nil); !cloud.IsNotFound(err) {
			t.Errorf("unknown: %v", err)
		}
	})
}

func TestDescribed(t *testing.T) {
	only := &types.CapacityReservationSpecificationResponse{CapacityReservationPreference: types.CapacityReservationPreferenceCapacityReservationsOnly}
	open := &types.CapacityReservationSpecificationResponse{CapacityReservationPreference: types.CapacityReservationPreferenceOpen}
	for name, c := range map[string]struct {
		in   types.Instance
		off  bool
		want Instance
	}{
		"spot": {in: types.Instance{SpotInstanceRequestId: aws.String("sir")}, want: Instance{CapacityType: "spot"}},
		"spot of which only the lifecycle is known": {in: types.Instance{InstanceLifecycle: "spot"}, want: Instance{CapacityType: "spot"}},
		"on demand": {want: Instance{CapacityType: "on-demand"}},
		"reserved": {
			in:   types.Instance{CapacityReservationId: aws.String("cr-1"), CapacityReservationSpecification: only},
			want: Instance{CapacityType: "reserved", ReservationID: "cr-1", ReservationType: "default"},
		},
		"block": {
			in:   types.Instance{CapacityReservationId: aws.String("cr-1"), CapacityReservationSpecification: only, InstanceLifecycle: "capacity-block"},
			want: Instance{CapacityType: "reserved", ReservationID: "cr-1", ReservationType: "capacity-block"},
		},
		"interruptible": {
			in: types.Instance{CapacityReservationId: aws.String("cr-1"), CapacityReservationSpecification: only,
				InstanceLifecycle: "interruptible-capacity-reservation"},
			want: Instance{CapacityType: "reserved", ReservationID: "cr-1", ReservationType: "default", ReservationInterruptible: true},
		},
		"spec 65/139: slipped into an open reservation": {
			in:   types.Instance{CapacityReservationId: aws.String("cr-1"), CapacityReservationSpecification: open},
			want: Instance{CapacityType: "on-demand"},
		},
		"gate off": {
			in:  types.Instance{CapacityReservationId: aws.String("cr-1"), CapacityReservationSpecification: only},
			off: true, want: Instance{CapacityType: "on-demand"},
		},
		"placed": {
			in:   types.Instance{Placement: &types.Placement{Tenancy: "dedicated", GroupId: aws.String("pg-1"), PartitionNumber: aws.Int32(3)}},
			want: Instance{CapacityType: "on-demand", Tenancy: "dedicated", GroupID: "pg-1", Partition: 3},
		},
		"interfaces": {
			in: types.Instance{NetworkInterfaces: []types.InstanceNetworkInterface{
				{InterfaceType: aws.String("interface")}, {InterfaceType: aws.String("efa")}, {InterfaceType: aws.String("efa-only")},
			}},
			want: Instance{CapacityType: "on-demand", EFAs: 2},
		},
	} {
		c.want.Described, c.want.Tags = true, map[string]string{}
		if c.want.Tenancy == "" {
			c.want.Tenancy = "default"
		}
		if diff := cmp.Diff(&c.want, described(&c.in, !c.off)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
