// SPDX-License-Identifier: Apache-2.0

package cloud

import "errors"

// NotFoundError reports that the instance no longer exists.
type NotFoundError struct{ Err error }

func (e *NotFoundError) Error() string { return prefixed("machine not found", e.Err) }
func (e *NotFoundError) Unwrap() error { return e.Err }

// InsufficientCapacityError reports that no offering that the claim allows can
// be launched now. The claim is abandoned and its pods are planned again.
type InsufficientCapacityError struct{ Err error }

func (e *InsufficientCapacityError) Error() string { return prefixed("insufficient capacity", e.Err) }
func (e *InsufficientCapacityError) Unwrap() error { return e.Err }

// NodeClassNotReadyError reports that the claim's NodeClass can't launch
// instances now. The claim is abandoned and its pods are planned again.
type NodeClassNotReadyError struct{ Err error }

func (e *NodeClassNotReadyError) Error() string { return prefixed("node class not ready", e.Err) }
func (e *NodeClassNotReadyError) Unwrap() error { return e.Err }

// CreateError carries the reason and message to show on the claim's Launched
// condition while the launch is retried.
type CreateError struct {
	Reason, Message string
	Err             error
}

func (e *CreateError) Error() string { return prefixed("create failed", e.Err) }
func (e *CreateError) Unwrap() error { return e.Err }

// UnevaluatedNodePoolError reports that the instance types of a NodePool are
// not known yet, because its NodeOverlays have not been evaluated. Nothing is
// launched for the pool until they are.
type UnevaluatedNodePoolError struct{ Err error }

func (e *UnevaluatedNodePoolError) Error() string { return prefixed("overlays not evaluated", e.Err) }
func (e *UnevaluatedNodePoolError) Unwrap() error { return e.Err }

// RebootNotImplementedError reports that the provider cannot reboot instances.
type RebootNotImplementedError struct{ Err error }

func (e *RebootNotImplementedError) Error() string { return prefixed("reboot not implemented", e.Err) }
func (e *RebootNotImplementedError) Unwrap() error { return e.Err }

// RebootFailedError reports that the cloud rejected the reboot of the instance,
// and that trying again does not help.
type RebootFailedError struct{ Err error }

func (e *RebootFailedError) Error() string { return prefixed("reboot failed", e.Err) }
func (e *RebootFailedError) Unwrap() error { return e.Err }

func prefixed(kind string, cause error) string {
	if cause == nil {
		return kind
	}
	return kind + ", " + cause.Error()
}

// IsNotFound reports whether err is or wraps a NotFoundError.
func IsNotFound(err error) bool { return is[*NotFoundError](err) }

// IsInsufficientCapacity reports whether err is or wraps an InsufficientCapacityError.
func IsInsufficientCapacity(err error) bool { return is[*InsufficientCapacityError](err) }

// IsNodeClassNotReady reports whether err is or wraps a NodeClassNotReadyError.
func IsNodeClassNotReady(err error) bool { return is[*NodeClassNotReadyError](err) }

// IsRebootNotImplemented reports whether err is or wraps a RebootNotImplementedError.
func IsRebootNotImplemented(err error) bool { return is[*RebootNotImplementedError](err) }

// IsRebootFailed reports whether err is or wraps a RebootFailedError.
func IsRebootFailed(err error) bool { return is[*RebootFailedError](err) }

// IsCreateError reports whether err is or wraps a CreateError.
func IsCreateError(err error) bool { return is[*CreateError](err) }

// IsUnevaluatedNodePool reports whether err is or wraps an UnevaluatedNodePoolError.
func IsUnevaluatedNodePool(err error) bool { return is[*UnevaluatedNodePoolError](err) }

func is[T error](err error) bool {
	var target T
	return errors.As(err, &target)
}
