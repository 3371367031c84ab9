// SPDX-License-Identifier: Apache-2.0

// Package pods classifies pods for draining and disruption.
//
//	terminal       has ended: phase Succeeded or Failed
//	terminating    has a deletion timestamp
//	active         neither of the two
//	static         owned by its Node: the kubelet runs it from a file
//	stuck          terminating, and more than a minute past its grace
//	drainable      leaves the node before the machine does: not tolerating the
//	               disrupted taint, not stuck, not static
//	waiting        drainable and not terminal: a drain waits for it
//	evictable      active, not tolerating, not static, not protected
//	reschedulable  needs a place elsewhere when its node is removed
//	protected      carries karpenter.sh/do-not-disrupt, and it is in force
//
// Everything is a function of the pod and the time; nothing here is stored.
package pods
