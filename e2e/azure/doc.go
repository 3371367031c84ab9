// SPDX-License-Identifier: Apache-2.0

// Package azure tests the program with the provider for AKS: real control plane,
// real SDK over HTTPS, and an Azure that azuresim simulates. It holds nothing but
// tests.
package azure
