// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/arczonalshift"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	"github.com/google/go-cmp/cmp"

	"karpenter/cloud/aws/client"
)

// sdk returns the SDK's real clients by signing name, connected to the URL.
func sdk(url string) map[string]reflect.Value {
	cfg := aws.Config{
		Region: "us-west-2", BaseEndpoint: &url,
		Credentials: credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", "secret", ""),
		Retryer:     func() aws.Retryer { return aws.NopRetryer{} },
		HTTPClient:  client.NewHTTP(nil),
	}
	return map[string]reflect.Value{
		"ec2": reflect.ValueOf(ec2.NewFromConfig(cfg)), "iam": reflect.ValueOf(iam.NewFromConfig(cfg)),
		"sqs": reflect.ValueOf(sqs.NewFromConfig(cfg, func(o *sqs.Options) { o.DisableMessageChecksumValidation = true })),
		"ssm": reflect.ValueOf(ssm.NewFromConfig(cfg)), "pricing": reflect.ValueOf(pricing.NewFromConfig(cfg)),
		"eks": reflect.ValueOf(eks.NewFromConfig(cfg)), "arc-zonal-shift": reflect.ValueOf(arczonalshift.NewFromConfig(cfg)),
	}
}

// operations are all that must be served: those of client.Services, those of
// the tables, and what tests call beside.
func operations() map[string][]string {
	methods := func(t reflect.Type) (all []string) {
		for m := range t.Methods() {
			all = append(all, m.Name)
		}
		return all
	}
	tabled := func(text string) (all []string) {
		for name := range mustParse(text).operations {
			all = append(all, name)
		}
		slices.Sort(all)
		return all
	}
	return map[string][]string{
		"ec2": append(methods(reflect.TypeFor[client.EC2]()), tabled(ec2Names)...),
		"iam": append(methods(reflect.TypeFor[client.IAM]()), tabled(iamNames)...),
		"sqs": append(methods(reflect.TypeFor[client.SQS]()), "CreateQueue", "SendMessage"),
		"ssm": append(methods(reflect.TypeFor[client.SSM]()), "PutParameter"),
		"eks": methods(reflect.TypeFor[client.EKS]()), "pricing": methods(reflect.TypeFor[client.Pricing]()),
		"arc-zonal-shift": methods(reflect.TypeFor[client.ZonalShift]()),
	}
}

// echo answers every operation with the output that is set, and remembers its
// input.
type echo struct {
	clients map[string]reflect.Value
	input   any
	output  any
	err     error
}

func (e *echo) find(service, operation string) (reflect.Value, bool) {
	m, ok := methodOf(e.clients[service], operation)
	if !ok {
		return m, false
	}
	return reflect.MakeFunc(m.Type(), func(args []reflect.Value) []reflect.Value {
		e.input = args[1].Interface()
		failed := reflect.Zero(reflect.TypeFor[error]())
		if e.err != nil {
			failed = reflect.ValueOf(e.err)
			return []reflect.Value{reflect.Zero(m.Type().Out(0)), failed}
		}
		return []reflect.Value{reflect.ValueOf(e.output), failed}
	}), true
}

// filler gives every field a value of its own.
type filler struct {
	t *testing.T
	n int
}

func (f *filler) fill(v reflect.Value, path string, depth int) {
	f.n++
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Unix(1_800_000_000+int64(f.n), 250_000_000).UTC()))
		return
	case v.Type() == reflect.TypeFor[middleware.Metadata]():
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem(), path, depth)
	case reflect.Struct:
		for field, value := range v.Fields() {
			if field.IsExported() && depth < 12 {
				f.fill(value, path+"."+field.Name, depth+1)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte{0, byte(f.n), 255})
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			f.fill(v.Index(i), path, depth)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range 2 {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			f.fill(key, path, depth)
			f.fill(value, path, depth)
			v.SetMapIndex(key, value)
		}
	case reflect.String:
		v.SetString(fmt.Sprintf("v%d /&<>\"'é %%+\n.", f.n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32, reflect.Int64:
		v.SetInt(int64(f.n))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(f.n) + 0.5)
	default:
		f.t.Fatalf("%s is a %s: nothing is known of how it is sent", path, v.Type())
	}
}

// same compares all fields but what the SDK notes about the call.
func same() cmp.Options {
	return cmp.Options{
		cmp.Exporter(func(reflect.Type) bool { return true }),
		cmp.FilterPath(func(p cmp.Path) bool { return p.Last().Type() == reflect.TypeFor[middleware.Metadata]() }, cmp.Ignore()),
	}
}

func TestEveryFieldOfEveryOperationArrives(t *testing.T) {
	e := &echo{}
	server := httptest.NewServer(newServer(e.find))
	defer server.Close()
	e.clients = sdk(server.URL)
	for service, names := range operations() {
		for _, name := range names {
			t.Run(service+"/"+name, func(t *testing.T) {
				method, ok := methodOf(e.clients[service], name)
				if !ok {
					t.Fatal("the SDK has no such operation")
				}
				f := &filler{t: t}
				input, output := reflect.New(method.Type().In(1).Elem()), reflect.New(method.Type().Out(0).Elem())
				f.fill(input.Elem(), name, 0)
				f.fill(output.Elem(), name, 0)
				e.input, e.output = nil, output.Interface()
				results := method.Call([]reflect.Value{reflect.ValueOf(t.Context()), input})
				if err, _ := results[1].Interface().(error); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(input.Interface(), e.input, same()); diff != "" {
					t.Errorf("the input that was sent (-) and the one that came (+):\n%s", diff)
				}
				if diff := cmp.Diff(output.Interface(), results[0].Interface(), same()); diff != "" {
					t.Errorf("the output that was sent (-) and the one that came (+):\n%s", diff)
				}
			})
		}
	}
}

func TestEmptyInputsAndOutputsArrive(t *testing.T) {
	e := &echo{output: &ec2.DescribeInstancesOutput{}}
	server := httptest.NewServer(newServer(e.find))
	defer server.Close()
	e.clients = sdk(server.URL)
	calls, _ := e.clients["ec2"].Interface().(*ec2.Client)
	out, err := calls.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{})
	if err != nil || len(out.Reservations) != 0 {
		t.Errorf("%v, %v", out, err)
	}
	if diff := cmp.Diff(&ec2.DescribeInstancesInput{}, e.input, same()); diff != "" {
		t.Error(diff)
	}
}

func TestMessagesHaveTheChecksumThatTheClientChecks(t *testing.T) {
	e := &echo{output: &sqs.ReceiveMessageOutput{Messages: []sqstypes.Message{{Body: aws.String(`{"version":"0"}`), MessageId: aws.String("1")}}}}
	server := httptest.NewServer(newServer(e.find))
	defer server.Close()
	e.clients = sdk(server.URL)
	queue := sqs.New(e.clients["sqs"].Interface().(*sqs.Client).Options(), func(o *sqs.Options) { o.DisableMessageChecksumValidation = false })
	out, err := queue.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(server.URL + "/1/queue")})
	if err != nil || len(out.Messages) != 1 || *out.Messages[0].Body != `{"version":"0"}` {
		t.Errorf("%v, %v", out, err)
	}
}

func TestErrorsArriveWithCodeFaultAndRequestID(t *testing.T) {
	e := &echo{}
	server := httptest.NewServer(newServer(e.find))
	defer server.Close()
	e.clients = sdk(server.URL)
	for service, name := range map[string]string{
		"ec2": "CreateFleet", "iam": "GetInstanceProfile", "sqs": "ReceiveMessage", "ssm": "GetParameter",
		"pricing": "GetProducts", "eks": "DescribeCluster", "arc-zonal-shift": "GetManagedResource",
	} {
		for _, sent := range []*smithy.GenericAPIError{
			{Code: "Some.Code", Message: "what <happened> & why", Fault: smithy.FaultClient},
			{Code: "InternalError", Message: "not your fault", Fault: smithy.FaultServer},
		} {
			t.Run(service+"/"+sent.Code, func(t *testing.T) {
				e.err = sent
				method, _ := methodOf(e.clients[service], name)
				input := reflect.New(method.Type().In(1).Elem())
				(&filler{t: t}).fill(input.Elem(), name, 0)
				err, _ := method.Call([]reflect.Value{reflect.ValueOf(t.Context()), input})[1].Interface().(error)
				api, ok := errors.AsType[smithy.APIError](err)
				if !ok || api.ErrorCode() != sent.Code || api.ErrorMessage() != sent.Message {
					t.Errorf("%v, want %v", err, sent)
				}
				answer, ok := errors.AsType[*awshttp.ResponseError](err)
				if !ok || answer.ServiceRequestID() == "" || answer.HTTPStatusCode() != statusOf(sent) {
					t.Errorf("%v has no request id, or the wrong status", err)
				}
				if client.ServerFault(err) != (sent.Fault == smithy.FaultServer) {
					t.Errorf("%v: whose fault it is has not arrived", err)
				}
			})
		}
	}
}

func TestCodesThatTheClientsKnow(t *testing.T) {
	e := &echo{}
	server := httptest.NewServer(newServer(e.find))
	defer server.Close()
	e.clients = sdk(server.URL)
	for _, c := range []struct {
		service, operation, code string
		is                       func(error) bool
	}{
		{"ec2", "DescribeInstances", "InvalidInstanceID.NotFound", client.NotFound},
		{"ec2", "CreateFleet", "DryRunOperation", client.WouldSucceed},
		{"ec2", "CreateFleet", "UnauthorizedOperation", client.Unauthorized},
		{"ec2", "CreateFleet", "RequestLimitExceeded", client.RateLimited},
		{"iam", "GetInstanceProfile", "NoSuchEntity", client.NotFound},
		{"iam", "CreateInstanceProfile", "EntityAlreadyExists", client.AlreadyExists},
		{"iam", "GetInstanceProfile", "AccessDenied", client.Unauthorized},
		{"ssm", "GetParameter", "ParameterNotFound", client.NotFound},
		{"sqs", "GetQueueUrl", "QueueDoesNotExist", client.NotFound},
		{"sqs", "GetQueueUrl", "AWS.SimpleQueueService.NonExistentQueue", client.NotFound},
		{"eks", "DescribeCluster", "AccessDeniedException", client.Unauthorized},
	} {
		e.err = &smithy.GenericAPIError{Code: c.code, Message: "so it is"}
		method, _ := methodOf(e.clients[c.service], c.operation)
		input := reflect.New(method.Type().In(1).Elem())
		(&filler{t: t}).fill(input.Elem(), c.operation, 0)
		err, _ := method.Call([]reflect.Value{reflect.ValueOf(t.Context()), input})[1].Interface().(error)
		if !c.is(err) {
			t.Errorf("%s %s %s came as %v", c.service, c.operation, c.code, err)
		}
	}
}

func TestUnknownParametersAreRejected(t *testing.T) {
	e := &echo{output: &ec2.DescribeInstancesOutput{}, clients: sdk("http://localhost:1")}
	server := httptest.NewServer(newServer(e.find))
	defer server.Close()
	for body, want := range map[string]string{
		"Action=DescribeInstances&Version=2016-11-15&Colour=red":                            "UnknownParameter",
		"Action=DescribeInstances&Version=2016-11-15&Filter.1.Nom=x":                        "the parameter Filter.1.Nom is not recognized",
		"Action=DescribeInstances&Version=2016-11-15&InstanceId.2=i-1":                      "the list InstanceId has no element 1",
		"Action=DescribeInstances&Version=2016-11-15&MaxResults=many":                       "InvalidParameterValue",
		"Action=StartInstances&Version=2016-11-15":                                          "InvalidAction",
		"Action=DescribeInstances&Version=2012-01-01":                                       "is not simulated",
		"Action=DescribeInstances&Version=2016-11-15&InstanceId.1=i-1&Filter.1.Name=vpc-id": "<requestId>",
	} {
		answer, err := server.Client().Post(server.URL, "application/x-www-form-urlencoded", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		text := &strings.Builder{}
		_ = answer.Write(text)
		_ = answer.Body.Close()
		if !strings.Contains(text.String(), want) {
			t.Errorf("%s: %s, want %s", body, text, want)
		}
	}
	out, err := e.clients["ec2"].Interface().(*ec2.Client).DescribeInstances(context.Background(), nil)
	if err == nil {
		t.Errorf("nobody listens there, and the answer was %v", out)
	}
}
