// SPDX-License-Identifier: Apache-2.0

// Package wire puts HTTP in front of an AWS in memory: the protocols of EC2 and
// IAM (query → XML), SQS, SSM and Pricing (JSON by X-Amz-Target), EKS and ARC
// zonal shift (REST and JSON), so that the SDK's real clients and any program
// that uses them talk to it as they do to AWS (AWS_ENDPOINT_URL).
//
// What is served are the methods that the implementations of client.Services
// have, those of the interfaces and any more of the same form, such as
// DescribeInstanceAttribute or SendMessage. Structs are read and written by
// reflection; ec2.txt and iam.txt hold the wire names that are not the Go
// field's (`go generate` makes them from the SDK as go.mod pins it). A
// parameter that an operation does not have is an error, as with AWS.
package wire

//go:generate go run ./names
