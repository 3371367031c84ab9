// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"karpenter/cloud/aws/client"
)

// session is one run of the program with a journal.
func session(t *testing.T, journal string, do func(ec2API *ec2.Client, ssmAPI *ssm.Client)) {
	t.Run("session", func(t *testing.T) {
		url := start(t, "--journal", journal, "--boot-delay", "0s")
		keys := credentials.NewStaticCredentialsProvider("key", "secret", "")
		do(ec2.New(ec2.Options{Region: "us-east-1", BaseEndpoint: &url, Credentials: keys}),
			ssm.New(ssm.Options{Region: "us-east-1", BaseEndpoint: &url, Credentials: keys}))
	})
}

// launch starts an instance over HTTP, as Karpenter does, and returns its ID.
func launch(t *testing.T, api *ec2.Client, images *ssm.Client) string {
	t.Helper()
	image, err := images.GetParameter(t.Context(), &ssm.GetParameterInput{Name: aws.String("/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/standard/recommended/image_id")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := api.CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: aws.String("template"),
		LaunchTemplateData: &types.RequestLaunchTemplateData{ImageId: image.Parameter.Value, UserData: aws.String("dXNlciBkYXRh")},
	}); err != nil && client.Code(err) != "InvalidLaunchTemplateName.AlreadyExistsException" {
		t.Fatal(err)
	}
	subnets, err := api.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{})
	if err != nil {
		t.Fatal(err)
	}
	fleet, err := api.CreateFleet(t.Context(), &ec2.CreateFleetInput{
		Type: types.FleetTypeInstant, TargetCapacitySpecification: &types.TargetCapacitySpecificationRequest{DefaultTargetCapacityType: types.DefaultTargetCapacityTypeOnDemand, TotalTargetCapacity: aws.Int32(1)},
		LaunchTemplateConfigs: []types.FleetLaunchTemplateConfigRequest{{
			LaunchTemplateSpecification: &types.FleetLaunchTemplateSpecificationRequest{LaunchTemplateName: aws.String("template"), Version: aws.String("$Latest")},
			Overrides:                   []types.FleetLaunchTemplateOverridesRequest{{InstanceType: "m5.large", SubnetId: subnets.Subnets[0].SubnetId, AvailabilityZone: subnets.Subnets[0].AvailabilityZone}},
		}},
	})
	if err != nil || len(fleet.Instances) != 1 {
		t.Fatalf("%+v, %v", fleet, err)
	}
	return fleet.Instances[0].InstanceIds[0]
}

func running(t *testing.T, api *ec2.Client) []string {
	t.Helper()
	out, err := api.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{Filters: []types.Filter{{Name: aws.String("instance-state-name"), Values: []string{"running"}}}})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, r := range out.Reservations {
		ids = append(ids, *r.Instances[0].InstanceId)
	}
	return ids
}

// TestAccountSurvivesRestart: with --journal the next run has the same
// instances, which end like others, also if awssim was killed while writing.
func TestAccountSurvivesRestart(t *testing.T) {
	journal := filepath.Join(t.TempDir(), "awssim.journal")
	var first, second string
	session(t, journal, func(api *ec2.Client, images *ssm.Client) {
		first, second = launch(t, api, images), launch(t, api, images)
	})
	file, err := os.OpenFile(journal, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.WriteString(`{"at":"20`)
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	session(t, journal, func(api *ec2.Client, images *ssm.Client) {
		if got := running(t, api); len(got) != 2 || got[0] != first || got[1] != second {
			t.Fatalf("after a restart %v run, want %s and %s", got, first, second)
		}
		data, err := api.DescribeInstanceAttribute(t.Context(), &ec2.DescribeInstanceAttributeInput{InstanceId: &first, Attribute: types.InstanceAttributeNameUserData})
		if err != nil || aws.ToString(data.UserData.Value) != "dXNlciBkYXRh" {
			t.Errorf("user data %+v, %v", data, err)
		}
		if _, err := api.TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: []string{first}}); err != nil {
			t.Fatal(err)
		}
		launch(t, api, images)
	})
	session(t, journal, func(api *ec2.Client, _ *ssm.Client) {
		if got := running(t, api); len(got) != 2 || got[0] != second || got[1] == first {
			t.Errorf("after another restart %v run", got)
		}
	})
}

// TestUnusableJournal: awssim keeps a journal that it cannot repeat, and starts
// a new account.
func TestUnusableJournal(t *testing.T) {
	for name, text := range map[string]string{
		"damaged":               "nonsense\n",
		"without the beginning": `{"at":"2026-11-22T12:00:00Z","name":"Lose","input":"i-0","before":1,"after":1}` + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			journal := filepath.Join(t.TempDir(), "awssim.journal")
			if err := os.WriteFile(journal, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			var id string
			session(t, journal, func(api *ec2.Client, images *ssm.Client) { id = launch(t, api, images) })
			if kept, err := os.ReadFile(journal + ".unusable"); err != nil || string(kept) != text {
				t.Errorf("%q, %v", kept, err)
			}
			session(t, journal, func(api *ec2.Client, _ *ssm.Client) {
				if got := running(t, api); strings.Join(got, " ") != id {
					t.Errorf("%v run, want %s", got, id)
				}
			})
		})
	}
}
