// SPDX-License-Identifier: Apache-2.0

// Package situation reads the situation that the commands explain, plan and
// snapshot work on.
//
// The API server has pods, nodes, NodePools and other objects, for every user
// who may read them. It does not have what the leader learned from the cloud:
// which instance types each NodePool can launch, at which prices, and which are
// out of capacity. The leader publishes that in a ConfigMap called Name
// (Publisher). A command reads both with the rights of its user and builds the
// same Snapshot that the leader would (Live). So Kubernetes RBAC alone decides
// who sees what, no credential leaves the user's connection to the API server,
// and no port is opened.
package situation
