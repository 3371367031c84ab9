// SPDX-License-Identifier: Apache-2.0

// Package aws tests the program with the AWS provider: real control plane, real
// SDK over HTTP, and an AWS that is simulated, by awssim and by moto. It holds
// nothing but tests.
package aws
