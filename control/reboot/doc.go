// SPDX-License-Identifier: Apache-2.0

// Package reboot restarts the instances of NodeClaims in place.
//
// Reconciler is the controller nodeclaim.reboot. The disruption loop requests a
// reboot by the condition Rebooting, whose reason is the phase. RebootRequested:
// the Node is tainted and drained, then the provider is asked. RebootIssued: the
// controller waits until the Node is Ready with a new boot ID. If a reboot
// fails, its NodeClaim is deleted, so that the instance is replaced.
//
// Invariants:
//
//  1. The provider is asked only after the boot ID from before is stored, so a
//     new process can tell whether the instance has rebooted already.
//  2. The start of every time limit is stored on the NodeClaim, so a restart of the
//     controller extends no limit.
package reboot
