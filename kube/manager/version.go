// SPDX-License-Identifier: Apache-2.0

package manager

// Version is the version of this project that the program is built from. The
// charts, the image and the kubectl plugin have the same version.
const Version = "0.1.0"

// Upstream is the newest release of upstream Karpenter whose API, settings and
// metrics the program is compatible with.
const Upstream = "1.15"
