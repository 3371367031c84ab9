// SPDX-License-Identifier: Apache-2.0

// Package launch decides how a NodeClaim is launched: which instance type, in
// which zone, on demand or as spot, with which tags. It computes with values only.
package launch
