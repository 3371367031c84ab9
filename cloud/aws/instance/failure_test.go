// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"karpenter/cloud"
	"karpenter/cloud/aws/shortage"
	"karpenter/cloud/aws/template"
	"karpenter/cloud/cloudtest"
	"karpenter/model"
)

func sleep() { time.Sleep(time.Second) }

// failing launches the order where nothing is to be had but the errors.
func failing(s *stage, o *template.Want, failures ...types.CreateFleetError) error {
	s.t.Helper()
	s.ec2.room, s.ec2.failures = 0, failures
	_, err := s.create(o)
	if err == nil {
		s.t.Fatal("launched")
	}
	return err
}

// gone reports what is remembered as out of capacity, of m5.large.
func gone(s *stage, group, partition string) []string {
	var out []string
	for _, capacityType := range []string{model.OnDemand, model.Spot} {
		for _, zone := range []string{"a", "b"} {
			o := shortage.Offering{CapacityType: capacityType, InstanceType: "m5.large", Zone: "zone-" + zone, Group: group, Partition: partition}
			if s.short.SoldOut(o, []string{"subnet-" + zone}, time.Now()) {
				out = append(out, capacityType+" "+zone)
			}
		}
	}
	return out
}

// spec 65/61: a shortage concerns the offering that was asked for, for three
// minutes.
func TestShortage(t *testing.T) {
	inBubble(t, func(t *testing.T, s *stage) {
		err := failing(s, order("claim", model.Spot), fleetFailure("InsufficientInstanceCapacity", "none", "m5.large", "zone-a"))
		if !cloud.IsInsufficientCapacity(err) {
			t.Errorf("error %v", err)
		}
		check(t, "sold out", gone(s, "", ""), []string{"spot a"})
		time.Sleep(shortage.Lasting)
		check(t, "after three minutes", gone(s, "", ""), []string(nil))
	})
}

// Errors count even when there is an instance.
func TestShortageBesideSuccess(t *testing.T) {
	inBubble(t, func(t *testing.T, s *stage) {
		s.ec2.failures = []types.CreateFleetError{fleetFailure("UnfulfillableCapacity", "none", "m5.large", "zone-b")}
		if _, err := s.create(order("claim", model.Spot)); err != nil {
			t.Fatal(err)
		}
		check(t, "sold out", gone(s, "", ""), []string{"spot b"})
	})
}

// spec 65/63: a subnet without addresses is left for another in its zone; the
// zone is closed when it was the only one.
func TestSubnetWithoutAddresses(t *testing.T) {
	inBubble(t, func(t *testing.T, s *stage) {
		err := failing(s, order("claim", model.OnDemand), fleetFailure("InsufficientFreeAddressesInSubnet", "full", "m5.large", "zone-a"))
		if !cloud.IsInsufficientCapacity(err) {
			t.Errorf("error %v", err)
		}
		o := shortage.Offering{CapacityType: model.OnDemand, InstanceType: "m5.large", Zone: "zone-a"}
		if s.short.SoldOut(o, []string{"subnet-a", "subnet-a2"}, time.Now()) || !s.short.SoldOut(o, []string{"subnet-a"}, time.Now()) {
			t.Error("zone-a is closed, or open, where it should not be")
		}
		check(t, "told", s.subnets.bad, []string{"subnet-a"})
		s.ec2.room, s.ec2.failures = 1, nil
		i, err := s.create(order("next", model.OnDemand))
		if err != nil || i.SubnetID != "subnet-b" {
			t.Errorf("next: %+v, %v", i, err)
		}
	})
}

// spec 65/64: without the role for spot, all spot is out of capacity and the user told.
func TestNoSpotRole(t *testing.T) {
	inBubble(t, func(t *testing.T, s *stage) {
		err := failing(s, order("claim", model.Spot), fleetFailure("AuthFailure.ServiceLinkedRoleCreationNotPermitted", "no", "m5.large", "zone-a"))
		if !cloud.IsInsufficientCapacity(err) {
			t.Errorf("error %v", err)
		}
		check(t, "sold out", gone(s, "", ""), []string{"spot a", "spot b"})
		check(t, "told", s.noRole, []string{"claim"})
	})
}

// spec 65/66: what is short in a placement group is open outside of it, and what
// is short in a partition in the others.
func TestShortageInGroup(t *testing.T) {
	inBubble(t, func(t *testing.T, s *stage) {
		o := order("claim", model.OnDemand)
		o.GroupID, o.Partition = "pg-1", "2"
		_ = failing(s, o, fleetFailure("InsufficientInstanceCapacity", "none", "m5.large", "zone-a"))
		check(t, "outside", gone(s, "", ""), []string(nil))
		check(t, "other partition", gone(s, "pg-1", "1"), []string(nil))
		check(t, "the group", gone(s, "pg-1", ""), []string(nil))
		check(t, "the partition", gone(s, "pg-1", "2"), []string{"on-demand a"})
	})
}

// spec 65/67: a spread group that is full in a zone is so for all types asked
// for, and for that group only.
func TestSpreadGroupFull(t *testing.T) {
	inBubble(t, func(t *testing.T, s *stage) {
		o := order("claim", model.OnDemand)
		o.GroupID = "pg-1"
		_ = failing(s, o, fleetFailure("Unsupported", "You have reached the limit of instances in this spread placement group.", "m5.xlarge", "zone-b"))
		check(t, "the group", gone(s, "pg-1", ""), []string{"on-demand b"})
		check(t, "another", gone(s, "pg-2", ""), []string(nil))
		check(t, "outside", gone(s, "", ""), []string(nil))
	})
}

// spec 65/82: a reservation that is used up has nothing left; being asked to
// slow down says nothing of it.
func TestReservationUsedUp(t *testing.T) {
	offering := cloudtest.Offering("zone-a", model.Reserved, 0.001)
	offering.ReservationID = "cr-1"
	for code, want := range map[string]struct {
		reason string
		log    []string
	}{
		"ReservationCapacityExceeded":                 {"", []string{"exhausted cr-1"}}, // spec 48/86
		"InsufficientInstanceCapacity":                {"", nil},
		"InvalidCapacityReservationState.Unavailable": {"", nil}, // interruptible, and EC2 takes it back
		"RequestLimitExceeded":                        {"RequestLimitExceeded", nil},
	} {
		inBubble(t, func(t *testing.T, s *stage) {
			o := orderOf("claim", model.Reserved, cloudtest.Type("m5.large", "2", "8Gi", offering))
			err := failing(s, o, fleetFailure(code, "no", "m5.large", "zone-a"))
			check(t, code, reasonOf(err), want.reason)
			check(t, code+": insufficient", cloud.IsInsufficientCapacity(err), want.reason == "")
			check(t, code, s.reserved.log, want.log)
			check(t, code+": sold out", gone(s, "", ""), []string(nil))
			// spec 48/86: short for three minutes, and no other reservation
			short := want.reason == "" && want.log == nil
			check(t, code+": short", s.short.ReservationShort("m5.large", "zone-a", "cr-1", time.Now()), short)
			check(t, code+": sibling", s.short.ReservationShort("m5.large", "zone-a", "cr-2", time.Now()), false)
			time.Sleep(shortage.Lasting)
			check(t, code+": short later", s.short.ReservationShort("m5.large", "zone-a", "cr-1", time.Now()), false)
		})
	}
}

// spec 65/84: only shortages make a launch hopeless; what else went wrong is
// told.
func TestMixedErrors(t *testing.T) {
	inBubble(t, func(t *testing.T, s *stage) {
		ice := fleetFailure("InsufficientInstanceCapacity", "none", "m5.large", "zone-a")
		err := failing(s, order("claim", model.OnDemand), ice, ice, fleetFailure("UnauthorizedOperation", "You are not authorized", "m5.xlarge", "zone-a"))
		check(t, "reason", reasonOf(err), "Unauthorized")
		check(t, "repetitions", strings.Count(err.Error(), "InsufficientInstanceCapacity"), 1)
	})
}

// spec 48/88: a spot price above the highest one allowed is a shortage.
func TestSpotMaxPrice(t *testing.T) {
	inBubble(t, func(t *testing.T, s *stage) {
		err := failing(s, order("claim", model.Spot), fleetFailure("SpotMaxPriceTooLow", "too low", "m5.large", "zone-a"))
		check(t, "insufficient", cloud.IsInsufficientCapacity(err), true)
		check(t, "sold out", gone(s, "", ""), []string{"spot a"})
	})
}

// spec 65/85: a quota of fleets is a shortage.
func TestFleetQuota(t *testing.T) {
	inBubble(t, func(t *testing.T, s *stage) {
		err := failing(s, order("claim", model.OnDemand), fleetFailure("MaxFleetCountExceeded", "too many", "m5.large", "zone-a"))
		check(t, "insufficient", cloud.IsInsufficientCapacity(err), true)
	})
}

// A fleet without instances and without errors is reported as that, and tried
// again.
func TestNothingReturned(t *testing.T) {
	inBubble(t, func(t *testing.T, s *stage) {
		err := failing(s, order("claim", model.OnDemand))
		check(t, "reason", reasonOf(err), "LaunchFailed")
		check(t, "said", strings.Contains(err.Error(), "too few instances returned"), true)
	})
}

// spec 65/86: a launch template that someone has deleted is made again, once.
func TestTemplateDeleted(t *testing.T) {
	inBubble(t, func(t *testing.T, s *stage) {
		s.ec2.refuse["CreateFleet"] = apiError("InvalidLaunchTemplateName.NotFoundException")
		if _, err := s.create(order("claim", model.OnDemand)); err == nil {
			t.Error("launched without a template")
		}
		check(t, "calls", s.ec2.count("CreateFleet"), 2)
		check(t, "forgotten", s.templates.version, 2)
		delete(s.ec2.refuse, "CreateFleet")
		s.ec2.room, s.ec2.failures = 1, nil
		if _, err := s.create(order("claim", model.OnDemand)); err != nil {
			t.Error(err)
		}
		check(t, "template", strings.HasPrefix(overrides(s.ec2.inputs[0])[0], "template-2$"), true)
	})
}

// Each error counts once, however many claims the fleet was for. spec 65/93
func TestLaunchFailuresAreCounted(t *testing.T) {
	inBubble(t, func(t *testing.T, s *stage) {
		s.ec2.room = 0
		s.ec2.failures = []types.CreateFleetError{
			fleetFailure("InsufficientInstanceCapacity", "none", "m5.large", "zone-a"),
			fleetFailure("VcpuLimitExceeded", "quota", "m5.large", "zone-b"),
			fleetFailure("UnauthorizedOperation", "no", "m5.large", "zone-c"),
		}
		s.createAll(orders(5))
		err := testutil.GatherAndCompare(s.registry, strings.NewReader(`
# HELP karpenter_cloudprovider_instance_launch_failures_total Number of errors in answers to launches. Labeled by zone, zone ID, capacity type and reason.
# TYPE karpenter_cloudprovider_instance_launch_failures_total counter
karpenter_cloudprovider_instance_launch_failures_total{capacity_type="on-demand",reason="InsufficientInstanceCapacity",zone="zone-a",zone_id="id-a"} 1
karpenter_cloudprovider_instance_launch_failures_total{capacity_type="on-demand",reason="Unauthorized",zone="zone-c",zone_id=""} 1
karpenter_cloudprovider_instance_launch_failures_total{capacity_type="on-demand",reason="VCPULimitExceeded",zone="zone-b",zone_id="id-b"} 1
`), "karpenter_cloudprovider_instance_launch_failures_total")
		if err != nil {
			t.Error(err)
		}
	})
}

// Errors of the call itself, of launch templates and of classes are reported by
// reason.
func TestReasons(t *testing.T) {
	inBubble(t, func(t *testing.T, s *stage) {
		s.ec2.refuse["CreateFleet"] = apiError("RequestLimitExceeded")
		_, err := s.create(order("throttled", model.OnDemand))
		check(t, "throttled", reasonOf(err), "RequestLimitExceeded")
		if _, err = s.create(order("throttled", model.OnDemand)); reasonOf(err) != "RequestLimitExceeded" {
			t.Errorf("again: %v", err) // it was rejected for sure, so nothing is looked for
		}
		s.templates.fail = apiError("UnauthorizedOperation")
		_, err = s.create(order("templates", model.OnDemand))
		check(t, "templates", reasonOf(err), "Unauthorized")
		check(t, "said", strings.Contains(err.Error(), "Error getting launch template configs: "), true)
		s.templates.fail = &cloud.NodeClassNotReadyError{Err: errors.New("no CIDR")}
		_, err = s.create(order("class", model.OnDemand))
		check(t, "class", cloud.IsNodeClassNotReady(err), true)
		s.templates.fail = nil
		bare := order("bare", model.OnDemand)
		bare.Class.Status.Subnets = nil
		_, err = s.create(bare)
		check(t, "no subnets", reasonOf(err), "SubnetResolutionFailed")
	})
}

// More instances than were asked for are no one's.
func TestFleetWithTooManyInstances(t *testing.T) {
	inBubble(t, func(t *testing.T, s *stage) {
		o := order("claim", model.OnDemand)
		if _, err := s.create(o); err != nil {
			t.Fatal(err)
		}
		s.ec2.set("i-001", func(i *types.Instance) {
			second := copyOf(i)
			id := "i-002"
			second.InstanceId = &id
			s.ec2.instances[id] = &second
		})
		check(t, "unclaimed", s.unclaimed(), []string{"i-002"})
		if !slices.Contains(s.ec2.alive(), "i-001") {
			t.Error("the claim's instance is gone")
		}
	})
}
