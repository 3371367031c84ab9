// SPDX-License-Identifier: Apache-2.0

// Package manager makes the process around the controllers: how much they do
// in parallel, the manager that runs them with its caches, lease, probes and
// metrics, the fence that keeps who does not lead from changing anything, and
// the log.
package manager
