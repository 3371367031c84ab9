// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"karpenter/cloud/aws/catalogue"
)

// record answers DescribeInstanceTypes from a file.
type record struct {
	catalogue.EC2 // nothing else is asked
	types         []types.InstanceTypeInfo
}

// readRecord reads the output of "aws ec2 describe-instance-types", or an object
// of such descriptions by type.
func readRecord(path string) (*record, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var output struct{ InstanceTypes []types.InstanceTypeInfo }
	if err := json.Unmarshal(text, &output); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if output.InstanceTypes == nil {
		byName := map[string]types.InstanceTypeInfo{}
		if err := json.Unmarshal(text, &byName); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		for _, name := range slices.Sorted(maps.Keys(byName)) {
			output.InstanceTypes = append(output.InstanceTypes, byName[name])
		}
	}
	return &record{types: output.InstanceTypes}, nil
}

// DescribeInstanceTypes answers with the types that the program uses: with
// hardware virtualisation, for x86_64 or arm64.
func (r *record) DescribeInstanceTypes(_ context.Context, in *ec2.DescribeInstanceTypesInput, _ ...func(*ec2.Options)) (*ec2.DescribeInstanceTypesOutput, error) {
	out := &ec2.DescribeInstanceTypesOutput{}
	for i := range r.types {
		t := &r.types[i]
		if t.ProcessorInfo == nil {
			return nil, errors.New("the record is not one of instance types: " + string(t.InstanceType) + " has no processor")
		}
		is := map[string]func(string) bool{
			"supported-virtualization-type": func(v string) bool {
				return slices.Contains(t.SupportedVirtualizationTypes, types.VirtualizationType(v))
			},
			"processor-info.supported-architecture": func(v string) bool {
				return slices.Contains(t.ProcessorInfo.SupportedArchitectures, types.ArchitectureType(v))
			},
		}
		if !slices.ContainsFunc(in.Filters, func(f types.Filter) bool { return !slices.ContainsFunc(f.Values, is[*f.Name]) }) {
			out.InstanceTypes = append(out.InstanceTypes, *t)
		}
	}
	return out, nil
}
