// SPDX-License-Identifier: Apache-2.0

// Package events publishes Kubernetes events about objects, without repeating
// them.
//
// A controller hands Events to a Recorder. Publisher is the Recorder that
// writes them to the cluster: it drops an Event whose reason and dedupe values
// it has seen within the Event's timeout, and drops (never delays) what
// exceeds the Event's rate limit. Events are therefore cheap to publish on
// every pass of a reconciler.
package events
