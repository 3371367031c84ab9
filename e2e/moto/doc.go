// SPDX-License-Identifier: Apache-2.0

// Package moto tests what we think AWS does against moto, a third-party
// emulator of AWS, over HTTP and with the SDK's real clients, so that our own
// simulation (cloud/aws/awsfake) is not the only witness. It holds nothing but
// tests; harness.StartMoto runs moto, README.md says what it cannot do.
package moto
