// SPDX-License-Identifier: Apache-2.0

// Package wrap adds behavior to a cloud.Provider from the outside. A wrapped
// provider keeps the contract of package cloud.
package wrap
