// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"time"

	"github.com/aws/smithy-go"

	awsv1 "karpenter/api/aws/v1"
	v1 "karpenter/api/v1"
	"karpenter/cmd/karpenter/config"
	"karpenter/sim"
	"karpenter/sim/amazon"
	"karpenter/sim/script"
)

// amazon is AWS.
func (c *Trial) amazon() *vendor {
	return &vendor{
		args: []string{"--cloud-provider=" + config.CloudAWS, "--cluster-name=cluster", "--eks-control-plane=true", "--interruption-queue=cluster"},
		make: func(r *sim.Run) (sim.Vendor, error) {
			a, err := amazon.New(*c.Amazon, r)
			if err == nil && c.Account != nil {
				c.Account(a)
			}
			return a, err
		},
		class:     amazon.NodeClass(),
		ref:       v1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.Kind, Name: amazon.Class},
		changes:   []string{"CreateFleet", "TerminateInstances", "CreateLaunchTemplate", "DeleteLaunchTemplate", "CreateTags"},
		throttled: &smithy.GenericAPIError{Code: "RequestLimitExceeded", Message: "Request limit exceeded.", Fault: smithy.FaultClient},
	}
}

// mostLag is how late EC2 shows what it has started: less than the provider
// waits for.
const mostLag = 15 * time.Second

// Translate makes a script that Draw has made up one for AWS, and returns the
// account it needs. What has no counterpart there is left out: changes of
// prices, which are read twice a day; and answers with something missing, as
// EC2 fails instead.
func Translate(s *script.Script) *amazon.Config {
	names := map[string]string{"s1": "c5.large", "m2": "m5.large", "c4": "c5.xlarge", "m4": "m5.xlarge", "m8": "m5.2xlarge", "m16": "m5.4xlarge"}
	zones := map[string]string{"a": "us-west-2a", "b": "us-west-2b", "c": "us-west-2c"}
	rename(s, names, zones)
	account := &amazon.Config{}
	for i := range s.Types {
		t := &s.Types[i]
		account.Types, account.Zones = append(account.Types, t.Name), t.Zones
		if t.Spot == 0 {
			account.NoSpot = append(account.NoSpot, t.Name)
		}
	}
	for i := range s.Faults {
		if f := &s.Faults[i]; f.Kind == script.CloudLag {
			f.Lag = min(f.Lag, mostLag)
		}
	}
	return account
}
