// SPDX-License-Identifier: Apache-2.0

// Package nodeoverlay keeps what NodeOverlays make of the instance types up to
// date: the controller nodeoverlay.controller evaluates all of them for all
// NodePools whenever one of either changes, says on each overlay what became
// of it, and then replaces the outcome everyone else works with.
//
// What an overlay means is decided by package cloud/overlay.
package nodeoverlay
