// SPDX-License-Identifier: Apache-2.0

package catalogue_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	pricingtypes "github.com/aws/aws-sdk-go-v2/service/pricing/types"
	"github.com/prometheus/client_golang/prometheus"
	clocktesting "k8s.io/utils/clock/testing"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/cloud"
	"karpenter/cloud/aws/catalogue"
	"karpenter/cloud/aws/instancetype"
	"karpenter/cloud/aws/shortage"
	facts "karpenter/cloud/ec2"
)

// region is an EC2 and a price list. Its fields are changed between calls only.
type region struct {
	types   []types.InstanceTypeInfo
	sold    map[string][]string          // type → zones
	spot    map[string]map[string]string // type → zone → dollars
	prices  map[string]string            // type → dollars on demand
	metal   []string                     // types that are
	fails   map[string]error             // call → error, of its last page
	mu      sync.Mutex
	asked   map[string]int // call → pages
	filters []string       // of the price list's questions
}

// page returns a part of what there is, and the token of the next.
func page[T any](r *region, call string, all []T, token *string, size int32) ([]T, *string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked[call]++
	from := 0
	if token != nil {
		if _, err := fmt.Sscan(*token, &from); err != nil {
			return nil, nil, err
		}
	}
	to := min(len(all), from+int(size))
	if to < len(all) {
		return all[from:to], aws.String(fmt.Sprint(to)), nil
	}
	return all[from:to], nil, r.fails[call]
}

func (r *region) DescribeInstanceTypes(_ context.Context, in *ec2.DescribeInstanceTypesInput, _ ...func(*ec2.Options)) (*ec2.DescribeInstanceTypesOutput, error) {
	found, next, err := page(r, "DescribeInstanceTypes", r.types, in.NextToken, *in.MaxResults)
	return &ec2.DescribeInstanceTypesOutput{InstanceTypes: found, NextToken: next}, err
}

func (r *region) DescribeInstanceTypeOfferings(_ context.Context, in *ec2.DescribeInstanceTypeOfferingsInput, _ ...func(*ec2.Options)) (*ec2.DescribeInstanceTypeOfferingsOutput, error) {
	var all []types.InstanceTypeOffering
	for name, zones := range r.sold {
		for _, zone := range zones {
			all = append(all, types.InstanceTypeOffering{InstanceType: types.InstanceType(name), Location: aws.String(zone), LocationType: in.LocationType})
		}
	}
	slices.SortFunc(all, func(a, b types.InstanceTypeOffering) int {
		return strings.Compare(string(a.InstanceType)+*a.Location, string(b.InstanceType)+*b.Location)
	})
	found, next, err := page(r, "DescribeInstanceTypeOfferings", all, in.NextToken, *in.MaxResults)
	return &ec2.DescribeInstanceTypeOfferingsOutput{InstanceTypeOfferings: found, NextToken: next}, err
}

func (r *region) DescribeSpotPriceHistory(_ context.Context, in *ec2.DescribeSpotPriceHistoryInput, _ ...func(*ec2.Options)) (*ec2.DescribeSpotPriceHistoryOutput, error) {
	var all []types.SpotPrice
	for name, zones := range r.spot {
		for zone, price := range zones {
			all = append(all, types.SpotPrice{InstanceType: types.InstanceType(name), AvailabilityZone: aws.String(zone), SpotPrice: aws.String(price), Timestamp: in.StartTime})
		}
	}
	slices.SortFunc(all, func(a, b types.SpotPrice) int {
		return strings.Compare(string(a.InstanceType)+*a.AvailabilityZone, string(b.InstanceType)+*b.AvailabilityZone)
	})
	found, next, err := page(r, "DescribeSpotPriceHistory", all, in.NextToken, *in.MaxResults)
	return &ec2.DescribeSpotPriceHistoryOutput{SpotPriceHistory: found, NextToken: next}, err
}

func (r *region) GetProducts(_ context.Context, in *pricing.GetProductsInput, _ ...func(*pricing.Options)) (*pricing.GetProductsOutput, error) {
	var text []string
	metal := false
	if !slices.ContainsFunc(in.Filters, func(f pricingtypes.Filter) bool { return strings.HasPrefix(*f.Value, "Compute Instance") }) {
		_, _, err := page(r, "GetProducts", []string(nil), in.NextToken, *in.MaxResults) // volumes and addresses are not in this list
		return &pricing.GetProductsOutput{}, err
	}
	for _, f := range in.Filters {
		text = append(text, *f.Field+"="+*f.Value)
		metal = metal || *f.Value == "Dedicated"
	}
	if in.NextToken == nil {
		r.mu.Lock()
		r.filters = append(r.filters, strings.Join(text, " "))
		r.mu.Unlock()
	}
	var all []string
	for name, price := range r.prices {
		if slices.Contains(r.metal, name) == metal {
			all = append(all, fmt.Sprintf(`{"product":{"attributes":{"instanceType":%q}},"terms":{"OnDemand":{"A.B":{"priceDimensions":{"A.B.C":{"pricePerUnit":{"USD":%q}}}}}}}`, name, price))
		}
	}
	slices.Sort(all)
	found, next, err := page(r, "GetProducts", all, in.NextToken, *in.MaxResults)
	return &pricing.GetProductsOutput{PriceList: found, NextToken: next}, err
}

func zones() []string { return []string{"us-east-1a", "us-east-1b", "us-east-1c"} }

// newRegion offers types of the record in three zones; without names all there
// are. Spot has no prices.
func newRegion(t testing.TB, names ...string) *region {
	t.Helper()
	descriptions, err := facts.Descriptions()
	if err != nil {
		t.Fatal(err)
	}
	r := &region{sold: map[string][]string{}, spot: map[string]map[string]string{}, prices: map[string]string{}, fails: map[string]error{}, asked: map[string]int{}}
	for i := range descriptions {
		d := &descriptions[i]
		if len(names) > 0 && !slices.Contains(names, d.InstanceType) {
			continue
		}
		r.types = append(r.types, answer(t, d))
		r.sold[d.InstanceType] = zones()
		if d.BareMetal {
			r.metal = append(r.metal, d.InstanceType)
		}
	}
	return r
}

// answer is the type in EC2's own words: the record has the same names.
func answer(t testing.TB, d *facts.Description) types.InstanceTypeInfo {
	t.Helper()
	text, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	var out types.InstanceTypeInfo
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// world is a catalogue and what it depends on.
type world struct {
	*catalogue.Catalogue
	region    *region
	clock     *clocktesting.FakePassiveClock
	shortages *shortage.Log
	memory    *instancetype.Memory
	shifted   map[string]bool  // zone IDs
	left      map[string]int64 // reservations
	group     *instancetype.PlacementGroup
	noGroup   error
	metrics   *prometheus.Registry
}

func (w *world) Shifted(zoneID string) bool { return w.shifted[zoneID] }

// newWorld returns a catalogue that has asked EC2 for types, and no one for
// prices.
func newWorld(t testing.TB, r *region, change ...func(*catalogue.Config)) *world {
	t.Helper()
	w := &world{
		region: r, clock: clocktesting.NewFakePassiveClock(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)), shortages: &shortage.Log{},
		memory: &instancetype.Memory{}, shifted: map[string]bool{}, left: map[string]int64{}, metrics: prometheus.NewRegistry(),
	}
	config := catalogue.Config{
		EC2: r, Pricing: r, Cluster: instancetype.Cluster{Region: "us-east-1", MemoryOverhead: 0.075, GPUDevices: true}, Clock: w.clock, Metrics: catalogue.NewMetrics(w.metrics),
		Shortages: w.shortages, Memory: w.memory, Shifts: w, Left: func(id string) int64 { return w.left[id] },
		Group: func(context.Context, *awsv1.EC2NodeClass) (*instancetype.PlacementGroup, error) {
			return w.group, w.noGroup
		},
	}
	for _, c := range change {
		c(&config)
	}
	var err error
	if w.Catalogue, err = catalogue.New(config); err != nil {
		t.Fatal(err)
	}
	if err := w.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w
}

// later lets time pass.
func (w *world) later(d time.Duration) { w.clock.SetTime(w.clock.Now().Add(d)) }

// plain is a class with subnets in zones a and b, two of them in a.
func plain() *awsv1.EC2NodeClass {
	c := &awsv1.EC2NodeClass{Spec: awsv1.EC2NodeClassSpec{AMISelectorTerms: []awsv1.AMISelectorTerm{{Alias: "al2023@latest"}}}}
	c.Name, c.UID = "default", "uid"
	c.Status.Subnets = []awsv1.Subnet{
		{ID: "subnet-1", Zone: "us-east-1a", ZoneID: "use1-az1"}, {ID: "subnet-2", Zone: "us-east-1b", ZoneID: "use1-az2"},
		{ID: "subnet-3", Zone: "us-east-1a", ZoneID: "use1-az1"},
	}
	c.Status.AMIs = []awsv1.AMI{{ID: "ami-1"}}
	return c
}

func (w *world) types(t testing.TB, class *awsv1.EC2NodeClass) map[string]*cloud.InstanceType {
	t.Helper()
	list, err := w.Types(t.Context(), class)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*cloud.InstanceType{}
	for _, it := range list {
		out[it.Name] = it
	}
	return out
}

// available prints the available offerings of a type, as "a od 0.096".
func available(it *cloud.InstanceType) string {
	var out []string
	for i := range it.Offerings {
		if o := &it.Offerings[i]; o.Available {
			text := strings.TrimPrefix(o.Zone(), "us-east-1") + " " + map[string]string{"on-demand": "od", "spot": "spot", "reserved": "reserved"}[o.CapacityType()]
			if o.ReservationID != "" {
				out = append(out, fmt.Sprintf("%s %s×%d", text, o.ReservationID, o.ReservationCapacity))
				continue
			}
			out = append(out, fmt.Sprintf("%s %v", text, o.Price.Dollars()))
		}
	}
	return strings.Join(out, ", ")
}

// placement is one of three placement groups.
func placement(i int) *instancetype.PlacementGroup {
	return []*instancetype.PlacementGroup{
		{ID: "pg-1", Strategy: "cluster"}, {ID: "pg-1", Strategy: "partition", Partitions: 2}, {ID: "pg-2", Strategy: "spread"},
	}[i]
}
