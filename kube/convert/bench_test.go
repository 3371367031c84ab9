// SPDX-License-Identifier: Apache-2.0

package convert_test

import "testing"

// BenchmarkPod converts one pod, as every event about one does.
func BenchmarkPod(b *testing.B) {
	c, p := converter(), plainPod()
	for b.Loop() {
		c.Pod(p)
	}
}
