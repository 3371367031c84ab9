// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/arczonalshift"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/smithy-go/middleware"

	"karpenter/cloud"
)

// Connect returns AWS's services with the credentials, region and endpoints of
// the SDK's default chain: environment, shared configuration, web identity, the
// machine's metadata. Calls that change something are sent, and waited for,
// only while the fence permits it; nil means always. The extensions are added
// to every call, also to those for credentials.
func Connect(ctx context.Context, version string, fence cloud.Fence, extensions ...func(*middleware.Stack) error) (*Services, error) {
	cfg, err := config.LoadDefaultConfig(ctx,
		config.WithAppID("karpenter.sh-"+version),
		config.WithAPIOptions(extensions))
	if err != nil {
		return nil, fmt.Errorf("AWS configuration: %w", err)
	}
	if cfg.Region == "" {
		here, err := imds.NewFromConfig(cfg).GetRegion(ctx, nil)
		if err != nil {
			return nil, fmt.Errorf("no AWS region: set AWS_REGION, or run where the instance metadata service tells it: %w", err)
		}
		cfg.Region = here.Region
	}
	cfg.HTTPClient = NewHTTP(cfg.HTTPClient) // not before: those of credentials and metadata must give up sooner
	if fence != nil {
		// Not before: a replica that may not change anything needs credentials,
		// too, to read.
		cfg.APIOptions = append(slices.Clone(cfg.APIOptions), guarded(fence))
	}
	prices := cfg.Copy()
	prices.Region = PricingRegion(cfg.Region)
	return &Services{
		Region: cfg.Region, EC2: ec2.NewFromConfig(cfg), EKS: eks.NewFromConfig(cfg), IAM: iam.NewFromConfig(cfg),
		Pricing: pricing.NewFromConfig(prices), SQS: sqs.NewFromConfig(cfg), SSM: ssm.NewFromConfig(cfg),
		ZonalShift: arczonalshift.NewFromConfig(cfg),
	}, nil
}
