// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/go-logr/logr"
)

// Values returns keys and values for a log line that identify a failed call to
// AWS, or none if the error is not from such a call. The SDK attaches all of it
// to its errors, so it is found however they are wrapped.
func Values(err error) []any {
	var out []any
	if operation, ok := errors.AsType[*smithy.OperationError](err); ok {
		out = append(out, "aws-service-name", operation.Service(), "aws-operation-name", operation.Operation())
	}
	if answer, ok := errors.AsType[*awshttp.ResponseError](err); ok && answer.ServiceRequestID() != "" {
		out = append(out, "aws-request-id", answer.ServiceRequestID())
	}
	if answer, ok := errors.AsType[*smithyhttp.ResponseError](err); ok && answer.HTTPStatusCode() != 0 {
		out = append(out, "aws-status-code", answer.HTTPStatusCode())
	}
	if code := Code(err); code != "" {
		out = append(out, "aws-error-code", code)
	}
	return out
}

// Logger returns a logger that adds the Values of errors to its lines.
func Logger(to logr.Logger) logr.Logger { return to.WithSink(sink{to.GetSink()}) }

// sink is a logr.LogSink that knows errors of AWS.
type sink struct{ logr.LogSink }

// Error implements logr.LogSink.
func (s sink) Error(err error, message string, values ...any) {
	if found := Values(err); len(found) > 0 {
		values = append(append([]any(nil), values...), found...)
	}
	to := s.LogSink
	if deep, ok := to.(logr.CallDepthLogSink); ok {
		to = deep.WithCallDepth(1) // the caller is the caller of this
	}
	to.Error(err, message, values...)
}

// WithValues implements logr.LogSink.
func (s sink) WithValues(values ...any) logr.LogSink { return sink{s.LogSink.WithValues(values...)} }

// WithName implements logr.LogSink.
func (s sink) WithName(name string) logr.LogSink { return sink{s.LogSink.WithName(name)} }

// WithCallDepth implements logr.CallDepthLogSink.
func (s sink) WithCallDepth(depth int) logr.LogSink {
	if deep, ok := s.LogSink.(logr.CallDepthLogSink); ok {
		return sink{deep.WithCallDepth(depth)}
	}
	return s
}
