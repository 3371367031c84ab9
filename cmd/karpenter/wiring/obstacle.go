// SPDX-License-Identifier: Apache-2.0

package wiring

import "karpenter/control/obstacle"

// obstacles adds the controller that names what keeps nodes from leaving.
func (w *wiring) obstacles() error {
	return (&obstacle.Reconciler{
		Client: w.mgr.GetClient(), Provider: w.provider, Clock: w.clock, Recorder: w.recorder,
	}).Register(w.mgr, w.many())
}
