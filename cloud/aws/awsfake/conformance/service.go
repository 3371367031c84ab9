// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
)

// services are the smaller ones: SSM, SQS, IAM.
func services() []check {
	return []check{
		{"an SSM parameter is read", func(s *suite) {
			s.must(s.seed.Parameter(s.Context(), "/conformance/image", s.image))
			out, err := s.SSM.GetParameter(s.Context(), &ssm.GetParameterInput{Name: aws.String("/conformance/image")})
			s.must(err)
			if *out.Parameter.Value != s.image {
				s.Errorf("%s, want %s", *out.Parameter.Value, s.image)
			}
		}},
		{"an SSM parameter that is not there", func(s *suite) {
			_, err := s.SSM.GetParameter(s.Context(), &ssm.GetParameterInput{Name: aws.String("/conformance/nothing")})
			s.refused(err, "ParameterNotFound")
		}},
		{"messages are received, hidden and deleted", messages},
		{"a queue that is not there", func(s *suite) {
			_, err := s.SQS.GetQueueUrl(s.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("conformance-nobody")})
			s.refused(err, "QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue")
		}},
		{"an instance profile with a role", profile},
		{"the name of an instance profile is taken once", func(s *suite) {
			s.profile("conformance-taken", "/")
			_, err := s.IAM.CreateInstanceProfile(s.Context(), &iam.CreateInstanceProfileInput{InstanceProfileName: aws.String("conformance-taken")})
			s.refused(err, "EntityAlreadyExists")
		}},
		{"a role that is not there", func(s *suite) {
			s.profile("conformance-no-role", "/")
			_, err := s.IAM.AddRoleToInstanceProfile(s.Context(), &iam.AddRoleToInstanceProfileInput{InstanceProfileName: aws.String("conformance-no-role"), RoleName: aws.String("conformance-nobody")})
			s.refused(err, "NoSuchEntity")
		}},
		{"an instance profile that is not there", func(s *suite) {
			_, err := s.IAM.GetInstanceProfile(s.Context(), &iam.GetInstanceProfileInput{InstanceProfileName: aws.String("conformance-nobody")})
			s.refused(err, "NoSuchEntity")
			_, err = s.IAM.DeleteInstanceProfile(s.Context(), &iam.DeleteInstanceProfileInput{InstanceProfileName: aws.String("conformance-nobody")})
			s.refused(err, "NoSuchEntity")
		}},
		{"instance profiles are listed", func(s *suite) {
			s.profile("conformance-listed", "/karpenter/conformance/listed/")
			if names := s.profilesBelow("/karpenter/conformance/listed/"); !slices.Contains(names, "conformance-listed") {
				s.Errorf("%v", names)
			}
		}},
		{"instance profiles are listed by path", func(s *suite) {
			s.profile("conformance-inside", "/karpenter/conformance/list/1/")
			s.profile("conformance-outside", "/karpenter/conformance/other/")
			s.same("below the path", s.profilesBelow("/karpenter/conformance/list/"), []string{"conformance-inside"})
		}},
		{"an instance profile with a role is not deleted", func(s *suite) {
			s.roleIn("conformance-kept")
			_, err := s.IAM.DeleteInstanceProfile(s.Context(), &iam.DeleteInstanceProfileInput{InstanceProfileName: aws.String("conformance-kept")})
			s.refused(err, "DeleteConflict")
		}},
	}
}

func messages(s *suite) {
	const queue = "conformance"
	s.must(s.seed.Queue(s.Context(), queue))
	url, err := s.SQS.GetQueueUrl(s.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String(queue)})
	s.must(err)
	body := `{"version":"0","detail-type":"a \"quoted\" word, <tags> & Ünïcode"}`
	s.must(s.seed.Send(s.Context(), queue, body))
	receive := func() []sqstypes.Message {
		s.Helper()
		out, err := s.SQS.ReceiveMessage(s.Context(), &sqs.ReceiveMessageInput{
			QueueUrl: url.QueueUrl, MaxNumberOfMessages: 10, VisibilityTimeout: 20, AttributeNames: []sqstypes.QueueAttributeName{"SentTimestamp"},
			MessageAttributeNames: []string{"All"},
		})
		s.must(err)
		return out.Messages
	}
	first := receive()
	if len(first) != 1 || aws.ToString(first[0].Body) != body || aws.ToString(first[0].MessageId) == "" {
		s.Fatalf("%+v", first)
	}
	if sent, err := strconv.ParseInt(first[0].Attributes["SentTimestamp"], 10, 64); err != nil || sent <= 0 {
		s.Errorf("sent at %v: %v", first[0].Attributes, err)
	}
	if again := receive(); len(again) != 0 {
		s.Errorf("received again while it should be hidden: %+v", again)
	}
	for range 2 {
		_, err = s.SQS.DeleteMessage(s.Context(), &sqs.DeleteMessageInput{QueueUrl: url.QueueUrl, ReceiptHandle: first[0].ReceiptHandle})
		s.must(err)
	}
}

// profile makes an instance profile below a path.
func (s *suite) profile(name, path string) {
	s.Helper()
	_, err := s.IAM.CreateInstanceProfile(s.Context(), &iam.CreateInstanceProfileInput{
		InstanceProfileName: &name, Path: &path, Tags: []iamtypes.Tag{{Key: aws.String("conformance"), Value: &name}},
	})
	s.must(err)
}

// roleIn makes an instance profile with a role of the same name.
func (s *suite) roleIn(name string) {
	s.Helper()
	s.must(s.seed.Role(s.Context(), name))
	s.profile(name, "/karpenter/conformance/roles/")
	_, err := s.IAM.AddRoleToInstanceProfile(s.Context(), &iam.AddRoleToInstanceProfileInput{InstanceProfileName: &name, RoleName: &name})
	s.must(err)
}

func profile(s *suite) {
	name := aws.String("conformance-profile")
	s.roleIn(*name)
	get := func() *iamtypes.InstanceProfile {
		out, err := s.IAM.GetInstanceProfile(s.Context(), &iam.GetInstanceProfileInput{InstanceProfileName: name})
		s.must(err)
		return out.InstanceProfile
	}
	p := get()
	if len(p.Roles) != 1 || *p.Roles[0].RoleName != *name || *p.Path != "/karpenter/conformance/roles/" || len(p.Tags) != 1 || *p.Tags[0].Value != *name {
		s.Errorf("%+v", p)
	}
	_, err := s.IAM.RemoveRoleFromInstanceProfile(s.Context(), &iam.RemoveRoleFromInstanceProfileInput{InstanceProfileName: name, RoleName: name})
	s.must(err)
	if p := get(); len(p.Roles) != 0 {
		s.Errorf("%+v", p.Roles)
	}
	_, err = s.IAM.DeleteInstanceProfile(s.Context(), &iam.DeleteInstanceProfileInput{InstanceProfileName: name})
	s.must(err)
	_, err = s.IAM.GetInstanceProfile(s.Context(), &iam.GetInstanceProfileInput{InstanceProfileName: name})
	s.refused(err, "NoSuchEntity")
}

// profilesBelow returns the names of the profiles on the first page.
func (s *suite) profilesBelow(path string) []string {
	s.Helper()
	out, err := s.IAM.ListInstanceProfiles(s.Context(), &iam.ListInstanceProfilesInput{PathPrefix: &path})
	s.must(err)
	var names []string
	for _, p := range out.InstanceProfiles {
		names = append(names, *p.InstanceProfileName)
	}
	return names
}
