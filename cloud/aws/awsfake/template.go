// SPDX-License-Identifier: Apache-2.0

package awsfake

import (
	"context"
	"encoding/base64"
	"regexp"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// template is a launch template of one version.
type template struct {
	types.LaunchTemplate
	data types.RequestLaunchTemplateData
}

type templates struct {
	list   []*template
	byName map[string]*template
	tokens map[string]string // client token → name
}

func (t *templates) byID(id string) *template {
	for _, each := range t.list {
		if *each.LaunchTemplateId == id {
			return each
		}
	}
	return nil
}

func (t *templates) remove(gone *template) {
	t.list = slices.DeleteFunc(t.list, func(each *template) bool { return each == gone })
	delete(t.byName, *gone.LaunchTemplateName)
}

// find returns the template of a name or ID, of which one is given.
func (t *templates) find(name, id *string) (*template, error) {
	switch {
	case (name == nil) == (id == nil):
		return nil, refuse("MissingParameter", "You must specify either a launch template ID or a launch template name in the request, but not both.")
	case name != nil:
		if found := t.byName[*name]; found != nil {
			return found, nil
		}
		return nil, refuse("InvalidLaunchTemplateName.NotFoundException", "The specified launch template, with template name %s, does not exist.", *name)
	default:
		if found := t.byID(*id); found != nil {
			return found, nil
		}
		return nil, refuse("InvalidLaunchTemplateId.NotFound", "The specified launch template, with template ID %s, does not exist.", *id)
	}
}

// userDataLimit is EC2's, in bytes after decoding.
const userDataLimit = 16384

func checkTemplate(in *ec2.CreateLaunchTemplateInput) error {
	name := aws.ToString(in.LaunchTemplateName)
	if ok, err := regexp.MatchString(`^[a-zA-Z0-9().\-/_]{3,128}$`, name); err != nil || !ok {
		return refuse("InvalidLaunchTemplateName.MalformedException", "A launch template name must be between 3 and 128 characters, and may contain letters, numbers, and the following characters: - ( ) . / _.")
	}
	if in.LaunchTemplateData == nil {
		return refuse("MissingParameter", "The request must contain the parameter LaunchTemplateData")
	}
	text, err := base64.StdEncoding.DecodeString(aws.ToString(in.LaunchTemplateData.UserData))
	if err != nil {
		return refuse("InvalidUserData.Malformed", "Invalid BASE64 encoding of user data.")
	}
	if len(text) > userDataLimit {
		return refuse("InvalidUserData.Malformed", "User data is limited to %d bytes", userDataLimit)
	}
	return nil
}

// CreateLaunchTemplate keeps a template under a name that is free.
func (e ec2API) CreateLaunchTemplate(ctx context.Context, in *ec2.CreateLaunchTemplateInput, _ ...func(*ec2.Options)) (*ec2.CreateLaunchTemplateOutput, error) {
	return answer(ctx, e.a, "CreateLaunchTemplate", in, func(now time.Time) (*ec2.CreateLaunchTemplateOutput, error) {
		if err := checkTemplate(in); err != nil {
			return nil, err
		}
		kept := &e.a.templates
		if name, again := kept.tokens[aws.ToString(in.ClientToken)]; again && name == *in.LaunchTemplateName && kept.byName[name] != nil {
			return &ec2.CreateLaunchTemplateOutput{LaunchTemplate: new(copied(kept.byName[name].LaunchTemplate))}, nil
		}
		if kept.byName[*in.LaunchTemplateName] != nil {
			return nil, refuse("InvalidLaunchTemplateName.AlreadyExistsException", "Launch template name already in use.")
		}
		wanted, err := withTags(nil, tagged(in.TagSpecifications, types.ResourceTypeLaunchTemplate))
		if err != nil {
			return nil, err
		}
		if err := dryRun(in.DryRun); err != nil {
			return nil, err
		}
		made := &template{data: copied(*in.LaunchTemplateData)}
		made.LaunchTemplate = types.LaunchTemplate{
			LaunchTemplateId: aws.String(e.a.id("lt")), LaunchTemplateName: aws.String(*in.LaunchTemplateName), CreateTime: &now, Tags: wanted,
			DefaultVersionNumber: aws.Int64(1), LatestVersionNumber: aws.Int64(1), CreatedBy: aws.String(e.a.arn("iam", "", "role/KarpenterControllerRole-"+e.a.config.Cluster)),
		}
		kept.list = append(kept.list, made)
		kept.byName[*in.LaunchTemplateName] = made
		if in.ClientToken != nil {
			if kept.tokens == nil {
				kept.tokens = map[string]string{}
			}
			kept.tokens[*in.ClientToken] = *in.LaunchTemplateName
		}
		return &ec2.CreateLaunchTemplateOutput{LaunchTemplate: new(copied(made.LaunchTemplate))}, nil
	})
}

var templateFilters = resources[*template]{
	tags: func(t *template) []types.Tag { return t.Tags },
	fields: fields[*template]{
		"launch-template-name": pointer(func(t *template) *string { return t.LaunchTemplateName }),
		"create-time":          one(func(t *template) string { return stamp(*t.CreateTime) }),
	},
}

// DescribeLaunchTemplates describes templates, without what is in them.
func (e ec2API) DescribeLaunchTemplates(ctx context.Context, in *ec2.DescribeLaunchTemplatesInput, _ ...func(*ec2.Options)) (*ec2.DescribeLaunchTemplatesOutput, error) {
	return answer(ctx, e.a, "DescribeLaunchTemplates", in, func(time.Time) (*ec2.DescribeLaunchTemplatesOutput, error) {
		if err := dryRun(in.DryRun); err != nil {
			return nil, err
		}
		found, missing := byID(e.a.templates.list, in.LaunchTemplateIds, func(t *template) string { return *t.LaunchTemplateId })
		if len(missing) > 0 {
			return nil, refuse("InvalidLaunchTemplateId.NotFound", "The specified launch template, with template ID %s, does not exist.", missing[0])
		}
		found, missing = byID(found, in.LaunchTemplateNames, func(t *template) string { return *t.LaunchTemplateName })
		if len(missing) > 0 {
			return nil, refuse("InvalidLaunchTemplateName.NotFoundException", "At least one of the launch templates specified in the request does not exist.")
		}
		found, err := templateFilters.pick(found, in.Filters)
		if err != nil {
			return nil, err
		}
		part, next, err := page(found, pages{1, 200, 200}, in.MaxResults, in.NextToken)
		if err != nil {
			return nil, err
		}
		out := &ec2.DescribeLaunchTemplatesOutput{NextToken: next}
		for _, t := range part {
			out.LaunchTemplates = append(out.LaunchTemplates, copied(t.LaunchTemplate))
		}
		return out, nil
	})
}

// DeleteLaunchTemplate deletes a template by ID or name.
func (e ec2API) DeleteLaunchTemplate(ctx context.Context, in *ec2.DeleteLaunchTemplateInput, _ ...func(*ec2.Options)) (*ec2.DeleteLaunchTemplateOutput, error) {
	return answer(ctx, e.a, "DeleteLaunchTemplate", in, func(time.Time) (*ec2.DeleteLaunchTemplateOutput, error) {
		found, err := e.a.templates.find(in.LaunchTemplateName, in.LaunchTemplateId)
		if err != nil {
			return nil, err
		}
		if err := dryRun(in.DryRun); err != nil {
			return nil, err
		}
		e.a.templates.remove(found)
		return &ec2.DeleteLaunchTemplateOutput{LaunchTemplate: new(copied(found.LaunchTemplate))}, nil
	})
}

// LaunchTemplates returns what the templates hold, by name.
func (a *AWS) LaunchTemplates() map[string]types.RequestLaunchTemplateData {
	out := map[string]types.RequestLaunchTemplateData{}
	a.locked(func(time.Time) {
		for name, t := range a.templates.byName {
			out[name] = copied(t.data)
		}
	})
	return out
}
