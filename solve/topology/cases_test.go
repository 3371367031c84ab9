// SPDX-License-Identifier: Apache-2.0

package topology_test

import (
	"testing"

	"karpenter/scenario/scenariotest"
	"karpenter/solve"
)

// TestPeers runs the cases of rules between pods.
func TestPeers(t *testing.T) { scenariotest.Run(t, "testdata/peers", solve.Decide) }
