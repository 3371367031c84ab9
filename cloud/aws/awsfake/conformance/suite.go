// SPDX-License-Identifier: Apache-2.0

// Package conformance holds what Karpenter relies on when it calls AWS, as checks
// that any implementation of package client must pass: AWS in memory, the same
// over HTTP, or an emulator by others. That they all pass the same checks is what
// keeps the one in memory honest.
package conformance

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"karpenter/cloud/aws/client"
)

// Seed makes in the account what Karpenter only finds there.
type Seed interface {
	// Subnet makes a subnet in the account's one VPC that the suite uses.
	Subnet(ctx context.Context, zone, cidr string, tags map[string]string) (id string, err error)
	// SecurityGroup makes a group in the same VPC.
	SecurityGroup(ctx context.Context, name string, tags map[string]string) (id string, err error)
	// Image makes a machine image of the account's own.
	Image(ctx context.Context, name string, architecture types.ArchitectureValues) (id string, err error)
	// Parameter sets an SSM parameter.
	Parameter(ctx context.Context, name, value string) error
	// Role makes a role for instances.
	Role(ctx context.Context, name string) error
	// Queue makes a queue, Send puts a message into it.
	Queue(ctx context.Context, name string) error
	Send(ctx context.Context, queue, body string) error
}

// Skips names checks that an implementation is known not to pass, and why.
type Skips map[string]string

// check is one thing that must hold. Checks share the account; what they make
// carries their own names.
type check struct {
	name string
	run  func(*suite)
}

// suite is one check while it runs.
type suite struct {
	*testing.T
	*client.Services
	seed Seed
	base
}

// base is what all checks build on: a subnet in each of two zones, a group and
// an image.
type base struct {
	zones   [2]string
	subnets [2]string
	group   string
	image   string
}

// Run checks the services, each check in a subtest of its name.
func Run(t *testing.T, services *client.Services, seed Seed, skips Skips) {
	t.Helper()
	b := furnish(t, services.Region, seed)
	known := map[string]bool{}
	for _, c := range all() {
		known[c.name] = true
		t.Run(c.name, func(t *testing.T) {
			if why, ok := skips[c.name]; ok {
				t.Skip(why)
			}
			c.run(&suite{T: t, Services: services, seed: seed, base: b})
		})
	}
	for name := range skips {
		if !known[name] {
			t.Errorf("there is no check %q to skip", name)
		}
	}
}

func all() []check {
	var out []check
	for _, list := range [][]check{discovery(), templates(), fleets(), instances(), services()} {
		out = append(out, list...)
	}
	return out
}

func furnish(t *testing.T, region string, seed Seed) base {
	t.Helper()
	b := base{zones: [2]string{region + "a", region + "b"}}
	var err error
	for i, zone := range b.zones {
		b.subnets[i], err = seed.Subnet(t.Context(), zone, []string{"10.77.0.0/24", "10.77.1.0/24"}[i], map[string]string{"conformance": "base", "zone": zone})
		if err != nil {
			t.Fatal(err)
		}
	}
	if b.group, err = seed.SecurityGroup(t.Context(), "conformance-base", map[string]string{"conformance": "base"}); err != nil {
		t.Fatal(err)
	}
	if b.image, err = seed.Image(t.Context(), "conformance-base", types.ArchitectureValuesX8664); err != nil {
		t.Fatal(err)
	}
	return b
}

// must stops the check at an error.
func (s *suite) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// refused checks for an error with one of the codes.
func (s *suite) refused(err error, codes ...string) {
	s.Helper()
	for _, code := range codes {
		if client.Code(err) == code {
			return
		}
	}
	s.Errorf("got %v, want an error with code %v", err, codes)
}

// filters makes filters of names and single values in turn.
func filters(pairs ...string) []types.Filter {
	var out []types.Filter
	for i := 0; i+1 < len(pairs); i += 2 {
		out = append(out, types.Filter{Name: aws.String(pairs[i]), Values: []string{pairs[i+1]}})
	}
	return out
}

func tags(pairs ...string) []types.Tag {
	var out []types.Tag
	for i := 0; i+1 < len(pairs); i += 2 {
		out = append(out, types.Tag{Key: aws.String(pairs[i]), Value: aws.String(pairs[i+1])})
	}
	return out
}

func valueOf(list []types.Tag, key string) string {
	for _, t := range list {
		if aws.ToString(t.Key) == key {
			return aws.ToString(t.Value)
		}
	}
	return ""
}
