// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"

	"github.com/aws/smithy-go"

	"karpenter/cloud/aws/client"
)

// maxBody is the largest request that is read, in bytes. EC2's own limit is lower.
const maxBody = 4 << 20

// New returns the handler that answers for the services. Of several requests
// at once each is a call of its own goroutine, as the SDK's clients make them.
func New(services *client.Services) http.Handler {
	implementations := map[string]reflect.Value{
		"ec2": reflect.ValueOf(services.EC2), "iam": reflect.ValueOf(services.IAM),
		"sqs": reflect.ValueOf(services.SQS), "ssm": reflect.ValueOf(services.SSM), "pricing": reflect.ValueOf(services.Pricing),
		"eks": reflect.ValueOf(services.EKS), "arc-zonal-shift": reflect.ValueOf(services.ZonalShift),
	}
	return newServer(func(service, operation string) (reflect.Value, bool) {
		return methodOf(implementations[service], operation)
	})
}

// server answers requests with what find returns: the method that does a
// service's operation.
type server struct {
	find     func(service, operation string) (reflect.Value, bool)
	names    map[string]*names
	requests atomic.Uint64
}

func newServer(find func(service, operation string) (reflect.Value, bool)) *server {
	return &server{find: find, names: map[string]*names{"ec2": mustParse(ec2Names), "iam": mustParse(iamNames)}}
}

// protocol is how a service's requests and answers are written.
type protocol interface {
	// decode returns the operation's name and a function that fills its input.
	decode(r *http.Request, body []byte) (operation string, fill func(input any) error, err error)
	// answer writes the output of an operation that succeeded.
	answer(operation string, output any, requestID string) (contentType string, body []byte, err error)
	// refuse writes an error.
	refuse(err smithy.APIError, requestID string, header http.Header) (contentType string, body []byte)
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := fmt.Sprintf("%08x-0000-4000-8000-000000000000", s.requests.Add(1))
	w.Header().Set("X-Amzn-RequestId", id)
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, fmt.Sprintf("read the request: %v", err), http.StatusBadRequest)
		return
	}
	service := serviceOf(r, body)
	speaks, ok := s.protocol(service)
	if !ok {
		http.Error(w, fmt.Sprintf("service %q is not simulated; ec2, iam, sqs, ssm, pricing, eks and arc-zonal-shift are", service), http.StatusNotFound)
		return
	}
	operation, output, err := s.call(r, speaks, service, body)
	var kind string
	var answer []byte
	if err == nil {
		kind, answer, err = speaks.answer(operation, output, id)
	}
	status := http.StatusOK
	if err != nil {
		api := apiError(err)
		status = statusOf(api)
		kind, answer = speaks.refuse(api, id, w.Header())
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_, _ = w.Write(answer) // a client that has gone needs no answer
}

func (s *server) protocol(service string) (protocol, bool) {
	switch service {
	case "ec2":
		return query{names: s.names[service], ec2: true}, true
	case "iam":
		return query{names: s.names[service]}, true
	case "sqs", "ssm", "pricing":
		return targeted{}, true
	case "eks", "arc-zonal-shift":
		return rest{service}, true
	}
	return nil, false
}

// call decodes the request, and asks the service.
func (s *server) call(r *http.Request, speaks protocol, service string, body []byte) (operation string, output any, err error) {
	operation, fill, err := speaks.decode(r, body)
	if err != nil {
		return "", nil, err
	}
	method, ok := s.find(service, operation)
	if !ok {
		return "", nil, &smithy.GenericAPIError{
			Code: "InvalidAction", Fault: smithy.FaultClient,
			Message: fmt.Sprintf("the action %s is not valid for this endpoint: the simulated %s has no such operation", operation, service),
		}
	}
	input := reflect.New(method.Type().In(1).Elem())
	if err := fill(input.Interface()); err != nil {
		return "", nil, err
	}
	results := method.Call([]reflect.Value{reflect.ValueOf(r.Context()), input})
	if failed, ok := results[1].Interface().(error); ok && failed != nil {
		return "", nil, failed
	}
	return operation, results[0].Interface(), nil
}

// methodOf returns the service's method if it has the form of an operation:
// func(context.Context, *Input, ...func(*Options)) (*Output, error).
func methodOf(service reflect.Value, name string) (reflect.Value, bool) {
	if !service.IsValid() {
		return reflect.Value{}, false
	}
	m := service.MethodByName(name)
	return m, m.IsValid() && isOperation(m.Type())
}

func isOperation(t reflect.Type) bool {
	return t.NumIn() == 3 && t.IsVariadic() && t.In(0) == reflect.TypeFor[context.Context]() &&
		t.In(1).Kind() == reflect.Pointer && t.NumOut() == 2 && t.Out(1) == reflect.TypeFor[error]()
}

// serviceOf says which service a request is for: by the scope its signature is
// for, else by its target, path or version.
func serviceOf(r *http.Request, body []byte) string {
	if _, scope, ok := strings.Cut(r.Header.Get("Authorization"), "Credential="); ok {
		scope, _, _ = strings.Cut(scope, ",")
		if parts := strings.Split(scope, "/"); len(parts) == 5 {
			return parts[3]
		}
	}
	for _, known := range []struct{ in, has, service string }{
		{r.Header.Get("X-Amz-Target"), "AmazonSQS.", "sqs"},
		{r.Header.Get("X-Amz-Target"), "AmazonSSM.", "ssm"},
		{r.Header.Get("X-Amz-Target"), "AWSPriceListService.", "pricing"},
		{r.URL.Path, "/clusters/", "eks"},
		{r.URL.Path, "/managedresources/", "arc-zonal-shift"},
		{string(body), "Version=2016-11-15", "ec2"},
		{string(body), "Version=2010-05-08", "iam"},
	} {
		if strings.Contains(known.in, known.has) {
			return known.service
		}
	}
	return ""
}

// apiError returns the error that is sent to the client. An error that AWS
// would not send is an internal error of the simulation.
func apiError(err error) smithy.APIError {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return api
	}
	return &smithy.GenericAPIError{Code: "InternalError", Message: err.Error(), Fault: smithy.FaultServer}
}

// statusOf is the HTTP status of an error. EC2 asks for fewer calls with 503.
func statusOf(err smithy.APIError) int {
	switch {
	case err.ErrorCode() == "RequestLimitExceeded":
		return http.StatusServiceUnavailable
	case err.ErrorFault() == smithy.FaultServer:
		return http.StatusInternalServerError
	}
	return http.StatusBadRequest
}
