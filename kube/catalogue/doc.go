// SPDX-License-Identifier: Apache-2.0

// Package catalogue keeps the world informed of what can be launched: it asks
// the provider for the instance types of every NodePool.
package catalogue
