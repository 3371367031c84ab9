// SPDX-License-Identifier: Apache-2.0

// Package status checks an installation of Karpenter: each check has a verdict and,
// unless all is well, a remedy. Read gets what the checks are about from the API
// server, with the rights of the user; the checks themselves are functions of that.
package status
