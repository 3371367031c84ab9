// SPDX-License-Identifier: Apache-2.0

// Package simcloud is a cloud in memory: a cloud.Provider whose machines are
// not Nodes. Somebody else boots them, looks after their prices and takes them
// back.
package simcloud
