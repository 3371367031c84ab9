// SPDX-License-Identifier: Apache-2.0

// Package arch holds no code: its tests keep the shape of the project, so that
// the picture in ARCHITECTURE.md stays true without anybody watching.
package arch
