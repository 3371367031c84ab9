// SPDX-License-Identifier: Apache-2.0

package client

import "strings"

// reasons explains failed launches to users. The first entry whose texts are
// all in the error counts.
var reasons = []struct {
	texts           []string
	reason, message string
}{
	{[]string{"AuthFailure.ServiceLinkedRoleCreationNotPermitted"}, "SpotSLRCreationFailed", "User does not have sufficient permission to create the Spot ServiceLinkedRole to launch spot instances"},
	{[]string{denied, "with an explicit deny in a permissions boundary"}, "Unauthorized", unauthorized + "due to a permission boundary"},
	{[]string{denied, "with an explicit deny in a service control policy"}, "Unauthorized", unauthorized + "due to a service control policy"},
	{[]string{denied, "Not authorized for images"}, "AMIAuthorizationFailure", "User is not authorized for AMI used in instance launch"},
	{[]string{denied}, "Unauthorized", unauthorized + "because no identity-based policy allows it"},
	{[]string{"InvalidParameter", "belong to different networks"}, "SecurityGroupSubnetVPCMismatch", "Security groups and subnets must be in the same VPC."},
	{[]string{"iamInstanceProfile.name is invalid"}, "InstanceProfileNameInvalid", "Instance profile name used from EC2NodeClass status does not exist"},
	{[]string{"InvalidLaunchTemplateId.NotFound"}, "LaunchTemplateNotFound", "Launch template used for instance launch wasn't found"},
	{[]string{"User data is limited to"}, "UserDataSizeLimitExceeded", "Rendered user data exceeds the EC2 user data size limit"},
	{[]string{"InvalidAMIID.Malformed"}, "InvalidAMIID", "AMI used for instance launch is invalid"},
	{[]string{"InvalidAMIID.NotFound"}, "AMINotFound", "AMI used for instance launch either does not exist or you don't have permissions to use it"},
	{[]string{"RequestLimitExceeded"}, "RequestLimitExceeded", "Request limit exceeded"},
	{[]string{"InternalError"}, "InternalError", "An internal error has occurred"},
	{[]string{"not eligible for Free Tier"}, "FreeTierIneligible", "The specified instance type is not eligible for Free Tier"},
	{[]string{"MaxFleetCountExceeded"}, "FleetQuotaExceeded", "A fleet launch was requested but this would exceed your fleet request quota"},
	{[]string{"PendingVerification"}, "AccountPendingVerification", "An instance launch was requested but the request for launching resources in this region is still being verified"},
	{[]string{"MaxSpotInstanceCountExceeded"}, "SpotQuotaExceeded", "A spot instance launch was requested but this would exceed your spot instance quota"},
	{[]string{"VcpuLimitExceeded"}, "VCPULimitExceeded", "An instance was requested that would exceed your VCPU quota"},
	{[]string{"InsufficientFreeAddressesInSubnet"}, "InsufficientFreeAddressesInSubnet", "There are not enough free IP addresses to launch an instance in this subnet"},
}

const (
	unauthorized = "User is not authorized to perform this operation "
	// denied stands for any of the codes below.
	denied = "denied"
)

// LaunchFailed is the reason of errors without their own reason.
const LaunchFailed = "LaunchFailed"

// Reason returns a condition's reason and message for a failed launch, from the
// text of its error.
func Reason(text string) (reason, message string) {
	for _, r := range reasons {
		if all(text, r.texts) {
			return r.reason, r.message
		}
	}
	return LaunchFailed, "Instance launch failed"
}

func all(text string, parts []string) bool {
	for _, part := range parts {
		if part == denied && (strings.Contains(text, "UnauthorizedOperation") || strings.Contains(text, "AccessDenied") || strings.Contains(text, "AuthFailure")) {
			continue
		}
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}
