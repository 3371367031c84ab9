// SPDX-License-Identifier: Apache-2.0

// Package amazon lets runs of package sim use the AWS provider, as it is wired,
// on an account in memory (package awsfake). Every call of the provider to AWS
// waits for its turn and may fail; instances join the cluster as what their user
// data says. The Run's Cloud shows the account's instances.
//
// An instance is shown as that of the NodeClaim that records it, or else of one
// that its launch tags name: each claim gets one before any gets two. So two
// machines of one claim are more than were asked for.
package amazon
