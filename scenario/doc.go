// SPDX-License-Identifier: Apache-2.0

// Package scenario is the text format of cluster situations and plans.
//
// One format serves unit tests, bug dumps, the offline commands and the
// documents: what a bug dump writes, a test reads without an edit. README.md
// beside this file is the manual of the language.
//
// Parse and Read turn text into a model.Snapshot, Print turns a Snapshot into
// text. Parse(Print(s)) equals s for every valid s: one whose Pending entries
// (and the Movable ones of a node) differ in shape key or Peer, whose Nodes are
// sorted by name, whose reasons and policies are known, whose Requirements,
// labels and lists of names are canonical and whose resource axis begins with
// the standard five.
//
// # How the text is read
//
// A line is a directive: a word, then names and options (key=value). The
// value of an option has a small grammar of its own (a list, a requirement
// set). So there are two layers, and a quote may be needed on either: the
// outer one when a value holds spaces, the inner one when an atom holds a
// character of the inner grammar. Print quotes exactly where it must.
//
// Reading has two phases, so that the order of directives does not matter:
// lines are collected per directive first, then types, pools, nodes, daemons
// and pods are built in that order. What follows from other lines (a node's
// requests from its pods, a pool's usage from its nodes) is filled in last.
package scenario
