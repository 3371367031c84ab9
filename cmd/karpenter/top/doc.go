// SPDX-License-Identifier: Apache-2.0

// Package top shows what happens to the nodes of a cluster: the nodes, their
// cost compared with the proven minimum, and why each node was launched or is
// removed.
//
//	Objects   the objects of the cluster (Read)
//	View      what a person sees of it at one moment (Of)
//	Happened  what changed from one View to the next (Between)
//	Screen    a View drawn on a terminal (Render)
//	Model     the keys and the screen of a terminal program (bubbletea)
//	Source    where Objects come from: watches of a cluster, or a recording
//
// Of, Between and Render are functions of their arguments: they read no clock and
// no cluster. So a screen can be drawn again from a recording, and tests hold the
// recorded screens against the program.
package top
