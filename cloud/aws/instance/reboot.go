// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/smithy-go"

	"karpenter/cloud"
	"karpenter/cloud/aws/client"
)

// Reboot has an instance rebooted. The error is a cloud.NotFoundError when the
// instance is gone, and a cloud.RebootFailedError when the permission is missing.
func (s *Instances) Reboot(ctx context.Context, id string) error {
	i, err := s.Read(ctx, id)
	if err != nil {
		return err
	}
	if i.Ending() {
		return notFound(id)
	}
	if s.shifted(i) {
		return fmt.Errorf("instance %s is in zone %s, which a zonal shift leads traffic away from: skipping reboot", id, i.Zone)
	}
	_, err = s.config.EC2.RebootInstances(ctx, &ec2.RebootInstancesInput{InstanceIds: []string{id}})
	var refused smithy.APIError
	switch {
	case err == nil:
		return nil
	case client.NotFound(err):
		return notFound(id)
	case errors.As(err, &refused) && refused.ErrorCode() == "UnauthorizedOperation":
		return &cloud.RebootFailedError{Err: fmt.Errorf("reboot instance %s: grant the controller ec2:RebootInstances: %w", id, err)}
	}
	return fmt.Errorf("reboot instance %s: %w", id, err)
}
