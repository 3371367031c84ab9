// SPDX-License-Identifier: Apache-2.0

// Package ui serves a read-only page about a cluster, and the JSON that the page
// shows, to browsers on the same machine.
//
//	Moment  the state of a cluster at one time; a command reads it
//	Server  the page, and the answers about the Moment shown last (Show)
//	web/    sources of the page; built/ has the result of npm, which is embedded
//
// The answers come from packages explain, plan, status and top. Only the bill is
// computed here: it divides the cost of each node among the pods on it.
//
// docs/ui.md describes the JSON. A field keeps its meaning as long as the path
// begins with /api/v1.
package ui
