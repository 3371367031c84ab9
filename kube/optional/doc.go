// SPDX-License-Identifier: Apache-2.0

// Package optional keeps kinds of objects that the process can do without apart from those
// it needs. An API server that does not serve an optional kind, denies access to it, or
// fails to list it delays nothing: the manager does not wait for it, and reading it
// returns an error that wraps ErrUnread. Its informer tries again, at least every minute,
// and calls its handlers when it succeeds.
package optional
