// SPDX-License-Identifier: Apache-2.0

// Package manager sets up the process around the controllers: their
// parallelism, the controller-runtime manager with its caches, lease, probes
// and metrics, the log, and the fence. The fence prevents a replica that does
// not lead from changing anything.
package manager
