// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// Code returns the code of AWS's answer, or "" when the error is none.
func Code(err error) string {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return api.ErrorCode()
	}
	return ""
}

// Message returns the message of AWS's answer, without what callers have added,
// or "" when the error is none.
func Message(err error) string {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return api.ErrorMessage()
	}
	return ""
}

// NotFound reports whether the resource of the call does not exist.
func NotFound(err error) bool {
	return slices.Contains([]string{
		"InvalidCapacityReservationId.NotFound", "InvalidInstanceID.NotFound", "InvalidLaunchTemplateName.NotFoundException",
		"InvalidLaunchTemplateId.NotFound", "AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist", "NoSuchEntity", "ParameterNotFound",
	}, Code(err))
}

// AlreadyExists reports whether the resource to create exists already.
func AlreadyExists(err error) bool { return Code(err) == "EntityAlreadyExists" }

// WouldSucceed reports whether a dry run succeeded.
func WouldSucceed(err error) bool { return Code(err) == "DryRunOperation" }

// Unauthorized reports whether the caller lacks a permission.
func Unauthorized(err error) bool {
	return slices.Contains([]string{"UnauthorizedOperation", "AccessDenied", "AccessDeniedException"}, Code(err))
}

// Refused reports whether the account does not permit the call at all, or has
// no such resource, so that it is useless to call again soon.
func Refused(err error) bool {
	if answer, ok := errors.AsType[*smithyhttp.ResponseError](err); ok && answer.HTTPStatusCode() == http.StatusNotImplemented {
		return true
	}
	return Unauthorized(err) || slices.Contains([]string{
		"UnsupportedOperation", "Unsupported", "InvalidAction", "NotImplemented", "OptInRequired", "SubscriptionRequiredException",
	}, Code(err))
}

// RateLimited reports whether AWS asks for fewer calls: by any of the codes that
// the SDK retries as such, as EC2 says RequestLimitExceeded and most others
// ThrottlingException, or by the status of its answer.
func RateLimited(err error) bool {
	if answer, ok := errors.AsType[*smithyhttp.ResponseError](err); ok && answer.HTTPStatusCode() == http.StatusTooManyRequests {
		return true
	}
	_, throttled := retry.DefaultThrottleErrorCodes[Code(err)]
	return throttled
}

// ServerFault reports whether the error is a fault of AWS, by the HTTP status,
// because EC2's errors do not contain that.
func ServerFault(err error) bool {
	if answer, ok := errors.AsType[*smithyhttp.ResponseError](err); ok && answer.HTTPStatusCode() >= http.StatusInternalServerError {
		return true
	}
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && api.ErrorFault() == smithy.FaultServer
}

// ProfileMissing reports whether the instance profile of a launch does not
// exist, or not yet everywhere.
func ProfileMissing(err error) bool {
	return Code(err) == "InvalidParameterValue" && strings.Contains(err.Error(), "Invalid IAM Instance Profile name")
}

// UserDataTooLarge reports whether EC2 rejects the user data for its size.
func UserDataTooLarge(err error) bool {
	return Code(err) == "InvalidUserData.Malformed" && strings.Contains(err.Error(), "User data is limited to")
}
