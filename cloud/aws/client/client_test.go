// SPDX-License-Identifier: Apache-2.0

package client

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

func TestReason(t *testing.T) {
	for text, want := range map[string]string{
		"AuthFailure.ServiceLinkedRoleCreationNotPermitted: no":                      "SpotSLRCreationFailed",
		"UnauthorizedOperation: no, with an explicit deny in a permissions boundary": "Unauthorized",
		"AccessDenied: Not authorized for images: [ami-1]":                           "AMIAuthorizationFailure",
		"AuthFailure: ": "Unauthorized",
		"InvalidParameter: Security group sg-1 and subnet subnet-1 belong to different networks.":            "SecurityGroupSubnetVPCMismatch",
		"InvalidParameterValue: Value (x) for parameter iamInstanceProfile.name is invalid.":                 "InstanceProfileNameInvalid",
		"VcpuLimitExceeded: You have requested more vCPU capacity than your current vCPU limit of 32 allows": "VCPULimitExceeded",
		"InsufficientFreeAddressesInSubnet: There are not enough free addresses in subnet 'subnet-1'":        "InsufficientFreeAddressesInSubnet",
		"SomethingNew: that nobody has seen": "LaunchFailed",
	} {
		if got, message := Reason(text); got != want || message == "" {
			t.Errorf("%s: %s (%s), want %s", text, got, message, want)
		}
	}
}

// status is an error as the SDK makes them of EC2's answers.
func status(code int, apiCode string) error {
	return &smithy.OperationError{ServiceID: "EC2", Err: &smithyhttp.ResponseError{
		Response: &smithyhttp.Response{Response: &http.Response{StatusCode: code}},
		Err:      &smithy.GenericAPIError{Code: apiCode},
	}}
}

func TestCodes(t *testing.T) {
	wrapped := func(code, message string) error {
		return fmt.Errorf("calling: %w", &smithy.GenericAPIError{Code: code, Message: message, Fault: smithy.FaultServer})
	}
	for name, ok := range map[string]bool{
		"not found":      NotFound(wrapped("InvalidInstanceID.NotFound", "")),
		"exists":         AlreadyExists(wrapped("EntityAlreadyExists", "")),
		"dry run":        WouldSucceed(wrapped("DryRunOperation", "")),
		"unauthorized":   Unauthorized(wrapped("UnauthorizedOperation", "")),
		"refused":        Refused(wrapped("UnsupportedOperation", "")) && Refused(wrapped("AccessDenied", "")) && !Refused(wrapped("RequestLimitExceeded", "")),
		"message":        Message(wrapped("AccessDenied", "no")) == "no" && Message(fmt.Errorf("no")) == "",
		"rate":           RateLimited(wrapped("RequestLimitExceeded", "")) && !RateLimited(wrapped("InternalError", "")) && !RateLimited(nil),
		"rate of EKS":    RateLimited(wrapped("ThrottlingException", "")) && RateLimited(wrapped("Throttling", "")) && RateLimited(wrapped("TooManyRequestsException", "")),
		"rate by status": RateLimited(status(http.StatusTooManyRequests, "Busy")),
		"server":         ServerFault(wrapped("InternalError", "")),
		"profile":        ProfileMissing(wrapped("InvalidParameterValue", "Value (p) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name")),
		"status":         ServerFault(status(http.StatusServiceUnavailable, "Unavailable")) && !ServerFault(status(http.StatusBadRequest, "InvalidParameter")),
		"user data":      UserDataTooLarge(wrapped("InvalidUserData.Malformed", "User data is limited to 16384 bytes")),
		"no AWS error":   !NotFound(fmt.Errorf("InvalidInstanceID.NotFound")) && Code(nil) == "",
		"price list":     PricingServed("us-east-1") && PricingServed("cn-northwest-1") && PricingServed("eu-west-3") && PricingServed("mx-central-1"),
		"no price list":  !PricingServed("us-gov-east-1") && !PricingServed("us-isob-east-1") && !PricingServed("eu-isoe-west-1") && !PricingServed("eusc-de-east-1"),
		"somewhere else": PricingRegion("eu-west-3") == "eu-central-1" && PricingRegion("us-gov-west-1") == "us-east-1",
	} {
		if !ok {
			t.Errorf("%s: not recognised", name)
		}
	}
}
