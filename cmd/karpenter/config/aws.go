// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// AWS has the settings of the AWS provider.
type AWS struct {
	// ClusterCABundle is the certificate authority of the API server, PEM in
	// base64. Default "", the one the process itself trusts.
	ClusterCABundle string
	// IsolatedVPC calls neither the price list nor, to clean up, IAM. Default
	// false.
	IsolatedVPC bool
	// EKSControlPlane asks EKS for the version of the cluster instead of the
	// API server. Default false.
	EKSControlPlane bool
	// InterruptionQueue is the name of the SQS queue with events about
	// instances. Default "", none.
	InterruptionQueue string
	// ReservedENIs is the number of network interfaces of a node whose
	// addresses are not for pods. Default 0.
	ReservedENIs int
	// DisableDryRun skips the check of launch permissions by dry runs. Default
	// false.
	DisableDryRun bool
	// EnableZonalShift avoids zones from which traffic is shifted away. Default
	// false.
	EnableZonalShift bool
	// AMIRefreshInterval and SubnetRefreshInterval are the maximum age of
	// cached images and subnets. Default 1m each, and not less.
	AMIRefreshInterval, SubnetRefreshInterval time.Duration
	// SecurityGroupRefreshInterval is the maximum age of cached security
	// groups. Default 1m, and not less.
	SecurityGroupRefreshInterval time.Duration
	// NodeClassCEL allows expressions in the kubelet's configuration. Default
	// false.
	NodeClassCEL bool
	// DRANVIDIAGPU and DRAEFA add the devices of NVIDIA's driver, and of
	// dra.net, to instance types. Default true; no effect without dynamic
	// resource allocation.
	DRANVIDIAGPU, DRAEFA bool
	// RebootForRepair reboots unhealthy instances if a reboot can repair them.
	// Default false.
	RebootForRepair bool
}

func amazon() []setting {
	return []setting{
		setting{flag: "cluster-ca-bundle", env: "CLUSTER_CA_BUNDLE", chart: "settings.clusterCABundle", values: "PEM in base64",
			meaning: "certificate authority of the API server, for nodes; without it, the one this process trusts. A change drifts all nodes",
		}.base64(func(c *Config) *string { return &c.AWS.ClusterCABundle }),
		setting{flag: "isolated-vpc", env: "ISOLATED_VPC", chart: "settings.isolatedVPC", preset: "false",
			meaning: "the VPC has no internet access: Karpenter uses its built-in on-demand prices, and does not clean up instance profiles",
		}.boolean(func(c *Config) *bool { return &c.AWS.IsolatedVPC }),
		setting{flag: "eks-control-plane", env: "EKS_CONTROL_PLANE", chart: "settings.eksControlPlane", preset: "false",
			meaning: "ask EKS for the version of the cluster instead of the API server",
		}.boolean(func(c *Config) *bool { return &c.AWS.EKSControlPlane }),
		setting{flag: "interruption-queue", env: "INTERRUPTION_QUEUE", chart: "settings.interruptionQueue", values: "name of an SQS queue, not its URL",
			meaning: "queue with Spot interruptions and other events of instances; without it, Karpenter does not see them",
		}.text(func(c *Config) *string { return &c.AWS.InterruptionQueue }),
		setting{flag: "reserved-enis", env: "RESERVED_ENIS", chart: "settings.reservedENIs", preset: "0",
			meaning: "number of network interfaces per node that give pods no addresses: 1 with custom networking of the VPC CNI",
		}.integer(func(c *Config) *int { return &c.AWS.ReservedENIs }, 0, math.MaxInt32),
		setting{flag: "disable-dry-run", env: "DISABLE_DRY_RUN", chart: "settings.disableDryRun", preset: "false",
			meaning: "do not check by dry runs, for each EC2NodeClass, whether launches are permitted",
		}.boolean(func(c *Config) *bool { return &c.AWS.DisableDryRun }),
		setting{flag: "enable-zonal-shift", env: "ENABLE_ZONAL_SHIFT", chart: "settings.enableZonalShift", preset: "false",
			meaning: "launch no nodes in zones that Application Recovery Controller shifts traffic away from",
		}.boolean(func(c *Config) *bool { return &c.AWS.EnableZonalShift }),
		setting{flag: "ami-refresh-interval", env: "AMI_REFRESH_INTERVAL", chart: "settings.amiRefreshInterval", preset: "1m",
			meaning: "how long known images are used before AWS is asked again",
		}.interval(func(c *Config) *time.Duration { return &c.AWS.AMIRefreshInterval }),
		setting{flag: "subnet-refresh-interval", env: "SUBNET_REFRESH_INTERVAL", chart: "settings.subnetRefreshInterval", preset: "1m",
			meaning: "how long known subnets are used before EC2 is asked again",
		}.interval(func(c *Config) *time.Duration { return &c.AWS.SubnetRefreshInterval }),
		setting{flag: "security-group-refresh-interval", env: "SECURITY_GROUP_REFRESH_INTERVAL", chart: "settings.securityGroupRefreshInterval", preset: "1m",
			meaning: "how long known security groups are used before EC2 is asked again",
		}.interval(func(c *Config) *time.Duration { return &c.AWS.SecurityGroupRefreshInterval }),
		setting{flag: "aws-feature-gates", env: "AWS_FEATURE_GATES", chart: "settings.awsFeatureGates",
			meaning: "feature gates of the provider for AWS",
		}.gates(amazonFeatures()),
	}
}

// endpoint accepts an empty value, or the URL of a host.
func (s setting) endpoint(field func(*Config) *string) setting {
	s.values = cmp.Or(s.values, "a URL")
	s.check = func(c *Config) error {
		if *field(c) == "" {
			return nil
		}
		if u, err := url.Parse(*field(c)); err != nil || !u.IsAbs() || u.Host == "" {
			return errors.New("cluster endpoint URL is not valid: want a URL with scheme and host, such as https://example.com")
		}
		return nil
	}
	s.set = func(c *Config, value string) error {
		*field(c) = value
		return s.check(c)
	}
	return s
}

// base64 accepts an empty value, or valid base64.
func (s setting) base64(field func(*Config) *string) setting {
	s = s.text(field)
	s.check = func(c *Config) error {
		if _, err := base64.StdEncoding.DecodeString(*field(c)); err != nil {
			return fmt.Errorf("want PEM in base64 on one line, as `base64 -w0 ca.crt` prints it: %w", err)
		}
		return nil
	}
	s.set = func(c *Config, value string) error {
		*field(c) = strings.Join(strings.Fields(value), "") // the command base64 breaks lines by default
		return s.check(c)
	}
	return s
}

func (s setting) share(field func(*Config) *float64) setting {
	s.values = cmp.Or(s.values, "a number, 0 or more")
	s.check = func(c *Config) error {
		if v := *field(c); v < 0 || math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("%s cannot be negative", s.flag)
		}
		return nil
	}
	s.set = func(c *Config, value string) error {
		v, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil {
			return errors.New("want a number, such as 0.075")
		}
		*field(c) = v
		return s.check(c)
	}
	return s
}

// interval accepts durations of a minute and more.
func (s setting) interval(field func(*Config) *time.Duration) setting {
	s.values = cmp.Or(s.values, "a duration, `1m` or more")
	s = s.duration(field)
	parse := s.set
	s.check = func(c *Config) error {
		if *field(c) < time.Minute {
			return fmt.Errorf("%s must be at least 1m", s.flag)
		}
		return nil
	}
	s.set = func(c *Config, value string) error {
		if err := parse(c, value); err != nil {
			return err
		}
		return s.check(c)
	}
	return s
}
