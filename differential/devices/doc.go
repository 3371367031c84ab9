// SPDX-License-Identifier: Apache-2.0

// Package devices holds our verdicts on ResourceClaims against those of the allocator
// that kube-scheduler uses, on random situations. Both get the same objects of the
// API: ours by way of package kube/devices, the converter.
package devices
