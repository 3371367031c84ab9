// SPDX-License-Identifier: Apache-2.0

// Package status checks an installation of Karpenter. Each check has a verdict
// and, unless it passes, a remedy. Read collects Facts from the API server with
// the rights of the user. The checks are functions of these Facts.
package status
