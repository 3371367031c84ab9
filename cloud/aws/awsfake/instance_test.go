// SPDX-License-Identifier: Apache-2.0

package awsfake

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"
)

// state returns an instance's state as EC2 tells, or the code of its rejection.
func (l *lab) state(id string) string {
	l.Helper()
	out, err := l.EC2.DescribeInstances(l.Context(), &ec2.DescribeInstancesInput{InstanceIds: []string{id}})
	if err != nil {
		return err.Error()[strings.LastIndex(err.Error(), "api error ")+10:]
	}
	return string(out.Reservations[0].Instances[0].State.Name)
}

func (l *lab) launch(capacityType string, overrides ...types.FleetLaunchTemplateOverridesRequest) string {
	l.Helper()
	out, err := l.EC2.CreateFleet(l.Context(), l.request(capacityType, 1, overrides...))
	l.must(err)
	if len(out.Instances) == 0 {
		l.Fatalf("nothing launched: %v", bought(out))
	}
	return out.Instances[0].InstanceIds[0]
}

func (l *lab) terminate(ids ...string) error {
	_, err := l.EC2.TerminateInstances(l.Context(), &ec2.TerminateInstancesInput{InstanceIds: ids})
	return err
}

func TestLifeOfAnInstance(t *testing.T) {
	l := newLab(t, func(c *Config) {
		c.BootDelay, c.ShutdownDelay, c.VisibleAfter = 40*time.Second, 30*time.Second, 5*time.Second
	})
	id := l.launch(OnDemand, l.override("m5.large", 0))
	unknown := "InvalidInstanceID.NotFound: The instance ID '" + id + "' does not exist"
	step := func(d time.Duration, want string) {
		t.Helper()
		l.clock.Step(d)
		if got := l.state(id); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	step(0, unknown)
	_, err := l.EC2.CreateTags(t.Context(), &ec2.CreateTagsInput{Resources: []string{id}, Tags: tags("Name", "n")})
	l.refused(err, "InvalidInstanceID.NotFound")
	if n := len(l.Instances()); n != 1 {
		t.Errorf("%d instances", n)
	}
	step(5*time.Second, "pending")
	step(34*time.Second, "pending")
	step(time.Second, "running")
	l.must(l.terminate(id))
	step(0, "shutting-down")
	l.must(l.terminate(id)) // again is fine
	step(30*time.Second, "terminated")
	l.must(l.terminate(id))
	step(59*time.Minute, "terminated")
	step(time.Minute, unknown)
	l.refused(l.terminate(id), "InvalidInstanceID.NotFound")
}

func TestInstanceThatEndsWhileBooting(t *testing.T) {
	l := newLab(t, func(c *Config) { c.BootDelay, c.ShutdownDelay = 40*time.Second, 30*time.Second })
	id := l.launch(OnDemand, l.override("m5.large", 0))
	l.must(l.terminate(id))
	l.clock.Step(35 * time.Second)
	if got := l.state(id); got != "terminated" {
		t.Error(got)
	}
	l.clock.Step(10 * time.Second)
	if got := l.state(id); got != "terminated" {
		t.Error(got)
	}
}

// A call about several instances does all or nothing.
func TestTerminateInstancesIsAllOrNothing(t *testing.T) {
	l := newLab(t, nil)
	id := l.launch(OnDemand, l.override("m5.large", 0))
	err := l.terminate(id, "i-0123456789abcdef0", "i-0123456789abcdef1")
	l.refused(err, "InvalidInstanceID.NotFound")
	if !strings.Contains(err.Error(), "The instance IDs 'i-0123456789abcdef0, i-0123456789abcdef1' do not exist") || l.state(id) != "running" {
		t.Errorf("%v, %s", err, l.state(id))
	}
	l.refused(l.terminate("x"), "InvalidInstanceID.Malformed")
	l.refused(l.terminate(), "MissingParameter")
	_, err = l.EC2.TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: []string{id}, DryRun: aws.Bool(true)})
	l.refused(err, "DryRunOperation")
}

func TestInstancesByFilter(t *testing.T) {
	l := newLab(t, nil)
	for range 7 {
		l.launch(OnDemand, l.override("m5.large", 0))
	}
	spot := l.launch(Spot, l.override("m5.xlarge", 1))
	_, err := l.EC2.CreateTags(t.Context(), &ec2.CreateTagsInput{Resources: []string{spot}, Tags: tags("karpenter.sh/nodeclaim", "claim-1")})
	l.must(err)
	l.must(l.terminate(l.launch(OnDemand, l.override("m5.large", 0))))
	for name, c := range map[string]struct {
		filters []types.Filter
		want    int
	}{
		"tag-key":            {filters("tag-key", "karpenter.sh/nodepool"), 9},
		"tag-key, wildcard":  {filters("tag-key", "karpenter.sh/*"), 9},
		"tag":                {filters("tag:karpenter.sh/nodeclaim", "claim-1"), 1},
		"tag, wildcards":     {filters("tag:karpenter.sh/nodeclaim", "cl?im-*"), 1},
		"tag, other value":   {filters("tag:karpenter.sh/nodeclaim", "claim"), 0},
		"state":              {filters("instance-state-name", "running"), 8},
		"two filters":        {filters("instance-state-name", "running", "instance-type", "m5.xlarge"), 1},
		"lifecycle":          {filters("instance-lifecycle", "spot"), 1},
		"zone":               {filters("availability-zone", "us-west-2a"), 8},
		"one of many values": {[]types.Filter{{Name: aws.String("instance-type"), Values: []string{"c5.large", "m5.xlarge"}}}, 1},
		"fleet":              {filters("tag:aws:ec2:fleet-id", "fleet-*"), 9},
	} {
		out, err := l.EC2.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{Filters: c.filters})
		l.must(err)
		if len(out.Reservations) != c.want {
			t.Errorf("%s: %d instances, want %d", name, len(out.Reservations), c.want)
		}
	}
	in := &ec2.DescribeInstancesInput{MaxResults: aws.Int32(5)}
	var sizes []int
	for {
		out, err := l.EC2.DescribeInstances(t.Context(), in)
		l.must(err)
		sizes = append(sizes, len(out.Reservations))
		if in.NextToken = out.NextToken; in.NextToken == nil {
			break
		}
	}
	if diff := cmp.Diff([]int{5, 4}, sizes); diff != "" {
		t.Error(diff)
	}
	_, err = l.EC2.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{MaxResults: aws.Int32(5), InstanceIds: []string{spot}})
	l.refused(err, "InvalidParameterCombination")
}

func TestCreateTags(t *testing.T) {
	l := newLab(t, nil)
	id := l.launch(OnDemand, l.override("m5.large", 0))
	tag := func(resource string, list []types.Tag) error {
		_, err := l.EC2.CreateTags(t.Context(), &ec2.CreateTagsInput{Resources: []string{resource}, Tags: list})
		return err
	}
	l.must(tag(id, tags("Name", "a", "karpenter.sh/nodepool", "other")))
	if m := l.Instances()[0]; value(m.Tags, "Name") != "a" || value(m.Tags, "karpenter.sh/nodepool") != "other" {
		t.Errorf("%v", m.Tags)
	}
	l.refused(tag(id, tags("aws:x", "a")), "InvalidParameterValue")
	l.refused(tag("i-0123456789abcdef0", tags("a", "b")), "InvalidInstanceID.NotFound")
	l.refused(tag("x-1", tags("a", "b")), "InvalidID")
	var many []types.Tag
	for i := range 51 {
		many = append(many, tags(strings.Repeat("k", i+1), "v")...)
	}
	l.refused(tag(id, many), "TagLimitExceeded")
	l.must(tag(*l.private[0].SubnetId, tags("zone", "first")))
	out, err := l.EC2.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{Filters: filters("tag:zone", "first")})
	l.must(err)
	if len(out.Subnets) != 1 {
		t.Errorf("%d subnets", len(out.Subnets))
	}
}

func TestInstanceStatus(t *testing.T) {
	l := newLab(t, func(c *Config) { c.BootDelay = time.Minute })
	sick, well := l.launch(OnDemand, l.override("m5.large", 0)), l.launch(OnDemand, l.override("m5.large", 0))
	status := func(f []types.Filter) []string {
		out, err := l.EC2.DescribeInstanceStatus(t.Context(), &ec2.DescribeInstanceStatusInput{Filters: f})
		l.must(err)
		ids := []string{}
		for _, s := range out.InstanceStatuses {
			ids = append(ids, *s.InstanceId)
		}
		return ids
	}
	expect := func(want []string, f ...string) {
		t.Helper()
		if diff := cmp.Diff(want, status(filters(f...))); diff != "" {
			t.Error(diff)
		}
	}
	expect([]string{}) // pending ones have none
	l.clock.Step(time.Minute)
	expect([]string{sick, well})
	expect([]string{}, "instance-status.status", "impaired")
	l.must(l.Impair(sick, InstanceCheck))
	expect([]string{sick}, "instance-status.status", "impaired")
	expect([]string{}, "system-status.status", "impaired")
	l.must(l.Impair(well, SystemCheck))
	expect([]string{well}, "system-status.status", "impaired")
	out, err := l.EC2.DescribeInstanceStatus(t.Context(), &ec2.DescribeInstanceStatusInput{InstanceIds: []string{well}})
	l.must(err)
	if d := out.InstanceStatuses[0].SystemStatus.Details[0]; d.Status != types.StatusTypeFailed || !d.ImpairedSince.Equal(l.clock.Now()) {
		t.Errorf("%+v", d)
	}
	l.must(l.Heal(well))
	expect([]string{}, "system-status.status", "impaired")
	l.must(l.Schedule(types.EventCodeInstanceRetirement, l.clock.Now().Add(time.Hour), well))
	expect([]string{well}, "event.code", "instance-retirement")
	if err := l.Impair("i-0", SystemCheck); err == nil {
		t.Error("an unknown instance fell sick")
	}
}
