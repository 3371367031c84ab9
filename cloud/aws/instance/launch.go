// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	awsv1 "karpenter/api/aws/v1"
	karpenterv1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/aws/client"
	"karpenter/cloud/aws/launch"
	"karpenter/cloud/aws/network"
	"karpenter/cloud/aws/shortage"
	"karpenter/cloud/aws/template"
	"karpenter/cloud/batch"
)

// LaunchConfig is what launches work with.
type LaunchConfig struct {
	Templates    Templates
	Subnets      Subnets
	Reservations Reservations
	Shortages    *shortage.Log
	// SpotRefused publishes that the account cannot use spot capacity because
	// it lacks a role. Nil means that nothing is published.
	SpotRefused func(*karpenterv1.NodeClaim)
}

// Templates creates launch templates; template.Templates implements it.
type Templates interface {
	// Ensure returns the templates for an order, and makes those that are not
	// there.
	Ensure(context.Context, *template.Want) ([]template.Template, error)
	// Forget notes that templates, by name, are not there any more.
	Forget(names []string)
}

// Subnets account for free addresses; network.Subnets does.
type Subnets interface {
	// Take picks a subnet in each zone and takes the addresses needed, by zone.
	Take(subnets []awsv1.Subnet, need map[string]int64) *network.Pick
	// Settle ends the reservation of addresses: subnets without a launched
	// instance get theirs back.
	Settle(pick *network.Pick, landed ...string)
	// Free returns how many addresses are left of those that EC2 reported. It
	// is negative if more have been reserved.
	Free(id string) int64
	// Exhausted notes that a subnet has no free address.
	Exhausted(id string)
}

// Reservations counts the remaining capacity of capacity reservations;
// reservation.Counts implements it.
type Reservations interface {
	Launched(id string, at time.Time)
	Ended(id string)
	Exhausted(id string)
}

// Start takes over the launches of an earlier process; see the package's
// description. Call it when the process begins to launch. Otherwise the first
// launch does the same, and treats claims that were created in between as older
// ones.
func (s *Instances) Start(ctx context.Context) error {
	if s.launches.begun() {
		return nil
	}
	starting := s.shared.DoChan("start", func() (any, error) {
		claims, err := s.config.Claims(context.WithoutCancel(ctx))
		if err == nil {
			s.launches.begin(claims)
		}
		return nil, err
	})
	select {
	case answer := <-starting:
		if answer.Err != nil {
			return fmt.Errorf("read node claims: %w", answer.Err)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Of returns the instance that was launched for the claim before, or nil if
// there is none. It returns a cloud.CreateError while that is unknown.
func (s *Instances) Of(ctx context.Context, claim Claim) (*Instance, error) {
	if err := s.Start(ctx); err != nil {
		return nil, err
	}
	if _, open := s.launches.openFor(claim.UID); open {
		if _, err := s.List(ctx); err != nil {
			return nil, err
		}
	}
	if id := cmp.Or(s.launches.instanceOf(claim.UID), claim.InstanceID); id != "" {
		i, err := s.Get(ctx, id)
		if err == nil || !cloud.IsNotFound(err) {
			return i, err
		}
	}
	if wait, open := s.launches.openFor(claim.UID); open {
		return nil, &cloud.CreateError{
			Reason:  "LookingForInstance",
			Message: "An instance may have been launched for this NodeClaim before its answer was lost; looking for it before launching another",
			Err:     fmt.Errorf("EC2 may still show an instance that was launched for node claim %s: asking again, for %s", claim.Name, max(wait, 0).Round(time.Second)),
		}
	}
	return nil, nil
}

// ClaimOf returns the claim of an instance: the one that it was launched for,
// or one of several that may still get it. If the claim is unknown or does not
// exist, the UID is empty, and the name comes from the instance's tag, if it
// has one.
func (s *Instances) ClaimOf(i *Instance) Claim { return s.launches.claimOf(i) }

// Launch launches an instance. Call it only if Of has returned none for the
// claim, and not twice for a claim at the same time. The errors are those of
// cloud.Provider.
func (s *Instances) Launch(ctx context.Context, order *template.Want) (*Instance, error) {
	const tries = 2 // as a template may have been deleted by someone else
	var i *Instance
	var err error
	for range tries {
		var templates []template.Template
		if templates, err = s.config.Launch.Templates.Ensure(ctx, order); err != nil {
			return nil, explained(fmt.Errorf("Error getting launch template configs: %w", err))
		}
		if i, err = s.launchFrom(ctx, order, templates); !templateMissing(err) {
			break
		}
		var names []string
		for _, t := range templates {
			names = append(names, t.Name)
		}
		s.config.Launch.Templates.Forget(names)
	}
	if err != nil {
		return nil, explained(err)
	}
	return i, nil
}

// explained turns other errors into a CreateError with a reason and a message
// for users.
func explained(err error) error {
	if cloud.IsNodeClassNotReady(err) || cloud.IsInsufficientCapacity(err) || cloud.IsCreateError(err) {
		return err
	}
	reason, message := client.Reason(err.Error())
	return &cloud.CreateError{Reason: reason, Message: message, Err: err}
}

func (s *Instances) launchFrom(ctx context.Context, order *template.Want, templates []template.Template) (*Instance, error) {
	tags := launch.Tags(s.config.Cluster, order.Claim, order.Class)
	maps.DeleteFunc(tags, func(key, _ string) bool { return strings.HasPrefix(key, awsv1.LaunchTagPrefix) })
	in := request(order, templates, tags)
	if in == nil {
		return nil, errors.New("Error getting launch template configs: no capacity offerings are currently available given the constraints")
	}
	if len(order.Class.Status.Subnets) == 0 {
		return nil, &cloud.CreateError{
			Reason: "SubnetResolutionFailed", Message: "Error getting subnets",
			Err: fmt.Errorf("node class %s has no subnets in its status", order.Class.Name),
		}
	}
	return s.fleets.Do(ctx, &item{
		order: order, request: in, claim: Claim{UID: order.Claim.UID, Name: order.Claim.Name},
		key: digest(in, order.Class.UID, order.Class.Status.Subnets, order.GroupID, order.Partition),
	})
}

// item is a launch that waits to be made with others that are equal to it.
type item struct {
	order   *template.Want
	request *ec2.CreateFleetInput
	claim   Claim
	key     string
}

// launchAll makes equal launches, with as few fleets as the tags that name their
// claims allow.
func (s *Instances) launchAll(ctx context.Context, items []*item) []batch.Answer[*Instance] {
	size := mostClaims(len(items[0].request.TagSpecifications[0].Tags))
	answers := s.launchParts(ctx, slices.Collect(slices.Chunk(sorted(items), size)), 0)
	out := make([]batch.Answer[*Instance], len(items))
	for i, one := range items {
		out[i] = answers[one]
	}
	return out
}

// launchParts launches several parts of a batch at once.
func (s *Instances) launchParts(ctx context.Context, parts [][]*item, halved int) map[*item]batch.Answer[*Instance] {
	answers := make([]map[*item]batch.Answer[*Instance], len(parts))
	each(len(parts), len(parts), func(i int) { answers[i] = s.launchPart(ctx, parts[i], halved) })
	out := map[*item]batch.Answer[*Instance]{}
	for _, some := range answers {
		maps.Copy(out, some)
	}
	return out
}

// launchPart launches with one fleet, in one subnet of each zone. If a subnet
// is too small for all and there is another one, each half gets its own fleet
// and subnets.
func (s *Instances) launchPart(ctx context.Context, items []*item, halved int) map[*item]batch.Answer[*Instance] {
	const mostHalved = 3
	class := items[0].order.Class
	need := needs(items[0].order)
	for zone := range need {
		need[zone] *= int64(len(items))
	}
	pick := s.config.Launch.Subnets.Take(class.Status.Subnets, need)
	if half := len(items) / 2; half > 0 && halved < mostHalved && s.overdrawn(pick, class) {
		s.config.Launch.Subnets.Settle(pick)
		return s.launchParts(ctx, [][]*item{items[:half], items[half:]}, halved+1)
	}
	return s.launchFleet(ctx, items, pick)
}

// overdrawn reports whether a picked subnet has too few addresses, and another
// subnet in the zone has more.
func (s *Instances) overdrawn(pick *network.Pick, class *awsv1.EC2NodeClass) bool {
	return slices.ContainsFunc(class.Status.Subnets, func(other awsv1.Subnet) bool {
		picked, ok := pick.Subnets[other.Zone]
		if !ok || picked == other.ID {
			return false
		}
		free := s.config.Launch.Subnets.Free(picked)
		return free < 0 && s.config.Launch.Subnets.Free(other.ID) > free
	})
}

func sorted(items []*item) []*item {
	return slices.SortedFunc(slices.Values(items), func(a, b *item) int { return cmp.Compare(a.claim.UID, b.claim.UID) })
}

// launchFleet asks for one fleet, in the subnets that were picked.
func (s *Instances) launchFleet(ctx context.Context, items []*item, pick *network.Pick) map[*item]batch.Answer[*Instance] {
	order, claims := items[0].order, make([]Claim, len(items))
	for i := range items {
		claims[i] = items[i].claim
	}
	in := addressed(items[0].request, pick.Subnets, claims)
	attempts := s.launches.take(claims)
	in.ClientToken = aws.String(digest(in, claims, attempts))
	out, err := s.config.EC2.CreateFleet(ctx, in)
	if err != nil {
		s.config.Launch.Subnets.Settle(pick)
		if answerLost(err) {
			s.launches.lost(claims)
		} else {
			s.launches.landed(claims, nil)
		}
		return answersOf(items, nil, fmt.Errorf("create fleet: %w", err))
	}
	launched := s.launchedIn(out, order, in)
	s.config.Launch.Subnets.Settle(pick, subnetsOf(launched)...)
	s.launches.landed(claims, launched)
	s.put(launched)
	if len(launched) > len(items) {
		log.FromContext(ctx).Info("EC2 has started more instances than it was asked for; they will be ended",
			"fleet", aws.ToString(out.FleetId), "asked", len(items), "started", len(launched))
	}
	s.note(out.Errors, items, pick.Subnets)
	return answersOf(items, launched, fleetError(out))
}

// answerLost reports whether a fleet may have been made in spite of the error.
func answerLost(err error) bool {
	return client.Code(err) == "" || client.ServerFault(err) && !client.RateLimited(err)
}

// answersOf gives an instance each to the first items, the error to the others.
func answersOf(items []*item, launched []*Instance, err error) map[*item]batch.Answer[*Instance] {
	out := map[*item]batch.Answer[*Instance]{}
	for i, one := range items {
		if i < len(launched) {
			out[one] = batch.Answer[*Instance]{Value: launched[i]}
		} else {
			out[one] = batch.Answer[*Instance]{Err: err}
		}
	}
	return out
}

func subnetsOf(instances []*Instance) []string {
	var out []string
	for _, i := range instances {
		out = append(out, i.SubnetID)
	}
	return out
}

// put keeps instances that EC2 has not described.
func (s *Instances) put(launched []*Instance) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range launched {
		s.cache[i.ID] = i
	}
}

// launchedIn returns the instances in a fleet's answer, by ID.
func (s *Instances) launchedIn(out *ec2.CreateFleetOutput, order *template.Want, in *ec2.CreateFleetInput) []*Instance {
	now := s.config.Clock.Now()
	tags := map[string]string{}
	for _, spec := range in.TagSpecifications {
		if spec.ResourceType == types.ResourceTypeInstance {
			for _, tag := range spec.Tags {
				tags[*tag.Key] = *tag.Value
			}
		}
	}
	var launched []*Instance
	for _, some := range out.Instances {
		for _, id := range some.InstanceIds {
			i := &Instance{
				ID: id, Type: string(some.InstanceType), Tags: tags,
				CapacityType: order.CapacityType, Tenancy: order.Tenancy, GroupID: order.GroupID,
				Launched: now, State: types.InstanceStateNamePending,
			}
			i.placed(&some, order)
			if i.ReservationID != "" {
				s.config.Launch.Reservations.Launched(i.ReservationID, now)
			}
			launched = append(launched, i)
		}
	}
	slices.SortFunc(launched, func(a, b *Instance) int { return cmp.Compare(a.ID, b.ID) })
	return launched
}

// placed says where the instance is, by the override that EC2 chose.
func (i *Instance) placed(in *types.CreateFleetInstance, order *template.Want) {
	i.Zone, i.ZoneID, i.SubnetID = aws.ToString(in.AvailabilityZone), aws.ToString(in.AvailabilityZoneId), aws.ToString(in.SubnetId)
	if chosen := in.LaunchTemplateAndOverrides; chosen != nil && chosen.Overrides != nil {
		o := chosen.Overrides
		i.Type = cmp.Or(i.Type, string(o.InstanceType))
		i.ImageID = aws.ToString(o.ImageId)
		i.SubnetID = cmp.Or(i.SubnetID, aws.ToString(o.SubnetId))
		i.Zone = cmp.Or(i.Zone, aws.ToString(o.AvailabilityZone))
	}
	for _, subnet := range order.Class.Status.Subnets {
		if subnet.ID == i.SubnetID {
			i.Zone, i.ZoneID = cmp.Or(i.Zone, subnet.Zone), cmp.Or(i.ZoneID, subnet.ZoneID)
		}
	}
	if offering := offeringOf(order, i.Type, i.Zone); offering != nil && reserved(order) {
		i.ReservationID = offering.ReservationID
		kind, _ := offering.Requirements.Value(awsv1.CapacityReservationTypeLabelKey)
		taken, _ := offering.Requirements.Value(awsv1.CapacityReservationInterruptibleLabelKey)
		i.ReservationType, i.ReservationInterruptible = awsv1.CapacityReservationType(kind), taken == "true"
	}
}
