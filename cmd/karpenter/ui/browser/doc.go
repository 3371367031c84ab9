// SPDX-License-Identifier: Apache-2.0

// Package browser tests the page of karpenter ui in a real Chromium. It is a module
// of its own, so that the program does not depend on what drives the browser. Run it
// with make ui-test.
package browser
