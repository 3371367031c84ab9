// Package manager makes the process around the controllers: how much they do
// in parallel, the manager that runs them with its caches, lease, probes and
// metrics, and the log.
package manager
