// SPDX-License-Identifier: Apache-2.0

// Package situation gets the situation that explain, plan and snapshot work on.
//
// The API server shows pods, nodes, NodePools and the rest to whoever may read
// them. It does not show what the leader learned from the cloud: which instance
// types each NodePool can launch, at which prices, and which are out of capacity. The
// leader publishes that in a ConfigMap called Name (Publisher). A command reads
// both with the rights of its user and builds the same Snapshot that the leader
// would (Live). So Kubernetes RBAC alone decides who sees what, no credential
// leaves the user's connection to the API server, and no port is opened.
package situation
