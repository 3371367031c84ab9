// SPDX-License-Identifier: Apache-2.0

package network_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/cockroachdb/datadriven"
	apitypes "k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/cloud/aws/network"
)

// region is an EC2 with a network, which writes down what it is asked.
type region struct {
	subnets []types.Subnet
	groups  []types.SecurityGroup
	asked   []string
	fails   error
	slow    func() // runs while it is asked
}

func (r *region) DescribeSubnets(_ context.Context, in *ec2.DescribeSubnetsInput, _ ...func(*ec2.Options)) (*ec2.DescribeSubnetsOutput, error) {
	out := &ec2.DescribeSubnetsOutput{}
	for _, s := range r.subnets {
		if matches(in.Filters, map[string]string{"subnet-id": *s.SubnetId}, s.Tags) {
			out.Subnets = append(out.Subnets, s)
		}
	}
	// One subnet a page.
	from, _ := strconv.Atoi(aws.ToString(in.NextToken))
	page := ""
	if from > 0 {
		page = fmt.Sprintf(", page %d", from)
	}
	r.asked = append(r.asked, "DescribeSubnets "+texts(in.Filters)+page)
	if from+1 < len(out.Subnets) {
		out.NextToken = aws.String(strconv.Itoa(from + 1))
	}
	out.Subnets = out.Subnets[min(from, len(out.Subnets)):min(from+1, len(out.Subnets))]
	if r.slow != nil {
		r.slow()
	}
	return out, r.fails
}

func (r *region) DescribeSecurityGroups(_ context.Context, in *ec2.DescribeSecurityGroupsInput, _ ...func(*ec2.Options)) (*ec2.DescribeSecurityGroupsOutput, error) {
	r.asked = append(r.asked, "DescribeSecurityGroups "+texts(in.Filters))
	out := &ec2.DescribeSecurityGroupsOutput{}
	for _, g := range r.groups {
		if matches(in.Filters, map[string]string{"group-id": *g.GroupId, "group-name": *g.GroupName}, g.Tags) {
			out.SecurityGroups = append(out.SecurityGroups, g)
		}
	}
	return out, r.fails
}

func texts(filters []types.Filter) string {
	var out []string
	for _, f := range filters {
		out = append(out, *f.Name+"="+strings.Join(f.Values, "|"))
	}
	return strings.Join(out, " ")
}

// matches reports whether all filters hold.
func matches(filters []types.Filter, fields map[string]string, tags []types.Tag) bool {
	all := maps.Clone(fields)
	for _, tag := range tags {
		all["tag:"+*tag.Key] = *tag.Value
	}
	for _, f := range filters {
		if *f.Name == "tag-key" {
			if _, ok := all["tag:"+f.Values[0]]; !ok {
				return false
			}
			continue
		}
		if value, ok := all[*f.Name]; !ok || !slices.Contains(f.Values, value) {
			return false
		}
	}
	return true
}

func tags(pairs string) []types.Tag {
	var out []types.Tag
	for pair := range strings.FieldsSeq(strings.ReplaceAll(pairs, ",", " ")) {
		key, value, _ := strings.Cut(pair, "=")
		out = append(out, types.Tag{Key: &key, Value: &value})
	}
	return out
}

// TestSelect: what classes select of a network, and the questions that takes.
// A line of "network" is a subnet with zone and free addresses, or a security
// group with its name, and tags.
func TestSelect(t *testing.T) {
	r := &region{}
	datadriven.RunTest(t, "testdata/select", func(t *testing.T, d *datadriven.TestData) string {
		if d.Cmd == "network" {
			r.read(d.Input)
			return ""
		}
		class := &awsv1.EC2NodeClass{}
		if err := yaml.UnmarshalStrict([]byte(d.Input), &class.Spec); err != nil {
			d.Fatalf(t, "%v", err)
		}
		clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
		r.asked = nil
		subnets, err := network.NewSubnets(r, clock, time.Minute).Of(t.Context(), class)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		groups, err := network.NewSecurityGroups(r, clock, time.Minute).Of(t.Context(), class)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		var out strings.Builder
		for _, line := range r.asked {
			fmt.Fprintf(&out, "%s\n", line)
		}
		for _, s := range subnets {
			fmt.Fprintf(&out, "-> %s %s %s\n", s.ID, s.Zone, s.ZoneID)
		}
		for _, g := range groups {
			fmt.Fprintf(&out, "-> %s %s\n", g.ID, g.Name)
		}
		return out.String()
	})
}

func (r *region) read(text string) {
	r.subnets, r.groups = nil, nil
	for line := range strings.Lines(text) {
		words := append(strings.Fields(line), "", "")
		if strings.HasPrefix(words[0], "sg-") {
			r.groups = append(r.groups, types.SecurityGroup{GroupId: &words[0], GroupName: &words[1], Tags: tags(words[2])})
			continue
		}
		free, _ := strconv.Atoi(words[2])
		r.subnets = append(r.subnets, types.Subnet{
			SubnetId: &words[0], AvailabilityZone: &words[1], AvailabilityZoneId: aws.String("id-of-" + words[1]),
			AvailableIpAddressCount: aws.Int32(int32(free)), Tags: tags(words[3]),
		})
	}
}

// fixture is a class with subnets a1 and a2 in zone a, b1 in zone b.
type fixture struct {
	region  *region
	clock   *clocktesting.FakePassiveClock
	subnets *network.Subnets
	class   *awsv1.EC2NodeClass
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{region: &region{}, clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0)), class: &awsv1.EC2NodeClass{}}
	f.region.read("subnet-a1 a 100 x=y\nsubnet-a2 a 90 x=y\nsubnet-b1 b 50 x=y")
	f.subnets = network.NewSubnets(f.region, f.clock, time.Minute)
	f.class.UID, f.class.Generation = apitypes.UID("u"), 1
	f.class.Spec.SubnetSelectorTerms = []awsv1.SubnetSelectorTerm{{Tags: map[string]string{"x": "y"}}}
	f.refresh(t)
	return f
}

func (f *fixture) refresh(t *testing.T) {
	t.Helper()
	found, err := f.subnets.Of(t.Context(), f.class)
	if err != nil {
		t.Fatal(err)
	}
	f.class.Status.Subnets = found
}

func (f *fixture) after(d time.Duration) { f.clock.SetTime(f.clock.Now().Add(d)) }

func (f *fixture) take(a, b int64) *network.Pick {
	return f.subnets.Take(f.class.Status.Subnets, map[string]int64{"a": a, "b": b})
}

func (f *fixture) want(t *testing.T, when string, a1, a2, b1 int64) {
	t.Helper()
	for id, n := range map[string]int64{"subnet-a1": a1, "subnet-a2": a2, "subnet-b1": b1} {
		if got := f.subnets.Free(id); got != n {
			t.Errorf("%s: %s has %d free, want %d", when, id, got, n)
		}
	}
}

// TestAccount covers spec 65 §8.4.
func TestAccount(t *testing.T) {
	f := newFixture(t)
	first := f.take(20, 0)
	if first.Subnets["a"] != "subnet-a1" || first.Subnets["b"] != "subnet-b1" {
		t.Errorf("first launch in %v", first.Subnets)
	}
	f.want(t, "one launch under way", 80, 90, 50)
	second := f.take(20, 10)
	if second.Subnets["a"] != "subnet-a2" {
		t.Errorf("second launch in %v, though a2 has more by now", second.Subnets)
	}
	f.subnets.Settle(second, "subnet-b1")
	f.subnets.Settle(second)
	f.want(t, "the second landed in zone b", 80, 90, 40)
	f.subnets.Settle(first)
	f.want(t, "the first failed", 100, 90, 40)

	f.after(time.Minute)
	third := f.take(20, 0)
	f.after(time.Second)
	f.refresh(t)
	f.want(t, "EC2 was asked while the third was under way", 80, 90, 50)
	f.subnets.Settle(third, "subnet-a1")
	f.after(time.Minute)
	f.refresh(t)
	f.want(t, "EC2 was asked when all were over", 100, 90, 50)

	f.take(60, 0)
	f.after(6 * time.Minute)
	f.want(t, "EC2's word is old", -60, 0, 0)
	f.refresh(t)
	f.want(t, "a launch that never ended is forgotten", 100, 90, 50)
}

// TestCountIsAsOldAsItsQuestion: a launch that is over while EC2 answers may
// not be in the answer.
func TestCountIsAsOldAsItsQuestion(t *testing.T) {
	f := newFixture(t)
	f.after(time.Minute)
	f.region.slow = func() {
		f.region.slow = nil
		pick := f.take(20, 0)
		f.after(time.Second)
		f.subnets.Settle(pick, "subnet-a1")
		f.subnets.Exhausted("subnet-b1")
	}
	f.refresh(t)
	if a, b := f.subnets.Free("subnet-a1"), f.subnets.Free("subnet-b1"); a != 80 || b >= 0 {
		t.Errorf("free in a1 %d, want 80; in b1 %d, want none", a, b)
	}
}

// TestExhausted covers spec 65/63: the next launch goes to the other subnet at
// once, even if launches under way may need more of it than there is.
func TestExhausted(t *testing.T) {
	f := newFixture(t)
	f.take(0, 60)
	pick := f.take(200, 0)
	f.subnets.Exhausted("subnet-a2")
	f.subnets.Settle(pick, "subnet-a2")
	if got := f.take(200, 0).Subnets["a"]; got != "subnet-a1" {
		t.Errorf("launch in %s, which has no free address", got)
	}
	if got := f.take(200, 0).Subnets["a"]; got != "subnet-a1" {
		t.Errorf("launch in %s, which has no free address", got)
	}
	f.after(time.Minute)
	f.refresh(t)
	if got := f.take(1, 0).Subnets["a"]; got != "subnet-a2" {
		t.Errorf("launch in %s, though a2 has addresses again", got)
	}
}

// TestNetworkRefreshInterval: a new spec is asked about at once, an old one after the
// refresh interval; failures are returned and not cached.
func TestNetworkRefreshInterval(t *testing.T) {
	f := newFixture(t)
	groups := network.NewSecurityGroups(f.region, f.clock, time.Minute)
	f.class.Spec.SecurityGroupSelectorTerms = []awsv1.SecurityGroupSelectorTerm{{ID: "sg-1"}}
	count := func() int {
		f.region.asked = nil
		_, subnets := f.subnets.Of(t.Context(), f.class)
		if _, err := groups.Of(t.Context(), f.class); !errors.Is(err, f.region.fails) || f.region.asked != nil && !errors.Is(subnets, f.region.fails) {
			t.Errorf("answers %v and %v of an EC2 with %v", err, subnets, f.region.fails)
		}
		return len(f.region.asked)
	}
	if got := count(); got != 1 {
		t.Errorf("%d questions, want only that for security groups", got)
	}
	if got := count(); got != 0 {
		t.Errorf("%d questions about what is known", got)
	}
	f.class.Generation = 2
	if got := count(); got != 4 {
		t.Errorf("%d questions about a new spec, want three pages of subnets, one of groups", got)
	}
	f.after(time.Minute)
	f.region.fails = errors.New("down")
	if got := count(); got != 2 {
		t.Errorf("%d questions after a minute", got)
	}
	f.region.fails = nil
	if got := count(); got != 4 {
		t.Errorf("%d questions after a failure", got)
	}
}

// TestPublicZones: nodes have public addresses by default in zones where all subnets
// of the class assign them. EC2 is asked about subnets that are not known yet.
func TestPublicZones(t *testing.T) {
	subnet := func(id, zone string, public bool) types.Subnet {
		return types.Subnet{SubnetId: aws.String(id), AvailabilityZone: aws.String(zone), MapPublicIpOnLaunch: aws.Bool(public)}
	}
	r := &region{subnets: []types.Subnet{subnet("a1", "a", true), subnet("a2", "a", true), subnet("a3", "a", false), subnet("b1", "b", true), subnet("c1", "c", false)}}
	s := network.NewSubnets(r, clocktesting.NewFakePassiveClock(time.Now()), time.Minute)
	class := func(ids ...string) *awsv1.EC2NodeClass {
		out := &awsv1.EC2NodeClass{}
		out.UID = apitypes.UID(strings.Join(ids, ","))
		for _, id := range ids {
			out.Spec.SubnetSelectorTerms = append(out.Spec.SubnetSelectorTerms, awsv1.SubnetSelectorTerm{ID: id})
			out.Status.Subnets = append(out.Status.Subnets, awsv1.Subnet{ID: id, Zone: id[:1]})
		}
		return out
	}
	for ids, want := range map[string][]string{
		"a1 a2": {"a"}, "a1 a3": nil, "a3 a1": nil, "a1 b1 c1": {"a", "b"}, "c1": nil, "b1 a1 a2 a3": {"b"},
	} {
		if got := s.PublicZones(t.Context(), class(strings.Fields(ids)...)); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", ids, got, want)
		}
	}
	if got := s.PublicZones(t.Context(), &awsv1.EC2NodeClass{}); got != nil {
		t.Errorf("without subnets: %v", got)
	}
	r.fails = errors.New("down")
	if got := s.PublicZones(t.Context(), class("a1", "d1")); !slices.Equal(got, []string{"a"}) {
		t.Errorf("%v while EC2 cannot say what d1 is, want what is known", got)
	}
}
