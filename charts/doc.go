// SPDX-License-Identifier: Apache-2.0

// Package charts holds the Helm charts, and tests them with Helm itself.
package charts
