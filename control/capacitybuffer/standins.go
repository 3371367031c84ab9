// SPDX-License-Identifier: Apache-2.0

package capacitybuffer

import (
	"fmt"

	"karpenter/api/autoscaling/v1beta1"
	"karpenter/world"
)

// most is the maximum number of pods of one buffer.
const most = 10_000

// standIns returns n pods like the one given, the same whenever they are made
// for this buffer.
func standIns(b *v1beta1.CapacityBuffer, pod world.Pod, n int) []world.Pod {
	out := make([]world.Pod, n)
	for i := range out {
		out[i] = pod
		out[i].Name = fmt.Sprintf("capacity-buffer-%s-%d", b.Name, i+1)
		out[i].UID = fmt.Sprintf("%s-%d", b.UID, i+1)
	}
	return out
}
