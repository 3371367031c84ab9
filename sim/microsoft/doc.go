// SPDX-License-Identifier: Apache-2.0

// Package microsoft lets runs of package sim use the provider for AKS, as it is
// wired, on a subscription in memory (package azurefake). Every request of the
// provider to Azure waits for its turn and may fail before it is carried out or
// after; the Azure SDK repeats it as it does against Azure. The Run's Cloud shows
// the subscription's virtual machines.
//
// A machine whose creation will fail never becomes a virtual machine, so it is not
// shown. The subscription sees to it that none of them stays (Look); nor a network
// interface without a virtual machine and a NodeClaim, nor a virtual machine that AKS
// does not bill.
package microsoft
