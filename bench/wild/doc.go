// SPDX-License-Identifier: Apache-2.0

// Package wild draws planning problems that the planner was not tuned for.
//
// A problem belongs to a family, which says what the pods ask for, and has a
// size: a number of Deployments and a number of existing nodes. Everything else
// is drawn from the seed. Equal Cases give equal problems on any machine.
//
// # Vocabulary
//
//   - family: a function that draws the pending pods of a problem;
//   - pending: pods without a node, which a plan has to place;
//   - running: pods bound to the existing nodes when the problem begins. Where the
//     family allows it, they are replicas of the same Deployments, so that
//     constraints between pods count them.
package wild
