// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"cmp"
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/arczonalshift"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/transport/http/protocol/awsjson"

	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// targeted is the protocol of SQS, SSM and Pricing: JSON, with the operation's
// name in a header.
type targeted struct{}

func (targeted) decode(r *http.Request, body []byte) (string, func(any) error, error) {
	target := r.Header.Get("X-Amz-Target")
	_, operation, ok := strings.Cut(target, ".")
	if !ok {
		return "", nil, &smithy.GenericAPIError{
			Code: "UnknownOperationException", Message: fmt.Sprintf("header X-Amz-Target %q names no operation", target), Fault: smithy.FaultClient,
		}
	}
	return operation, func(input any) error {
		decoder := json.NewDecoder(bytes.NewReader(body)) // the SDK's fields have their wire names
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(input); err != nil {
			return &smithy.GenericAPIError{Code: "SerializationException", Message: err.Error(), Fault: smithy.FaultClient}
		}
		return nil
	}, nil
}

func (targeted) answer(_ string, output any, _ string) (string, []byte, error) {
	if received, ok := output.(*sqs.ReceiveMessageOutput); ok {
		output = withChecksums(received)
	}
	body, err := document(output)
	return "application/x-amz-json-1.1", body, err
}

func (targeted) refuse(err smithy.APIError, _ string, header http.Header) (string, []byte) {
	if err.ErrorCode() == "QueueDoesNotExist" { // as SQS keeps clients of its older protocol content
		header.Set("X-Amzn-Query-Error", "AWS.SimpleQueueService.NonExistentQueue;Sender")
	}
	return "application/x-amz-json-1.1", failure(err)
}

// withChecksums is the output with the checksum of each body, which the SDK's
// client compares.
func withChecksums(out *sqs.ReceiveMessageOutput) *sqs.ReceiveMessageOutput {
	with := *out
	with.Messages = slices.Clone(out.Messages)
	for i, m := range with.Messages {
		if m.MD5OfBody == nil && m.Body != nil {
			sum := md5.Sum([]byte(*m.Body))
			with.Messages[i].MD5OfBody = aws.String(hex.EncodeToString(sum[:]))
		}
	}
	return &with
}

// rest is the protocol of EKS and ARC zonal shift: the path says the operation.
type rest struct{ service string }

func (p rest) decode(r *http.Request, _ []byte) (string, func(any) error, error) {
	path := r.URL.EscapedPath()
	for _, route := range []struct{ service, prefix, operation string }{
		{"eks", "/clusters/", "DescribeCluster"},
		{"arc-zonal-shift", "/managedresources/", "GetManagedResource"},
	} {
		label, ok := strings.CutPrefix(path, route.prefix)
		if !ok || route.service != p.service || r.Method != http.MethodGet || strings.Contains(label, "/") {
			continue
		}
		name, err := url.PathUnescape(label)
		if err != nil {
			break
		}
		return route.operation, func(input any) error { return fillLabel(input, name) }, nil
	}
	return "", nil, &smithy.GenericAPIError{
		Code: "UnknownOperationException", Message: fmt.Sprintf("%s %s is not simulated", r.Method, path), Fault: smithy.FaultClient,
	}
}

func fillLabel(input any, name string) error {
	switch in := input.(type) {
	case *eks.DescribeClusterInput:
		in.Name = &name
	case *arczonalshift.GetManagedResourceInput:
		in.ResourceIdentifier = &name
	default:
		return fmt.Errorf("no label of %T is known", input)
	}
	return nil
}

func (rest) answer(_ string, output any, _ string) (string, []byte, error) {
	body, err := document(output)
	return "application/json", body, err
}

func (rest) refuse(err smithy.APIError, _ string, header http.Header) (string, []byte) {
	header.Set("X-Amzn-ErrorType", err.ErrorCode())
	return "application/json", failure(err)
}

// document is the output as JSON, by the SDK's own serializer.
func document(output any) ([]byte, error) {
	from, ok := output.(smithy.Serializable)
	if !ok {
		return nil, fmt.Errorf("the SDK cannot write a %T", output)
	}
	name := smithy.NewSchema(smithy.ShapeID{Namespace: "karpenter.simulated", Name: "Answer"}, smithy.ShapeTypeStructure, 0)
	request, ok := smithyhttp.NewStackRequest().(*smithyhttp.Request)
	if !ok {
		return nil, fmt.Errorf("the SDK's requests are no longer *smithyhttp.Request")
	}
	writer := awsjson.New11(smithy.NewServiceSchema(name, "1"))
	if err := writer.SerializeRequest(context.Background(), smithy.NewOperationSchema(name, name, name), from, request); err != nil {
		return nil, fmt.Errorf("write %T: %w", output, err)
	}
	return io.ReadAll(request.GetStream())
}

// failure is an error as JSON. Services differ in how they spell "message";
// the SDK reads either.
func failure(err smithy.APIError) []byte {
	code := cmp.Or(err.ErrorCode(), "InternalError")
	body, _ := json.Marshal(map[string]string{"__type": code, "message": err.ErrorMessage()}) // strings always can
	return body
}
