// SPDX-License-Identifier: Apache-2.0

// Package client is how the provider reaches Azure: the cloud and the credentials,
// the clients of the Azure SDK, and Azure's answers in the types of this provider.
// What changes something is sent only while this replica leads.
package client
