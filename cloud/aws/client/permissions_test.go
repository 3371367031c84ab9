// SPDX-License-Identifier: Apache-2.0

package client

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"testing"
)

// implied are actions that other calls need: a role is passed to machines by
// what launches them, and profiles are made with tags.
var implied = []string{"iam:PassRole", "iam:TagInstanceProfile"}

var conditionKeys = []string{"ec2:CreateAction", "iam:PassedToService", "arc-zonal-shift:ResourceIdentifier"}

// TestPermissions holds the controller's policies to the calls of Services:
// each call is allowed, and nothing is allowed that is not called.
func TestPermissions(t *testing.T) {
	template, err := os.ReadFile("../../../deploy/aws/cloudformation.yaml")
	if err != nil {
		t.Fatal(err)
	}
	allowed := map[string]bool{}
	for _, m := range regexp.MustCompile(`"((?:ec2|eks|iam|pricing|sqs|ssm|arc-zonal-shift):[A-Z][A-Za-z]+)"`).FindAllStringSubmatch(string(template), -1) {
		allowed[m[1]] = !slices.Contains(conditionKeys, m[1])
	}
	called := map[string]bool{}
	for _, action := range implied {
		called[action] = true
	}
	prefixes := map[string]string{"EC2": "ec2", "EKS": "eks", "IAM": "iam", "Pricing": "pricing", "SQS": "sqs", "SSM": "ssm", "ZonalShift": "arc-zonal-shift"}
	services := reflect.TypeFor[Services]()
	for i := range services.NumField() {
		service := services.Field(i)
		if service.Type.Kind() != reflect.Interface {
			continue
		}
		for j := range service.Type.NumMethod() {
			called[prefixes[service.Name]+":"+service.Type.Method(j).Name] = true
		}
	}
	for action := range called {
		if !allowed[action] {
			t.Errorf("%s is called and not allowed", action)
		}
	}
	for action, is := range allowed {
		if is && !called[action] {
			t.Errorf("%s is allowed and never called", action)
		}
	}
	if len(allowed) < 30 {
		t.Errorf("only %d actions were found in the template", len(allowed))
	}
}
