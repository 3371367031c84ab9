package conformance_test

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"k8s.io/utils/clock"

	"karpenter/cloud/aws/awsfake"
	"karpenter/cloud/aws/awsfake/conformance"
)

// seed furnishes the account in memory.
type seed struct{ *awsfake.AWS }

func pairs(tags map[string]string) []string {
	var out []string
	for key, value := range tags {
		out = append(out, key, value)
	}
	return out
}

func (s seed) Subnet(_ context.Context, zone, cidr string, tags map[string]string) (string, error) {
	return s.AddSubnet(zone, cidr, pairs(tags)...), nil
}

func (s seed) SecurityGroup(_ context.Context, name string, tags map[string]string) (string, error) {
	return s.AddSecurityGroup(name, pairs(tags)...), nil
}

func (s seed) Image(_ context.Context, name string, architecture types.ArchitectureValues) (string, error) {
	return s.AddImage(awsfake.Image{Name: name, Architecture: architecture}), nil
}

func (s seed) Parameter(_ context.Context, name, value string) error {
	s.SetParameter(name, value)
	return nil
}

func (s seed) Role(_ context.Context, name string) error {
	s.AddRole(name, "/")
	return nil
}

func (s seed) Queue(_ context.Context, name string) error {
	s.AddQueue(name)
	return nil
}

func (s seed) Send(_ context.Context, queue, body string) error { return s.SendMessage(queue, body) }

// AWS in memory passes every check.
func TestFake(t *testing.T) {
	a, err := awsfake.New(awsfake.Config{Clock: clock.RealClock{}})
	if err != nil {
		t.Fatal(err)
	}
	conformance.Run(t, a.Services(), seed{a}, nil)
}
