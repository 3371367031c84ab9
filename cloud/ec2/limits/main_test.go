// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/aws/amazon-vpc-resource-controller-k8s/pkg/aws/vpc"
)

// TestLimitsFile compares the file that is checked in with what the module says.
func TestLimitsFile(t *testing.T) {
	checkedIn, err := os.ReadFile("../limits.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(checkedIn, render(vpc.Limits)) {
		t.Error("cloud/ec2/limits.json is not what the module says; run: make generate-aws")
	}
}

// TestSource holds the version that the file names to the one that is required.
func TestSource(t *testing.T) {
	content, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(content), source) {
		t.Errorf("go.mod does not require %s", source)
	}
}
