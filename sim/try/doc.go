// SPDX-License-Identifier: Apache-2.0

// Package try plays the cluster that make try shows: a shop on AWS, simulated in
// virtual time by the shipped controllers on an account in memory. The run is kept
// as a recording, which the commands read as they read a cluster.
package try
