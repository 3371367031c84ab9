// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"context"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"k8s.io/utils/clock"

	"karpenter/cloud/aws/awsfake"
	"karpenter/cloud/aws/awsfake/conformance"
	"karpenter/cloud/aws/awsfake/wire"
	"karpenter/cloud/aws/client"
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

// So it does over HTTP, asked by the SDK's clients.
func TestFakeOverHTTP(t *testing.T) {
	a, err := awsfake.New(awsfake.Config{Clock: clock.RealClock{}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(wire.New(a.Services()))
	defer server.Close()
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": server.URL, "AWS_REGION": a.Config().Region, "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b",
	} {
		t.Setenv(name, value)
	}
	services, err := client.Connect(t.Context(), "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	conformance.Run(t, services, seed{a}, nil)
}
