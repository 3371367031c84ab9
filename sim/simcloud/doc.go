// SPDX-License-Identifier: Apache-2.0

// Package simcloud is a cloud in memory: a cloud.Provider whose instances are
// not Nodes. Someone else boots them, looks after their prices and takes them
// back.
package simcloud
