// SPDX-License-Identifier: Apache-2.0

// Package interruption deletes NodeClaims whose instances AWS will interrupt,
// or whose hardware fails, while there is time to drain them.
//
// Queue reads the events that EventBridge puts into a queue of SQS. Statuses asks
// EC2 for failing status checks and scheduled events, which works without a
// queue. Both are for the leader only.
//
// A message is deleted after it has been handled, or if it can never be
// handled. After an error, it stays in the queue and is delivered again after
// twenty seconds. Handling a message twice does no harm.
package interruption
