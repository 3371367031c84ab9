// SPDX-License-Identifier: Apache-2.0

// Command limits writes the numbers of branch network interfaces of EC2 instance
// types, which no API of AWS tells, as JSON to standard output. It takes them from
// the VPC resource controller of AWS, at the version in go.mod. The date is the
// date on which that version was published.
//
// It is a Go module of its own, so that the controller does not depend on the VPC
// resource controller. "make generate-aws" runs it.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/aws/amazon-vpc-resource-controller-k8s/pkg/aws/vpc"
)

// The module the limits are from, and when that version was published.
const (
	source = "github.com/aws/amazon-vpc-resource-controller-k8s v1.8.2"
	date   = "2026-09-16"
)

func main() {
	if _, err := os.Stdout.Write(render(vpc.Limits)); err != nil {
		fmt.Fprintln(os.Stderr, "limits:", err)
		os.Exit(1)
	}
}

// render prints one type on each line, sorted by name. Types that have no trunk
// interface have 0.
func render(limits map[string]*vpc.VPCLimits) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "{\"source\":%s,\"date\":%s,\"branchENIs\":{\n", quoted(source), quoted(date))
	names := slices.Sorted(maps.Keys(limits))
	for i, name := range names {
		n, comma := 0, ","
		if limits[name].IsTrunkingCompatible {
			n = limits[name].BranchInterface
		}
		if i == len(names)-1 {
			comma = ""
		}
		fmt.Fprintf(&out, "%s:%d%s\n", quoted(name), n, comma)
	}
	out.WriteString("}}\n")
	return out.Bytes()
}

func quoted(text string) string {
	out, err := json.Marshal(text)
	if err != nil {
		panic(err) // no string is invalid JSON
	}
	return string(out)
}
