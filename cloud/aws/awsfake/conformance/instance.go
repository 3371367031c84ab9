// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

func instances() []check {
	return []check{
		{"instances are listed by tags and state, in pages", listed},
		{"tags are put on instances", tagged},
		{"tags of what is not there", func(s *suite) {
			_, err := s.EC2.CreateTags(s.Context(), &ec2.CreateTagsInput{Resources: []string{"i-0123456789abcdef0"}, Tags: tags("Name", "n")})
			s.refused(err, "InvalidInstanceID.NotFound")
		}},
		{"instances end, more than once", ended},
		{"of instances to be ended all must be there", allOrNothing},
		{"instances that are well are not impaired", func(s *suite) {
			s.template("well", nil)
			id := s.launch(s.fleet("well", types.DefaultTargetCapacityTypeOnDemand, 1))[0]
			for _, name := range []string{"instance-status.status", "system-status.status"} {
				out, err := s.EC2.DescribeInstanceStatus(s.Context(), &ec2.DescribeInstanceStatusInput{Filters: filters(name, "impaired")})
				s.must(err)
				if slices.ContainsFunc(out.InstanceStatuses, func(i types.InstanceStatus) bool { return *i.InstanceId == id }) {
					s.Errorf("%s: the instance is", name)
				}
			}
		}},
	}
}

func listed(s *suite) {
	s.template("listed", nil)
	want := s.launch(s.fleet("listed", types.DefaultTargetCapacityTypeOnDemand, 7))
	in := &ec2.DescribeInstancesInput{MaxResults: aws.Int32(5), Filters: append(filters("tag-key", "karpenter.sh/nodepool", "tag:conformance", "listed"),
		types.Filter{Name: aws.String("instance-state-name"), Values: []string{"pending", "running", "stopping", "stopped", "shutting-down"}})}
	var got []string
	for {
		out, err := s.EC2.DescribeInstances(s.Context(), in)
		s.must(err)
		for _, r := range out.Reservations {
			for _, i := range r.Instances {
				got = append(got, *i.InstanceId)
			}
		}
		if in.NextToken = out.NextToken; aws.ToString(in.NextToken) == "" {
			break
		}
	}
	s.same("all pages", got, want)
}

func tagged(s *suite) {
	s.template("tagged", nil)
	id := s.launch(s.fleet("tagged", types.DefaultTargetCapacityTypeOnDemand, 1))[0]
	put := func(list []types.Tag) {
		_, err := s.EC2.CreateTags(s.Context(), &ec2.CreateTagsInput{Resources: []string{id}, Tags: list})
		s.must(err)
	}
	put(tags("Name", "node-1", "karpenter.sh/nodeclaim", "claim-1"))
	put(tags("Name", "node-2"))
	list := s.describe(id)[0].Tags
	if valueOf(list, "Name") != "node-2" || valueOf(list, "karpenter.sh/nodeclaim") != "claim-1" || valueOf(list, "karpenter.sh/nodepool") != "default" {
		s.Errorf("%v", list)
	}
}

func ended(s *suite) {
	s.template("ended", nil)
	id := s.launch(s.fleet("ended", types.DefaultTargetCapacityTypeOnDemand, 1))[0]
	gone := []types.InstanceStateName{types.InstanceStateNameShuttingDown, types.InstanceStateNameTerminated}
	for range 2 {
		out, err := s.EC2.TerminateInstances(s.Context(), &ec2.TerminateInstancesInput{InstanceIds: []string{id}})
		s.must(err)
		if c := out.TerminatingInstances; len(c) != 1 || *c[0].InstanceId != id || !slices.Contains(gone, c[0].CurrentState.Name) {
			s.Errorf("%+v", out.TerminatingInstances)
		}
		if state := s.describe(id)[0].State.Name; !slices.Contains(gone, state) {
			s.Errorf("state %s", state)
		}
	}
	out, err := s.EC2.DescribeInstances(s.Context(), &ec2.DescribeInstancesInput{InstanceIds: []string{id}, Filters: filters("instance-state-name", "running")})
	s.must(err)
	if len(out.Reservations) != 0 {
		s.Error("it is among those that run")
	}
}

func allOrNothing(s *suite) {
	s.template("all", nil)
	id := s.launch(s.fleet("all", types.DefaultTargetCapacityTypeOnDemand, 1))[0]
	_, err := s.EC2.TerminateInstances(s.Context(), &ec2.TerminateInstancesInput{InstanceIds: []string{id, "i-0123456789abcdef0"}})
	s.refused(err, "InvalidInstanceID.NotFound")
	if state := s.describe(id)[0].State.Name; state != types.InstanceStateNameRunning && state != types.InstanceStateNamePending {
		s.Errorf("state %s", state)
	}
}
