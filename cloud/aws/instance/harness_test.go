// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	awsv1 "karpenter/api/aws/v1"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/aws/launch"
	"karpenter/cloud/aws/network"
	"karpenter/cloud/aws/shortage"
	"karpenter/cloud/aws/template"
	"karpenter/cloud/batch"
	"karpenter/cloud/cloudtest"
	"karpenter/model"
)

// stage is instances on an EC2 in memory, and claims that record them. It lives
// in a synctest bubble, so time passes only when all wait.
type stage struct {
	*Instances
	t         *testing.T
	ec2       *ec2Double
	registry  *prometheus.Registry
	templates *templates
	subnets   *subnets
	reserved  *reservations
	short     *shortage.Log
	noRole    []string // claims with an event for their users

	mu     sync.Mutex
	claims map[string]Claim
}

// inBubble plays a test in virtual time.
func inBubble(t *testing.T, play func(*testing.T, *stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &stage{t: t, ec2: newEC2(), claims: map[string]Claim{}}
		s.restart()
		play(t, s)
	})
}

// restart forgets what the process knows.
func (s *stage) restart() {
	s.t.Helper()
	s.registry, s.templates, s.subnets = prometheus.NewRegistry(), &templates{}, &subnets{}
	s.reserved, s.short = &reservations{}, &shortage.Log{}
	s.Instances = New(Config{
		EC2: s.ec2, Cluster: "cluster", Clock: clock.RealClock{}, ReservedCapacity: true,
		Metrics: NewMetrics(s.registry), Batches: batch.NewMetrics(s.registry, prometheus.DefBuckets),
		Claims: func(context.Context) ([]Claim, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			var out []Claim
			for _, c := range s.claims {
				out = append(out, c)
			}
			return out, nil
		},
		Launch: LaunchConfig{
			Templates: s.templates, Subnets: s.subnets, Reservations: s.reserved, Shortages: s.short,
			SpotRefused: func(c *v1.NodeClaim) { s.noRole = append(s.noRole, c.Name) },
		},
	})
	if err := s.Start(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

func class() *awsv1.EC2NodeClass {
	return &awsv1.EC2NodeClass{
		ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "class"},
		Spec:       awsv1.EC2NodeClassSpec{Tags: map[string]string{"team": "a"}},
		Status: awsv1.EC2NodeClassStatus{Subnets: []awsv1.Subnet{
			{ID: "subnet-a", Zone: "zone-a", ZoneID: "id-a"}, {ID: "subnet-b", Zone: "zone-b", ZoneID: "id-b"},
		}},
	}
}

// order is one for the claim, on demand or as spot, of a small and a large type.
func order(name, capacityType string) *template.Want {
	small := cloudtest.Type("m5.large", "2", "8Gi", cloudtest.Offering("zone-a", capacityType, 0.1), cloudtest.Offering("zone-b", capacityType, 0.12))
	large := cloudtest.Type("m5.xlarge", "4", "16Gi", cloudtest.Offering("zone-a", capacityType, 0.2))
	return orderOf(name, capacityType, small, large)
}

func orderOf(name, capacityType string, types ...*cloud.InstanceType) *template.Want {
	out := &template.Want{
		Claim: &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: apitypes.UID("uid-of-" + name), Labels: map[string]string{v1.NodePoolLabelKey: "pool"},
		}},
		Class: class(), CapacityType: capacityType, Tenancy: awsv1.InstanceTenancyDefault,
	}
	for _, t := range types {
		c := launch.Candidate{Type: t}
		for i := range t.Offerings {
			c.Offerings = append(c.Offerings, &t.Offerings[i])
		}
		out.Candidates = append(out.Candidates, c)
	}
	return out
}

func claimOf(o *template.Want) Claim { return Claim{UID: o.Claim.UID, Name: o.Claim.Name} }

// create is what the provider does: it looks and then launches.
func (s *stage) create(o *template.Want) (*Instance, error) {
	s.mu.Lock()
	if _, ok := s.claims[o.Claim.Name]; !ok {
		s.claims[o.Claim.Name] = claimOf(o)
	}
	s.mu.Unlock()
	i, err := s.Of(s.t.Context(), claimOf(o))
	if i != nil || err != nil {
		return i, err
	}
	return s.Launch(s.t.Context(), o)
}

// record writes the instance into the claim.
func (s *stage) record(o *template.Want, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := claimOf(o)
	c.InstanceID = id
	s.claims[o.Claim.Name] = c
}

// createAll launches at once and returns the IDs, "" for failures, which it
// returns too.
func (s *stage) createAll(orders []*template.Want) (ids []string, errs []error) {
	ids, errs = make([]string, len(orders)), make([]error, len(orders))
	var wg sync.WaitGroup
	for i, o := range orders {
		wg.Go(func() {
			one, err := s.create(o)
			if errs[i] = err; err == nil {
				ids[i] = one.ID
			}
		})
	}
	wg.Wait()
	return ids, errs
}

func orders(n int) []*template.Want {
	var out []*template.Want
	for i := range n {
		out = append(out, order(fmt.Sprintf("claim-%02d", i), model.OnDemand))
	}
	return out
}

// unclaimed returns the IDs of listed instances that no claim of the API
// answers for: they would be ended.
func (s *stage) unclaimed() []string {
	s.t.Helper()
	list, err := s.List(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, i := range list {
		known := false
		for _, c := range s.claims {
			known = known || c.InstanceID == i.ID || c.UID == s.ClaimOf(i).UID
		}
		if !known {
			out = append(out, i.ID)
		}
	}
	return out
}

// templates makes one launch template for everything, or one per reservation.
type templates struct {
	mu      sync.Mutex
	version int
	fail    error
}

func (d *templates) Ensure(_ context.Context, o *template.Want) ([]template.Template, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fail != nil {
		return nil, d.fail
	}
	ids := []string{""}
	if reserved(o) {
		ids = nil
		for _, c := range o.Candidates {
			for _, offering := range c.Offerings {
				if !slices.Contains(ids, offering.ReservationID) {
					ids = append(ids, offering.ReservationID)
				}
			}
		}
	}
	var out []template.Template
	for _, id := range ids {
		out = append(out, template.Template{Name: fmt.Sprintf("template-%d%s", d.version, id), ImageID: "ami-1", ReservationID: id, Candidates: o.Candidates})
	}
	return out, nil
}

func (d *templates) Forget([]string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.version++
}

// subnets picks the first of each zone that is not exhausted, and notes what
// happens.
type subnets struct {
	mu   sync.Mutex
	log  []string
	bad  []string
	free map[string]int64
}

func (d *subnets) Take(all []awsv1.Subnet, need map[string]int64) *network.Pick {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.log = append(d.log, fmt.Sprint("take ", need))
	out := map[string]string{}
	for _, s := range all {
		if out[s.Zone] == "" && !slices.Contains(d.bad, s.ID) {
			out[s.Zone] = s.ID
		}
	}
	return &network.Pick{Subnets: out}
}

func (d *subnets) Free(id string) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.free[id]
}

func (d *subnets) Settle(_ *network.Pick, landed ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.log = append(d.log, fmt.Sprint("landed ", landed))
}

func (d *subnets) Exhausted(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.bad = append(d.bad, id)
}

// reservations notes what happens to them.
type reservations struct {
	mu  sync.Mutex
	log []string
}

func (d *reservations) Launched(id string, _ time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.log = append(d.log, "launched "+id)
}

func (d *reservations) Ended(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.log = append(d.log, "ended "+id)
}

func (d *reservations) Exhausted(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.log = append(d.log, "exhausted "+id)
}

// fleetFailure is an error in a fleet's answer.
func fleetFailure(code, message, instanceType, zone string) types.CreateFleetError {
	subnet := "subnet-" + zone[len("zone-"):]
	return types.CreateFleetError{
		ErrorCode: &code, ErrorMessage: &message,
		LaunchTemplateAndOverrides: &types.LaunchTemplateAndOverridesResponse{Overrides: &types.FleetLaunchTemplateOverrides{
			InstanceType: types.InstanceType(instanceType), AvailabilityZone: &zone, SubnetId: &subnet,
		}},
	}
}

func reasonOf(err error) string {
	var create *cloud.CreateError
	if errors.As(err, &create) {
		return create.Reason
	}
	return ""
}

func check(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: %s", what, diff)
	}
}
