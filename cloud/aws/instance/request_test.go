// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "karpenter/api/aws/v1"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/aws/template"
	"karpenter/cloud/cloudtest"
	"karpenter/model"
)

// sent launches the order and returns the request as EC2 got it.
func sent(s *stage, o *template.Want) *ec2.CreateFleetInput {
	s.t.Helper()
	if _, err := s.create(o); err != nil {
		s.t.Fatal(err)
	}
	return s.ec2.inputs[len(s.ec2.inputs)-1]
}

func overrides(in *ec2.CreateFleetInput) []string {
	var out []string
	for _, config := range in.LaunchTemplateConfigs {
		for _, o := range config.Overrides {
			out = append(out, fmt.Sprint(*config.LaunchTemplateSpecification.LaunchTemplateName, *config.LaunchTemplateSpecification.Version,
				" ", o.InstanceType, " ", *o.AvailabilityZone, " ", *o.SubnetId, " ", *o.ImageId, " ", *o.Priority))
		}
	}
	return out
}

func TestRequest(t *testing.T) {
	inBubble(t, func(t *testing.T, s *stage) {
		in := sent(s, order("claim", model.Spot))
		check(t, "type", in.Type, types.FleetTypeInstant)
		check(t, "target", *in.TargetCapacitySpecification.TotalTargetCapacity, int32(1))
		check(t, "bought", in.TargetCapacitySpecification.DefaultTargetCapacityType, types.DefaultTargetCapacityTypeSpot)
		check(t, "strategy", in.SpotOptions.AllocationStrategy, types.SpotAllocationStrategyPriceCapacityOptimized) // spec 65/72
		check(t, "overrides", overrides(in), []string{
			"template-0$Latest m5.large zone-a subnet-a ami-1 0.1",
			"template-0$Latest m5.large zone-b subnet-b ami-1 0.12",
			"template-0$Latest m5.xlarge zone-a subnet-a ami-1 0.2",
		})
		if in.OnDemandOptions != nil || in.ReservedCapacityOptions != nil || in.Context != nil { // spec 65/88: no context, none sent
			t.Errorf("%+v", in)
		}
		tags := map[string][]string{}
		for _, spec := range in.TagSpecifications {
			for _, tag := range spec.Tags {
				tags[string(spec.ResourceType)] = append(tags[string(spec.ResourceType)], *tag.Key+"="+*tag.Value)
			}
		}
		all := []string{"eks:eks-cluster-name=cluster", "karpenter.k8s.aws/ec2nodeclass=default", "karpenter.sh/nodepool=pool",
			"kubernetes.io/cluster/cluster=owned", "team=a"}
		check(t, "tags", tags, map[string][]string{
			"instance": append(slices.Clone(all), "karpenter.k8s.aws/launch-0="+shortened("uid-of-claim")), "volume": all, "fleet": all,
		})
	})
}

// The allocation strategy and the alternatives of a fleet, by capacity type.
func TestMarkets(t *testing.T) {
	reserved := func(kind, interruptible string) *cloud.InstanceType {
		o := cloudtest.Offering("zone-a", model.Reserved, 0.001)
		o.ReservationID = "cr-1"
		o.Requirements = o.Requirements.And(
			model.NewRequirement(awsv1.CapacityReservationTypeLabelKey, model.In, kind),
			model.NewRequirement(awsv1.CapacityReservationInterruptibleLabelKey, model.In, interruptible))
		return cloudtest.Type("m5.large", "2", "8Gi", o)
	}
	overlaid := func(o *template.Want) *template.Want {
		o.Claim.Annotations = map[string]string{v1.PriceOverlayAppliedAnnotationKey: "true"}
		return o
	}
	ownPrices := func(o *template.Want) *template.Want {
		o.OwnPrices = true
		return o
	}
	for name, c := range map[string]struct {
		order *template.Want
		want  string
	}{
		"own prices, on demand":     {ownPrices(order("c", model.OnDemand)), "on-demand, on demand by prioritized"},
		"own prices, spot":          {ownPrices(order("c", model.Spot)), "spot, spot by price-capacity-optimized"},
		"on demand":                 {order("c", model.OnDemand), "on-demand, on demand by lowest-price"}, // spec 65/72
		"default reservation":       {orderOf("c", model.Reserved, reserved("default", "false")), "on-demand, on demand by lowest-price"},
		"spec 65/80: block":         {orderOf("c", model.Reserved, reserved("capacity-block", "false")), "capacity-block"},
		"spec 65/81: interruptible": {orderOf("c", model.Reserved, reserved("default", "true")), "reserved-capacity, reserved [interruptible-capacity-reservation]"},
		"spec 65/87: on demand":     {overlaid(order("c", model.OnDemand)), "on-demand, on demand by prioritized"},
		"spec 65/87: spot":          {overlaid(order("c", model.Spot)), "spot, spot by capacity-optimized-prioritized"},
	} {
		inBubble(t, func(t *testing.T, s *stage) {
			in := sent(s, c.order)
			got := string(in.TargetCapacitySpecification.DefaultTargetCapacityType)
			if in.SpotOptions != nil {
				got += ", spot by " + string(in.SpotOptions.AllocationStrategy)
			}
			if in.OnDemandOptions != nil {
				got += ", on demand by " + string(in.OnDemandOptions.AllocationStrategy)
			}
			if in.ReservedCapacityOptions != nil {
				got += fmt.Sprint(", reserved ", in.ReservedCapacityOptions.ReservationTypes)
			}
			check(t, name, got, c.want)
		})
	}
}

// spec 65/88: the context goes with the launch, unless minValues were relaxed.
func TestContext(t *testing.T) {
	for relaxed, want := range map[string]*string{"": aws.String("cr-context"), "false": aws.String("cr-context"), "true": nil} {
		inBubble(t, func(t *testing.T, s *stage) {
			o := order("claim", model.OnDemand)
			o.Class.Spec.Context = aws.String("cr-context")
			if relaxed != "" {
				o.Claim.Annotations = map[string]string{v1.NodeClaimMinValuesRelaxedAnnotationKey: relaxed}
			}
			check(t, "relaxed "+relaxed, sent(s, o).Context, want)
		})
	}
}

// spec 65/77: offerings that differ in the partition only are one override.
func TestPartitionsAreOneOverride(t *testing.T) {
	inBubble(t, func(t *testing.T, s *stage) {
		var offerings []cloud.Offering
		for _, partition := range []string{"1", "2", "3"} {
			o := cloudtest.Offering("zone-a", model.OnDemand, 0.1)
			o.Requirements = o.Requirements.And(model.NewRequirement(awsv1.PlacementGroupPartitionLabelKey, model.In, partition))
			offerings = append(offerings, o)
		}
		check(t, "overrides", len(overrides(sent(s, orderOf("claim", model.OnDemand, cloudtest.Type("m5.large", "2", "8Gi", offerings...))))), 1)
	})
}

// spec 65/78: each reservation has a template, which launches into no other.
func TestReservationsHaveTemplates(t *testing.T) {
	inBubble(t, func(t *testing.T, s *stage) {
		var offerings []cloud.Offering
		for _, zone := range []string{"a", "b"} {
			o := cloudtest.Offering("zone-"+zone, model.Reserved, 0.001)
			o.ReservationID = "cr-" + zone
			offerings = append(offerings, o)
		}
		o := orderOf("claim", model.Reserved, cloudtest.Type("m5.large", "2", "8Gi", offerings...))
		check(t, "overrides", overrides(sent(s, o)), []string{
			"template-0cr-a$Latest m5.large zone-a subnet-a ami-1 0.001",
			"template-0cr-b$Latest m5.large zone-b subnet-b ami-1 0.001",
		})
		check(t, "counted", s.reserved.log, []string{"launched cr-a"})
		i, err := s.create(o)
		if err != nil || i.CapacityType != model.Reserved || i.ReservationID != "cr-a" {
			t.Errorf("%+v, %v", i, err)
		}
		s.ec2.set(i.ID, terminated)
		for range 3 { // what is gone is given back once: spec 48/87
			if _, err := s.Read(t.Context(), i.ID); !cloud.IsNotFound(err) {
				t.Errorf("read: %v", err)
			}
		}
		check(t, "counted", s.reserved.log, []string{"launched cr-a", "ended cr-a"})
	})
}

// spec 65/91: ten at once are one fleet; of three instances three claims get
// one each, the others the errors.
func TestOneFleetForMany(t *testing.T) {
	inBubble(t, func(t *testing.T, s *stage) {
		s.ec2.room = 3
		s.ec2.failures = []types.CreateFleetError{fleetFailure("UnfulfillableCapacity", "none left", "m5.large", "zone-a")}
		ids, errs := s.createAll(orders(10))
		check(t, "fleets", len(s.ec2.inputs), 1)
		check(t, "target", *s.ec2.inputs[0].TargetCapacitySpecification.TotalTargetCapacity, int32(10))
		check(t, "launched", len(distinct(ids)), 4) // with the empty one
		short := 0
		for i := range ids {
			if cloud.IsInsufficientCapacity(errs[i]) && strings.Contains(errs[i].Error(), "UnfulfillableCapacity: none left") {
				short++
			}
		}
		check(t, "refused", short, 7)
		check(t, "addresses", s.subnets.log, []string{"take map[zone-a:1100 zone-b:1100]", "landed [subnet-a subnet-a subnet-a]"})
	})
}

// spec 65/92: launches that differ are fleets of their own.
func TestDifferentLaunches(t *testing.T) {
	inBubble(t, func(t *testing.T, s *stage) {
		other := order("other", model.OnDemand)
		other.Candidates = other.Candidates[:1]
		s.createAll([]*template.Want{order("one", model.OnDemand), other})
		check(t, "fleets", len(s.ec2.inputs), 2)
	})
}

// Where the subnet picked is too small for all and there is another, there are
// several fleets, though not one for each machine.
func TestSmallSubnets(t *testing.T) {
	for free, fleets := range map[int64]int{-5: 8, 10: 1} {
		inBubble(t, func(t *testing.T, s *stage) {
			s.subnets.free = map[string]int64{"subnet-a": free, "subnet-a2": 50}
			all := orders(40)
			for _, o := range all {
				o.Class.Status.Subnets = append(o.Class.Status.Subnets, awsv1.Subnet{ID: "subnet-a2", Zone: "zone-a", ZoneID: "id-a"})
			}
			ids, _ := s.createAll(all)
			check(t, "instances", len(distinct(ids)), 40)
			check(t, "fleets", len(s.ec2.inputs), fleets)
		})
	}
}

// A fleet's tags name all of its claims; more than they can name are several
// fleets.
func TestTagsLimitFleets(t *testing.T) {
	inBubble(t, func(t *testing.T, s *stage) {
		all := orders(60)
		for i := range 30 {
			for _, o := range all {
				o.Class.Spec.Tags[fmt.Sprint("tag-", i)] = "x"
			}
		}
		all = append(all, orders(400)[60:]...)
		for _, o := range all[60:] {
			o.Class = all[0].Class
		}
		ids, _ := s.createAll(all)
		check(t, "instances", len(distinct(ids)), 400)
		for _, in := range s.ec2.inputs {
			tags := in.TagSpecifications[0].Tags
			if len(tags) > 48 || *in.TargetCapacitySpecification.TotalTargetCapacity > 13*25 {
				t.Errorf("%d tags for %d instances", len(tags), *in.TargetCapacitySpecification.TotalTargetCapacity)
			}
			for _, tag := range tags {
				if len(*tag.Value) > 256 {
					t.Errorf("tag %s has %d characters", *tag.Key, len(*tag.Value))
				}
			}
		}
		check(t, "fleets", len(s.ec2.inputs), 2)
	})
}

// Trying the same again has the same token as long as EC2 has not answered, and
// another one afterwards.
func TestClientTokens(t *testing.T) {
	inBubble(t, func(t *testing.T, s *stage) {
		o := order("claim", model.OnDemand)
		s.ec2.lose, s.ec2.room = 1, 0
		s.ec2.failures = []types.CreateFleetError{fleetFailure("RequestLimitExceeded", "slow down", "m5.large", "zone-a")}
		tokens := []string{}
		for range 60 {
			_, err := s.create(o)
			if n := len(s.ec2.inputs); n > len(tokens) {
				tokens = append(tokens, *s.ec2.inputs[n-1].ClientToken)
			}
			if len(tokens) == 3 {
				break
			}
			if err == nil {
				t.Fatal("launched")
			}
			sleep()
		}
		if len(tokens) != 3 || tokens[0] != tokens[1] || tokens[1] == tokens[2] || len(tokens[0]) > 64 {
			t.Errorf("tokens %q", tokens)
		}
	})
}
