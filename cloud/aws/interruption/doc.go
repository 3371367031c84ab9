// SPDX-License-Identifier: Apache-2.0

// Package interruption gives up NodeClaims whose instances AWS takes away, or
// whose machines are broken, while there is time to drain them.
//
// Queue reads the events that EventBridge puts into a queue of SQS. Statuses asks
// EC2 for failing status checks and scheduled events, which works without a
// queue. Both are for the leader only.
//
// A message is deleted when it has been dealt with, or can never be. It stays in
// the queue when something failed, and comes again after twenty seconds. To deal
// with it twice does no harm.
package interruption
