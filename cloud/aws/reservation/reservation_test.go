// SPDX-License-Identifier: Apache-2.0

package reservation_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"
	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/cloud/aws/instancetype"
	"karpenter/cloud/aws/reservation"
)

// region is an EC2 with reservations and placement groups, which writes down
// what it is asked.
type region struct {
	reservations []types.CapacityReservation
	groups       []types.PlacementGroup
	asked        []string
	fails        error
}

func (r *region) DescribeCapacityReservations(_ context.Context, in *ec2.DescribeCapacityReservationsInput, _ ...func(*ec2.Options)) (*ec2.DescribeCapacityReservationsOutput, error) {
	r.asked = append(r.asked, fmt.Sprintf("DescribeCapacityReservations %s %s, %d a page", strings.Join(in.CapacityReservationIds, "|"), texts(in.Filters), aws.ToInt32(in.MaxResults)))
	if r.fails != nil {
		return nil, r.fails
	}
	out := &ec2.DescribeCapacityReservationsOutput{}
	for _, one := range r.reservations {
		if len(in.CapacityReservationIds) > 0 && !slices.Contains(in.CapacityReservationIds, *one.CapacityReservationId) || !holds(in.Filters, one) {
			continue
		}
		out.CapacityReservations = append(out.CapacityReservations, one)
	}
	if len(in.CapacityReservationIds) > 0 && len(out.CapacityReservations) == 0 {
		return nil, &smithy.GenericAPIError{Code: "InvalidCapacityReservationId.NotFound"}
	}
	return out, nil
}

func (r *region) DescribePlacementGroups(_ context.Context, in *ec2.DescribePlacementGroupsInput, _ ...func(*ec2.Options)) (*ec2.DescribePlacementGroupsOutput, error) {
	r.asked = append(r.asked, fmt.Sprintf("DescribePlacementGroups ids %v names %v %s", in.GroupIds, in.GroupNames, texts(in.Filters)))
	if r.fails != nil {
		return nil, r.fails
	}
	out := &ec2.DescribePlacementGroupsOutput{}
	for _, g := range r.groups {
		if slices.Contains(in.GroupIds, *g.GroupId) || slices.Contains(in.GroupNames, *g.GroupName) {
			out.PlacementGroups = append(out.PlacementGroups, g)
		}
	}
	return out, nil
}

func texts(filters []types.Filter) string {
	var out []string
	for _, f := range filters {
		out = append(out, *f.Name+"="+strings.Join(f.Values, "|"))
	}
	return strings.Join(out, " ")
}

// holds reports whether the filters do; all reservations are active.
func holds(filters []types.Filter, r types.CapacityReservation) bool {
	is := map[string]string{"state": "active", "owner-id": *r.OwnerId, "instance-match-criteria": string(r.InstanceMatchCriteria)}
	for _, tag := range r.Tags {
		is["tag:"+*tag.Key] = *tag.Value
	}
	for _, f := range filters {
		if is[*f.Name] != f.Values[0] {
			return false
		}
	}
	return true
}

func at(text string) time.Time {
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return time.Unix(0, 0).UTC().Add(d)
}

// read takes lines: ID, type, zone, owner, launches left, match criteria,
// reservation type, then optionally "ends" with a time, "interruptible" or a tag.
func (r *region) read(text string) {
	r.reservations = nil
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		left, _ := strconv.Atoi(words[4])
		one := types.CapacityReservation{
			CapacityReservationId: &words[0], InstanceType: &words[1], AvailabilityZone: &words[2], OwnerId: &words[3],
			AvailableInstanceCount: aws.Int32(int32(left)), InstanceMatchCriteria: types.InstanceMatchCriteria(words[5]),
			ReservationType: types.CapacityReservationType(words[6]),
		}
		for i, word := range words {
			key, value, tagged := strings.Cut(word, "=")
			switch {
			case tagged:
				one.Tags = append(one.Tags, types.Tag{Key: &key, Value: &value})
			case word == "ends":
				one.EndDate = aws.Time(at(words[i+1]))
			case word == "interruptible":
				one.Interruptible = aws.Bool(true)
			}
		}
		r.reservations = append(r.reservations, one)
	}
}

// TestSelect: what terms select at a time, the questions that takes, and when
// to look again. One that is "known" is asked after another at the same time.
func TestSelect(t *testing.T) {
	r := &region{}
	clock := clocktesting.NewFakePassiveClock(at("0s"))
	counts := &reservation.Counts{}
	reservations := reservation.NewReservations(r, clock, counts)
	datadriven.RunTest(t, "testdata/select", func(t *testing.T, d *datadriven.TestData) string {
		if d.Cmd == "reservations" {
			r.read(d.Input)
			return ""
		}
		var terms []awsv1.CapacityReservationSelectorTerm
		if err := yaml.UnmarshalStrict([]byte(d.Input), &terms); err != nil {
			d.Fatalf(t, "%v", err)
		}
		var now string
		d.ScanArgs(t, "at", &now)
		clock.SetTime(at(now))
		r.asked = nil
		found, skipped, err := reservations.Of(t.Context(), terms)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		var out strings.Builder
		for _, question := range r.asked {
			fmt.Fprintln(&out, question)
		}
		for _, f := range found {
			fmt.Fprintf(&out, "-> %s %s %s of %s: %s, %s, %s, interruptible %t, %d left", f.ID, f.InstanceType, f.AvailabilityZone, f.OwnerID,
				f.InstanceMatchCriteria, f.ReservationType, f.State, f.Interruptible, counts.Left(f.ID))
			if f.EndTime != nil {
				fmt.Fprintf(&out, ", ends %v", f.EndTime.Sub(at("0s")))
			}
			fmt.Fprintln(&out)
		}
		if skipped != nil {
			fmt.Fprintf(&out, "skipped: %v\n", skipped)
		}
		fmt.Fprintf(&out, "again in %v\n", reservation.Changes(found, clock.Now()))
		return out.String()
	})
}

// TestFresh: what is known does not count when EC2 is to be asked.
func TestFresh(t *testing.T) {
	r := &region{}
	r.read("cr-1 m5.large a 111122223333 5 open default")
	reservations := reservation.NewReservations(r, clocktesting.NewFakePassiveClock(at("0s")), &reservation.Counts{})
	terms := []awsv1.CapacityReservationSelectorTerm{{ID: "cr-1"}}
	for range 2 {
		if found, _, err := reservations.Fresh(t.Context(), terms); err != nil || len(found) != 1 {
			t.Fatalf("%v, %v", found, err)
		}
	}
	if len(r.asked) != 2 {
		t.Errorf("asked %v", r.asked)
	}
	r.fails = &smithy.GenericAPIError{Code: "UnauthorizedOperation"}
	if _, _, err := reservations.Fresh(t.Context(), terms); !errors.Is(err, r.fails) {
		t.Errorf("error %v", err)
	}
	if found, _, err := reservations.Of(t.Context(), nil); err != nil || found != nil {
		t.Errorf("no terms: %v, %v", found, err)
	}
}

// TestCounts covers spec 65 §7.6.
func TestCounts(t *testing.T) {
	c := &reservation.Counts{}
	want := func(when string, n int64) {
		t.Helper()
		if got := c.Left("cr-1"); got != n {
			t.Errorf("%s: %d left, want %d", when, got, n)
		}
	}
	c.Launched("cr-1", at("1s"))
	c.Ended("cr-1")
	c.Exhausted("cr-1")
	want("unknown", 0)
	c.Synced("cr-1", 2, at("10s"))
	c.Launched("cr-1", at("9s"))
	want("launched before EC2 was asked", 2)
	c.Launched("cr-1", at("11s"))
	want("launched", 1)
	c.Synced("cr-1", 5, at("5s"))
	want("an older answer came late", 1)
	c.Synced("cr-1", 2, at("10s"))
	want("EC2 was asked before the launch and answered after it", 1)
	c.Launched("cr-1", at("12s"))
	c.Launched("cr-1", at("13s"))
	want("never below none", 0)
	c.Ended("cr-1")
	want("an instance is gone", 1)
	c.Exhausted("cr-1")
	want("EC2 had nothing left", 0)
	c.Synced("cr-1", 3, at("20s"))
	want("asked again", 3)
	c.Synced("cr-2", 3, at("30h"))
	want("nothing was heard for a day", 0)
}

// TestGroups covers spec 65/14 as far as EC2 is asked: a name is a name, also
// when it looks like an ID.
func TestGroups(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(at("0s"))
	r := &region{groups: []types.PlacementGroup{
		{GroupId: aws.String("pg-1"), GroupName: aws.String("pg-foo"), Strategy: types.PlacementStrategyPartition, PartitionCount: aws.Int32(3)},
		{GroupId: aws.String("pg-foo"), GroupName: aws.String("other"), Strategy: types.PlacementStrategyCluster},
	}}
	groups := reservation.NewGroups(r, clock)
	class := &awsv1.EC2NodeClass{}
	if got, err := groups.For(t.Context(), class); got != nil || err != nil {
		t.Errorf("no selector: %v, %v", got, err)
	}
	class.Spec.PlacementGroupSelector = &awsv1.PlacementGroupSelector{Name: "pg-foo"}
	want := &instancetype.PlacementGroup{ID: "pg-1", Strategy: "partition", Partitions: 3}
	check := func(when string, questions int) {
		t.Helper()
		r.asked = nil
		got, err := groups.For(t.Context(), class)
		if diff := cmp.Diff(want, got); diff != "" || err != nil || len(r.asked) != questions {
			t.Errorf("%s: %v, asked %q, -want +got:\n%s", when, err, r.asked, diff)
		}
	}
	check("first", 1)
	check("known", 0)
	clock.SetTime(at("1m"))
	r.fails = &smithy.GenericAPIError{Code: "RequestLimitExceeded"}
	check("EC2 does not answer", 1)
	if _, err := groups.Of(t.Context(), *class.Spec.PlacementGroupSelector); !errors.Is(err, r.fails) {
		t.Errorf("the failure is not told: %v", err)
	}
	clock.SetTime(at("25h"))
	if _, err := groups.For(t.Context(), class); !errors.Is(err, r.fails) {
		t.Errorf("what was said yesterday still holds: %v", err)
	}
	for _, gone := range []error{&smithy.GenericAPIError{Code: "InvalidPlacementGroup.Unknown"}, nil} {
		r.fails, r.groups = gone, nil
		if _, err := groups.For(t.Context(), class); !errors.Is(err, reservation.ErrNoGroup) {
			t.Errorf("gone: %v", err)
		}
	}
	if got := r.asked[len(r.asked)-1]; got != "DescribePlacementGroups ids [] names [pg-foo] state=available" {
		t.Errorf("asked %s", got)
	}
}
