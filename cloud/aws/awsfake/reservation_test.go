// SPDX-License-Identifier: Apache-2.0

package awsfake

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// reserved makes a template for a reservation and a request that uses it.
func (l *lab) reserved(id, capacityType string, n int32) *ec2.CreateFleetInput {
	l.Helper()
	name := "for/" + id
	if l.LaunchTemplates()[name].ImageId == nil {
		l.template(name, func(d *types.RequestLaunchTemplateData) {
			d.CapacityReservationSpecification = &types.LaunchTemplateCapacityReservationSpecificationRequest{
				CapacityReservationPreference: types.CapacityReservationPreferenceCapacityReservationsOnly, CapacityReservationTarget: &types.CapacityReservationTarget{CapacityReservationId: &id},
			}
		})
	}
	in := l.request(capacityType, n, l.override("m5.large", 0))
	in.LaunchTemplateConfigs[0].LaunchTemplateSpecification.LaunchTemplateName = &name
	return in
}

// left says what remains of a reservation: state, available of total.
func (l *lab) left(id string) string {
	l.Helper()
	out, err := l.EC2.DescribeCapacityReservations(l.Context(), &ec2.DescribeCapacityReservationsInput{CapacityReservationIds: []string{id}})
	l.must(err)
	r := out.CapacityReservations[0]
	return fmt.Sprintf("%s %d/%d", r.State, *r.AvailableInstanceCount, *r.TotalInstanceCount)
}

func (l *lab) is(got, want string) {
	l.Helper()
	if got != want {
		l.Errorf("%q, want %q", got, want)
	}
}

func TestTargetedReservation(t *testing.T) {
	l := newLab(t, nil)
	l.Stock(Pool{}, 0) // what is reserved is there all the same
	id := l.AddReservation(Reservation{Type: "m5.large", Zone: "us-west-2a", Count: 2, Tags: tags("team", "a"), End: l.clock.Now().Add(time.Hour)})
	l.fleet(l.reserved(id, OnDemand, 3), "m5.large a + +", "m5.large a ReservationCapacityExceeded")
	l.is(l.left(id), "active 0/2")
	m := l.Instances()[0]
	if *m.CapacityReservationId != id || m.CapacityReservationSpecification.CapacityReservationPreference != "capacity-reservations-only" || m.InstanceLifecycle != "" {
		t.Errorf("%+v", m)
	}
	l.must(l.terminate(*m.InstanceId))
	l.is(l.left(id), "active 1/2")
	l.must(l.ResizeReservation(id, 5))
	l.is(l.left(id), "active 4/5")
	l.clock.Step(time.Hour)
	l.is(l.left(id), "expired 0/0")
	if m := l.Instances()[0]; m.CapacityReservationId != nil || m.State.Name != "running" {
		t.Errorf("%+v", m)
	}
	l.fleet(l.reserved(id, OnDemand, 1), "m5.large a ReservationCapacityExceeded")
	other := l.AddReservation(Reservation{Type: "m5.xlarge", Zone: "us-west-2a", Count: 1})
	l.fleet(l.reserved(other, OnDemand, 1), "m5.large a ReservationCapacityExceeded")
	l.must(l.CancelReservation(other))
	l.is(l.left(other), "cancelled 0/0")
	if err := l.CancelReservation("cr-0"); err == nil {
		t.Error("an unknown reservation was cancelled")
	}
}

func TestOpenReservationTakesWhoFits(t *testing.T) {
	l := newLab(t, nil)
	id := l.AddReservation(Reservation{Type: "m5.large", Zone: "us-west-2a", Count: 1, Open: true})
	l.template("none", func(d *types.RequestLaunchTemplateData) {
		d.CapacityReservationSpecification = &types.LaunchTemplateCapacityReservationSpecificationRequest{CapacityReservationPreference: types.CapacityReservationPreferenceNone}
	})
	in := l.request(OnDemand, 1, l.override("m5.large", 0))
	in.LaunchTemplateConfigs[0].LaunchTemplateSpecification.LaunchTemplateName = aws.String("none")
	l.fleet(in, "m5.large a +")
	l.is(l.left(id), "active 1/1")
	l.fleet(l.request(Spot, 1, l.override("m5.large", 0)), "m5.large a +")
	l.is(l.left(id), "active 1/1")
	l.fleet(l.request(OnDemand, 2, l.override("m5.large", 0)), "m5.large a + +")
	l.is(l.left(id), "active 0/1")
}

func TestCapacityBlock(t *testing.T) {
	l := newLab(t, nil)
	id := l.AddReservation(Reservation{Type: "m5.large", Zone: "us-west-2a", Count: 2, CapacityBlock: true, End: l.clock.Now().Add(time.Hour)})
	l.fleet(l.reserved(id, OnDemand, 1), "m5.large a ReservationCapacityExceeded") // wrong capacity type
	l.fleet(l.request("capacity-block", 1, l.override("m5.large", 0)), "m5.large a ReservationCapacityExceeded")
	l.fleet(l.reserved(id, "capacity-block", 1), "m5.large a +")
	m := l.Instances()[0]
	l.is(string(m.InstanceLifecycle), "capacity-block")
	l.clock.Step(29 * time.Minute)
	l.is(l.state(*m.InstanceId), "running")
	l.clock.Step(time.Minute)
	l.is(l.state(*m.InstanceId), "terminated")
	l.is(l.left(id), "active 2/2")
	l.clock.Step(30 * time.Minute)
	l.is(l.left(id), "expired 2/2")
}

func TestInterruptibleReservation(t *testing.T) {
	l := newLab(t, nil)
	id := l.AddReservation(Reservation{Type: "m5.large", Zone: "us-west-2a", Count: 1, Interruptible: true, Owner: "999999999999"})
	in := l.reserved(id, "reserved-capacity", 1)
	in.ReservedCapacityOptions = &types.ReservedCapacityOptionsRequest{ReservationTypes: []types.FleetReservationType{types.FleetReservationTypeInterruptibleCapacityReservation}}
	l.fleet(in, "m5.large a +")
	m := l.Instances()[0]
	l.is(string(m.InstanceLifecycle), "interruptible-capacity-reservation")
	l.told()
	l.must(l.Interrupt(*m.InstanceId))
	l.hears("12:00:00 aws.ec2: EC2 Capacity Reservation Instance Interruption Warning terminate 0")
	l.clock.Step(notice)
	l.is(l.state(*m.InstanceId), "terminated")
	l.is(l.left(id), "active 1/1")
}

func TestDescribeCapacityReservations(t *testing.T) {
	l := newLab(t, nil)
	l.AddReservation(Reservation{Type: "m5.large", Zone: "us-west-2a", Count: 1, Open: true, Owner: "999999999999", Tags: tags("team", "a")})
	l.AddReservation(Reservation{Type: "m5.large", Zone: "us-west-2b", Count: 1})
	for name, c := range map[string]struct {
		filters []types.Filter
		want    int
	}{
		"active": {filters("state", "active"), 2}, "owner": {filters("owner-id", "999999999999"), 1}, "criteria": {filters("instance-match-criteria", "targeted"), 1},
		"tag": {filters("tag:team", "a"), 1}, "tag key": {filters("tag-key", "team"), 1}, "type": {filters("instance-type", "m5.large"), 2},
	} {
		out, err := l.EC2.DescribeCapacityReservations(t.Context(), &ec2.DescribeCapacityReservationsInput{Filters: c.filters, MaxResults: aws.Int32(1000)})
		l.must(err)
		if len(out.CapacityReservations) != c.want {
			t.Errorf("%s: %d reservations, want %d", name, len(out.CapacityReservations), c.want)
		}
	}
	_, err := l.EC2.DescribeCapacityReservations(t.Context(), &ec2.DescribeCapacityReservationsInput{CapacityReservationIds: []string{"cr-0"}})
	l.refused(err, "InvalidCapacityReservationId.NotFound")
}

// grouped is a request into a placement group.
func (l *lab) grouped(group string, partition, n int32, overrides ...types.FleetLaunchTemplateOverridesRequest) *ec2.CreateFleetInput {
	l.Helper()
	name := fmt.Sprintf("in/%s/%d", group, partition)
	if l.LaunchTemplates()[name].ImageId == nil {
		l.template(name, func(d *types.RequestLaunchTemplateData) {
			d.Placement = &types.LaunchTemplatePlacementRequest{GroupId: &group}
			if partition != 0 {
				d.Placement.PartitionNumber = &partition
			}
		})
	}
	in := l.request(OnDemand, n, overrides...)
	in.LaunchTemplateConfigs[0].LaunchTemplateSpecification.LaunchTemplateName = &name
	return in
}

func TestSpreadPlacementGroupTakesSevenInAZone(t *testing.T) {
	l := newLab(t, nil)
	id := l.AddPlacementGroup("spread", types.PlacementStrategySpread, 0)
	out := l.fleet(l.grouped(id, 0, 9, l.override("m5.large", 0), l.override("m5.large", 1)), "m5.large a + + + + + + +", "m5.large b + +", "m5.large a UnfulfillableCapacity")
	l.is((*out.Errors[0].ErrorMessage)[:67], "You've reached the limit of instances in this spread placement group"[:67])
	m := l.Instances()[0]
	l.is(*m.Placement.GroupName+" "+*m.Placement.GroupId, "spread "+id)
	l.must(l.terminate(*m.InstanceId))
	l.fleet(l.grouped(id, 0, 1, l.override("m5.large", 0)), "m5.large a +")
}

func TestPartitionPlacementGroup(t *testing.T) {
	l := newLab(t, nil)
	id := l.AddPlacementGroup("partitions", types.PlacementStrategyPartition, 3)
	l.fleet(l.grouped(id, 2, 1, l.override("m5.large", 0)), "m5.large a +")
	l.fleet(l.grouped(id, 0, 3, l.override("m5.large", 0)), "m5.large a + + +")
	var got []int32
	for _, m := range l.Instances() {
		got = append(got, *m.Placement.PartitionNumber)
	}
	if want := "[2 1 3 1]"; fmt.Sprint(got) != want {
		t.Errorf("partitions %v, want %s", got, want)
	}
	l.fleet(l.grouped(id, 4, 1, l.override("m5.large", 0)), "m5.large a InvalidParameterValue")
	cluster := l.AddPlacementGroup("near", types.PlacementStrategyCluster, 0)
	l.fleet(l.grouped(cluster, 0, 1, l.override("t3.large", 0)), "t3.large a InvalidParameterCombination")
}

func TestDescribePlacementGroups(t *testing.T) {
	l := newLab(t, nil)
	id := l.AddPlacementGroup("near", types.PlacementStrategyCluster, 0)
	describe := func(in *ec2.DescribePlacementGroupsInput) (int, error) {
		in.Filters = filters("state", "available")
		out, err := l.EC2.DescribePlacementGroups(t.Context(), in)
		if err != nil {
			return 0, err
		}
		return len(out.PlacementGroups), nil
	}
	for _, in := range []*ec2.DescribePlacementGroupsInput{{GroupIds: []string{id}}, {GroupNames: []string{"near"}}, {}} {
		if n, err := describe(in); n != 1 || err != nil {
			t.Errorf("%+v: %d, %v", in, n, err)
		}
	}
	_, err := describe(&ec2.DescribePlacementGroupsInput{GroupNames: []string{id}}) // an ID is no name
	l.refused(err, "InvalidPlacementGroup.Unknown")
	l.RemovePlacementGroup(id)
	_, err = describe(&ec2.DescribePlacementGroupsInput{GroupIds: []string{id}})
	l.refused(err, "InvalidPlacementGroup.Unknown")
}
