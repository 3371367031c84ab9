// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"encoding/base64"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

func templates() []check {
	return []check{
		{"a launch template is found by name and tag, and deleted by name", templateLife},
		{"a launch template is deleted by ID", func(s *suite) {
			id := s.template("by-id", nil)
			_, err := s.EC2.DeleteLaunchTemplate(s.Context(), &ec2.DeleteLaunchTemplateInput{LaunchTemplateId: &id})
			s.must(err)
			_, err = s.EC2.DescribeLaunchTemplates(s.Context(), &ec2.DescribeLaunchTemplatesInput{LaunchTemplateNames: []string{name("by-id")}})
			s.refused(err, "InvalidLaunchTemplateName.NotFoundException")
		}},
		{"the ID of a launch template must exist", func(s *suite) {
			_, err := s.EC2.DeleteLaunchTemplate(s.Context(), &ec2.DeleteLaunchTemplateInput{LaunchTemplateId: aws.String("lt-0123456789abcdef0")})
			s.refused(err, "InvalidLaunchTemplateId.NotFound")
		}},
		{"the name of a launch template is taken once", func(s *suite) {
			s.template("taken", nil)
			s.refused(s.createTemplate("taken", nil), "InvalidLaunchTemplateName.AlreadyExistsException")
		}},
		{"user data is limited", func(s *suite) {
			s.refused(s.createTemplate("too-much", func(d *types.RequestLaunchTemplateData) {
				d.UserData = aws.String(base64.StdEncoding.EncodeToString(make([]byte, 16385)))
			}), "InvalidUserData.Malformed")
		}},
	}
}

// name is that of a launch template of the suite.
func name(short string) string { return "karpenter.k8s.aws/conformance-" + short }

// template makes a launch template and returns its ID.
func (s *suite) template(short string, change func(*types.RequestLaunchTemplateData)) string {
	s.Helper()
	s.must(s.createTemplate(short, change))
	out, err := s.EC2.DescribeLaunchTemplates(s.Context(), &ec2.DescribeLaunchTemplatesInput{LaunchTemplateNames: []string{name(short)}})
	s.must(err)
	return *out.LaunchTemplates[0].LaunchTemplateId
}

func (s *suite) createTemplate(short string, change func(*types.RequestLaunchTemplateData)) error {
	data := &types.RequestLaunchTemplateData{
		ImageId: &s.image, UserData: aws.String(base64.StdEncoding.EncodeToString([]byte("#!/bin/sh"))),
		NetworkInterfaces: []types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest{{DeviceIndex: aws.Int32(0), Groups: []string{s.group}}},
		MetadataOptions:   &types.LaunchTemplateInstanceMetadataOptionsRequest{HttpTokens: types.LaunchTemplateHttpTokensStateRequired},
	}
	if change != nil {
		change(data)
	}
	_, err := s.EC2.CreateLaunchTemplate(s.Context(), &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: aws.String(name(short)), LaunchTemplateData: data,
		TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeLaunchTemplate, Tags: tags("conformance", short)}},
	})
	return err
}

func templateLife(s *suite) {
	id := s.template("life", nil)
	for what, in := range map[string]*ec2.DescribeLaunchTemplatesInput{
		"tag": {Filters: filters("tag:conformance", "life")}, "name": {Filters: filters("launch-template-name", name("life"))},
	} {
		out, err := s.EC2.DescribeLaunchTemplates(s.Context(), in)
		s.must(err)
		if len(out.LaunchTemplates) != 1 || *out.LaunchTemplates[0].LaunchTemplateId != id || valueOf(out.LaunchTemplates[0].Tags, "conformance") != "life" {
			s.Errorf("by %s: %+v", what, out.LaunchTemplates)
		}
	}
	_, err := s.EC2.DeleteLaunchTemplate(s.Context(), &ec2.DeleteLaunchTemplateInput{LaunchTemplateName: aws.String(name("life"))})
	s.must(err)
	_, err = s.EC2.DescribeLaunchTemplates(s.Context(), &ec2.DescribeLaunchTemplatesInput{LaunchTemplateNames: []string{name("life")}})
	s.refused(err, "InvalidLaunchTemplateName.NotFoundException")
}
