// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "karpenter/api/aws/v1"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/aws/awsfake"
	"karpenter/model"
)

// spec 65/140: what is compared, and which of several differences counts.
// spec 65/141: what cannot be compared is an error, not drift.
func TestDrift(t *testing.T) {
	others := func(c *awsv1.EC2NodeClass) {
		c.Status.SecurityGroups = append(c.Status.SecurityGroups, awsv1.SecurityGroup{ID: "sg-more"})
	}
	fewer := func(c *awsv1.EC2NodeClass) { c.Status.SecurityGroups = c.Status.SecurityGroups[:1] }
	elsewhere := func(c *awsv1.EC2NodeClass) {
		c.Status.Subnets = []awsv1.Subnet{{ID: "subnet-other", Zone: "us-west-2a"}}
	}
	images := func(c *awsv1.EC2NodeClass) {
		for i := range c.Status.AMIs {
			c.Status.AMIs[i].ID = "ami-other"
		}
	}
	spec := func(c *awsv1.EC2NodeClass) { c.Annotations[awsv1.HashAnnotationKey] = "another" }
	r := newRegion(t, nil)
	claim := r.claim("claim")
	r.launch(claim)
	intact := r.getClass()
	for _, c := range []struct {
		name   string
		class  []func(*awsv1.EC2NodeClass)
		claim  func(*v1.NodeClaim)
		reason string
		err    string
	}{
		{name: "nothing"},
		{name: "spec", class: []func(*awsv1.EC2NodeClass){spec}, reason: awsv1.NodeClassDriftReason},
		{name: "image", class: []func(*awsv1.EC2NodeClass){images}, reason: awsv1.AMIDriftReason},
		{name: "more security groups", class: []func(*awsv1.EC2NodeClass){others}, reason: awsv1.SecurityGroupDriftReason},
		{name: "fewer security groups", class: []func(*awsv1.EC2NodeClass){fewer}, reason: awsv1.SecurityGroupDriftReason},
		{name: "subnet", class: []func(*awsv1.EC2NodeClass){elsewhere}, reason: awsv1.SubnetDriftReason},
		{name: "all", class: []func(*awsv1.EC2NodeClass){spec, images, others, elsewhere}, reason: awsv1.NodeClassDriftReason},
		{name: "all but the spec", class: []func(*awsv1.EC2NodeClass){images, others, elsewhere}, reason: awsv1.AMIDriftReason},
		{name: "groups and subnet", class: []func(*awsv1.EC2NodeClass){others, elsewhere}, reason: awsv1.SecurityGroupDriftReason},
		{name: "no groups", class: []func(*awsv1.EC2NodeClass){func(c *awsv1.EC2NodeClass) { c.Status.SecurityGroups = nil }}, err: "no security groups are present in the status"},
		{name: "no subnets", class: []func(*awsv1.EC2NodeClass){func(c *awsv1.EC2NodeClass) { c.Status.Subnets = nil }}, err: "no subnets"},
		{name: "no images", class: []func(*awsv1.EC2NodeClass){func(c *awsv1.EC2NodeClass) { c.Status.AMIs = nil }}, err: "no amis exist given constraints"},
		{name: "claim without image", claim: func(c *v1.NodeClaim) { c.Status.ImageID = "" }, err: "has no image ID"},
		{name: "unknown type", claim: func(c *v1.NodeClaim) { c.Labels[model.LabelInstanceType] = "m1.tiny" }, err: `no instance type "m1.tiny"`},
		{name: "no pool", claim: func(c *v1.NodeClaim) { delete(c.Labels, v1.NodePoolLabelKey) }, class: []func(*awsv1.EC2NodeClass){spec}},
		{name: "pool is gone", claim: func(c *v1.NodeClaim) { c.Labels[v1.NodePoolLabelKey] = "gone" }, class: []func(*awsv1.EC2NodeClass){spec}},
		{name: "no class", claim: func(c *v1.NodeClaim) { c.Spec.NodeClassRef = nil }, class: []func(*awsv1.EC2NodeClass){spec}},
	} {
		changed, compared := intact.DeepCopy(), claim.DeepCopy()
		compared.Labels = maps.Clone(claim.Labels)
		for _, change := range c.class {
			change(changed)
		}
		if c.claim != nil {
			c.claim(compared)
		}
		r.put(changed)
		reason, err := r.IsDrifted(t.Context(), compared)
		if reason != c.reason || (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %q, %v", c.name, reason, err)
		}
	}
}

// put stores the class and its status as they are.
func (r *region) put(class *awsv1.EC2NodeClass) {
	r.t.Helper()
	status := class.Status
	class.ResourceVersion = r.getClass().ResourceVersion
	must(r.t, r.api.Update(r.t.Context(), class))
	class.Status = status
	must(r.t, r.api.Status().Update(r.t.Context(), class))
}

// Nothing is compared with a class that is being deleted; an event reports
// that.
func TestDriftWithoutClass(t *testing.T) {
	r := newRegion(t, nil)
	claim := r.claim("claim")
	r.launch(claim)
	claim.Spec.NodeClassRef = &v1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.Kind, Name: "gone"}
	reason, err := r.IsDrifted(t.Context(), claim)
	check(t, "reason", reason, "")
	must(t, err)
	check(t, "events", r.events, []string{"Warning default: Failed resolving NodeClass"})
	claim.Spec.NodeClassRef.Name = "default"
	_, id, _ := strings.Cut(claim.Status.ProviderID, "2")
	must(t, r.aws.Lose(id[strings.LastIndex(id, "/")+1:]))
	r.clock.Step(time.Minute)
	_, err = r.List(t.Context())
	must(t, err)
	if _, err = r.IsDrifted(t.Context(), claim); !cloud.IsNotFound(err) {
		t.Errorf("instance is gone: %v", err)
	}
}

// reserve has the class select a reservation of one m5.large, and starts a
// process that knows it.
func (r *region) reserve() (id string) {
	r.t.Helper()
	id = r.aws.AddReservation(awsfake.Reservation{Type: "m5.large", Zone: "us-west-2a", Count: 2})
	r.class(func(c *awsv1.EC2NodeClass) {
		c.Spec.CapacityReservationSelectorTerms = []awsv1.CapacityReservationSelectorTerm{{ID: id}}
	})
	r.restart()
	return id
}

// spec 65/83: reservations come first; without any that is left, it is on
// demand, as the claim allows.
func TestReserved(t *testing.T) {
	r := newRegion(t, nil)
	id := r.reserve()
	either := in(model.LabelCapacityType, "reserved", "on-demand")
	for range 2 {
		m := r.launch(r.claim("reserved-"+string(rune('a'+len(r.running()))), either))
		check(t, "bought", m.Labels[model.LabelCapacityType], "reserved")
		check(t, "reservation", m.Labels[awsv1.CapacityReservationIDLabelKey], id)
		check(t, "kind", m.Labels[awsv1.CapacityReservationTypeLabelKey], "default")
		check(t, "interruptible", m.Labels[awsv1.CapacityReservationInterruptibleLabelKey], "false")
	}
	check(t, "left", r.counts.Left(id), int64(0))
	check(t, "then", r.launch(r.claim("third", either)).Labels[model.LabelCapacityType], "on-demand")
}

// A reservation that is used up by others is found out by a launch (spec 65/82),
// and what ends is given back.
func TestReservationCounts(t *testing.T) {
	r := newRegion(t, nil)
	id := r.reserve()
	reserved := in(model.LabelCapacityType, "reserved")
	claim := r.claim("first", reserved)
	r.launch(claim)
	check(t, "left", r.counts.Left(id), int64(1))
	must(t, r.aws.ResizeReservation(id, 1))
	if _, err := r.Create(t.Context(), r.claim("second", reserved)); !cloud.IsInsufficientCapacity(err) {
		t.Fatalf("used up: %v", err)
	}
	check(t, "left", r.counts.Left(id), int64(0))
	must(t, r.Delete(t.Context(), claim))
	r.clock.Step(time.Minute)
	for range 2 {
		if err := r.Delete(t.Context(), claim); !cloud.IsNotFound(err) {
			t.Errorf("delete: %v", err)
		}
	}
	check(t, "given back", r.counts.Left(id), int64(1))
}

// spec 65/142: a reservation that is selected no more drifts what is in it, but
// not what has left it.
func TestReservationDrift(t *testing.T) {
	r := newRegion(t, nil)
	id := r.reserve()
	claim := r.claim("claim", in(model.LabelCapacityType, "reserved"))
	r.launch(claim)
	reason, err := r.IsDrifted(t.Context(), claim)
	check(t, "at first", reason, "")
	must(t, err)
	r.class(func(c *awsv1.EC2NodeClass) { c.Spec.CapacityReservationSelectorTerms = nil })
	class := r.getClass()
	claim.Annotations[awsv1.HashAnnotationKey] = class.Annotations[awsv1.HashAnnotationKey]
	reason, err = r.IsDrifted(t.Context(), claim)
	check(t, "selected no more", reason, awsv1.CapacityReservationDriftReason)
	must(t, err)
	must(t, r.aws.CancelReservation(id))
	reason, err = r.IsDrifted(t.Context(), claim)
	check(t, "left it", reason, "")
	must(t, err)
}

// spec 65/143: a placement group that is added or removed drifts what there is.
func TestPlacementGroupDrift(t *testing.T) {
	r := newRegion(t, nil)
	id := r.aws.AddPlacementGroup("group", types.PlacementStrategyCluster, 0)
	outside := r.claim("outside")
	r.launch(outside)
	r.class(func(c *awsv1.EC2NodeClass) {
		c.Spec.PlacementGroupSelector = &awsv1.PlacementGroupSelector{Name: "group"}
	})
	inside := r.claim("inside", in(model.LabelInstanceType, "m5.large"))
	m := r.launch(inside)
	check(t, "label", m.Labels[awsv1.PlacementGroupIDLabelKey], id)
	drift := func(claim *v1.NodeClaim) string {
		t.Helper()
		claim = claim.DeepCopy()
		claim.Annotations = nil // the spec has changed as well
		reason, err := r.IsDrifted(t.Context(), claim)
		must(t, err)
		return reason
	}
	check(t, "outside, with a group", drift(outside), awsv1.PlacementGroupDriftReason)
	check(t, "inside", drift(inside), "")
	r.class(func(c *awsv1.EC2NodeClass) { c.Spec.PlacementGroupSelector = nil })
	check(t, "outside", drift(outside), "")
	check(t, "inside, without a group", drift(inside), awsv1.PlacementGroupDriftReason)
}

// A node in a partition placement group is not registered before its partition
// is known.
func TestPartition(t *testing.T) {
	r := newRegion(t, nil)
	r.aws.AddPlacementGroup("group", types.PlacementStrategyPartition, 3)
	r.class(func(c *awsv1.EC2NodeClass) {
		c.Spec.PlacementGroupSelector = &awsv1.PlacementGroupSelector{Name: "group"}
	})
	hook := &PartitionHook{Provider: r.Provider}
	claim := r.claim("any", in(model.LabelInstanceType, "m5.large"))
	m, err := r.Create(t.Context(), claim)
	must(t, err)
	r.record(claim, m)
	partition, ok := m.Labels[awsv1.PlacementGroupPartitionLabelKey]
	check(t, "label", []any{partition, ok}, []any{"", true})
	result, err := hook.Registered(t.Context(), claim)
	must(t, err)
	check(t, "held up", result.RequeueAfter > 0, true) // EC2 does not show the instance
	r.clock.Step(time.Minute)
	result, err = hook.Registered(t.Context(), claim)
	must(t, err)
	check(t, "passes", result.IsZero(), true)
	check(t, "partition", slices.Contains([]string{"1", "2", "3"}, claim.Labels[awsv1.PlacementGroupPartitionLabelKey]), true)

	demanded := r.launch(r.claim("third", in(model.LabelInstanceType, "m5.large"), in(awsv1.PlacementGroupPartitionLabelKey, "3")))
	check(t, "demanded", demanded.Labels[awsv1.PlacementGroupPartitionLabelKey], "3")
	outside := &v1.NodeClaim{}
	result, err = hook.Registered(t.Context(), outside)
	must(t, err)
	check(t, "outside", result.IsZero(), true)
}

// A terminated instance is not found (spec 65/138), and one that terminates is
// reported as such.
func TestDriftOfTerminatedInstance(t *testing.T) {
	r := newRegion(t, nil)
	claim := r.claim("claim")
	m := r.launch(claim)
	must(t, r.Delete(t.Context(), claim))
	got, err := r.Get(t.Context(), m.ProviderID)
	must(t, err)
	check(t, "ending", got.Deleting, true)
	r.clock.Step(time.Minute)
	if _, err := r.Get(t.Context(), m.ProviderID); !cloud.IsNotFound(err) {
		t.Errorf("get: %v", err)
	}
	check(t, "terminations", r.aws.Calls()["TerminateInstances"], 1)
}
