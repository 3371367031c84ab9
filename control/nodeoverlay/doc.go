// SPDX-License-Identifier: Apache-2.0

// Package nodeoverlay applies NodeOverlays to instance types. The controller
// nodeoverlay.controller evaluates all overlays for all NodePools whenever one
// of them changes. It reports the result in the status of each overlay, and
// then replaces the overlaid instance types that other controllers use.
//
// What an overlay means is decided by package cloud/overlay.
package nodeoverlay
