// SPDX-License-Identifier: Apache-2.0

package nodeclass

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/cloud/aws/client"
	"karpenter/cloud/aws/instancetype"
)

// errLater reports that AWS has not answered the question now.
var errLater = errors.New("AWS is asked again later")

// rehearsed sets ValidationSucceeded by the verdict of a rehearsal.
func (p *pass) rehearsed(ctx context.Context, facts []*instancetype.Facts) (time.Duration, error) {
	key, err := fingerprint(p.class)
	if err != nil {
		return 0, err
	}
	v, ok := p.verdicts.get(p.class.UID, key)
	if !ok {
		if len(facts) == 0 {
			return soon, nil
		}
		v, err = p.rehearse(ctx, facts)
		switch missing, isMissing := errors.AsType[*missingProfileError](err); {
		case errors.Is(err, errLater):
			return soon, nil
		case isMissing && p.class.Spec.InstanceProfile != nil:
			p.set.SetFalse(awsv1.ValidationSucceededCondition, awsv1.InstanceProfileNotFoundReason, missing.Error())
			return soon, nil
		case isMissing: // IAM's changes take a while to be known everywhere
			p.AWS.Profiles.Missing(missing.name)
			return soon, nil
		case err != nil:
			return 0, fmt.Errorf("try a launch: %w", err)
		}
		p.verdicts.put(p.class.UID, key, v)
	}
	if v != (verdict{}) {
		return p.invalid(v)
	}
	p.set.SetTrue(awsv1.ValidationSucceededCondition)
	return checked, nil
}

// missingProfileError says that EC2 does not know the instance profile.
type missingProfileError struct{ name string }

func (e *missingProfileError) Error() string {
	return fmt.Sprintf("Instance profile %q not found", e.name)
}

// rehearse finds out by dry runs whether an instance could be launched.
func (p *pass) rehearse(ctx context.Context, facts []*instancetype.Facts) (verdict, error) {
	pools, err := p.linkedPools(ctx, p.class)
	if err != nil {
		return verdict{}, err
	}
	role, err := cast(p.class, p.group, facts, pools, &p.Config)
	if err != nil {
		return verdict{}, err
	}
	made, err := p.AWS.Templates.Ensure(ctx, role.want)
	if client.UserDataTooLarge(err) {
		return because(awsv1.UserDataSizeLimitExceededReason, "ec2:CreateLaunchTemplate rejected the rendered user data as too large", err), nil
	}
	v, err := judge(err, awsv1.CreateLaunchTemplateAuthCheckFailedReason, "ec2:CreateLaunchTemplate")
	if v != (verdict{}) || err != nil {
		return v, err
	}
	role.template = made[0].Name // one candidate, one template
	_, err = p.AWS.Launch.CreateFleet(ctx, role.fleet(), once)
	v, err = judge(err, awsv1.CreateFleetAuthCheckFailedReason, "ec2:CreateFleet")
	if v != (verdict{}) || err != nil {
		return v, err
	}
	return p.rehearseInstances(ctx, role)
}

// rehearseInstances tries one subnet after the other. If all fail, the error of
// the first one counts. A missing profile is missing for all of them.
func (p *pass) rehearseInstances(ctx context.Context, role *role) (verdict, error) {
	var first error
	for _, subnet := range p.class.Status.Subnets {
		_, err := p.AWS.Launch.RunInstances(ctx, role.instances(subnet.ID), once)
		if err == nil || client.WouldSucceed(err) {
			return verdict{}, nil
		}
		if client.ProfileMissing(err) {
			return verdict{}, &missingProfileError{p.class.Status.InstanceProfile}
		}
		if first == nil {
			first = err
		}
	}
	return judge(first, awsv1.RunInstancesAuthCheckFailedReason, "ec2:RunInstances")
}

// once disables retries of the SDK.
func once(o *ec2.Options) { o.Retryer = aws.NopRetryer{} }

// judge interprets the error of a dry run: a verdict if the call is not
// permitted, errLater if AWS could not answer, or neither if it would succeed.
func judge(err error, reason, call string) (verdict, error) {
	switch {
	case err == nil, client.WouldSucceed(err):
		return verdict{}, nil
	case client.RateLimited(err), client.ServerFault(err):
		return verdict{}, errLater
	case client.Unauthorized(err):
		return because(reason, "Controller isn't authorized to call "+call, err), nil
	}
	return verdict{}, err
}

func because(reason, text string, err error) verdict {
	_, message := client.Reason(err.Error())
	return verdict{reason, text + ": " + message}
}
