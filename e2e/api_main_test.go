// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"testing"

	"karpenter/e2e/harness"
)

// shared is the control plane of all tests in this package.
var shared = harness.NewShared(harness.Options{})

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }
