// SPDX-License-Identifier: Apache-2.0

package capacitybuffer

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/api/autoscaling/v1beta1"
	"karpenter/api/unreadable"
	"karpenter/kube/convert"
	"karpenter/kube/optional"
	"karpenter/model"
	"karpenter/world"
)

// resolution is what a buffer requests.
type resolution struct {
	// Of the condition ReadyForProvisioning.
	reason, message string
	invalid         bool // no change elsewhere can help

	// Nil unless it names a PodTemplate that is there.
	template   *v1beta1.LocalObjectRef
	generation *int64

	pods    []world.Pod     // to keep capacity for
	each    model.Resources // of one of them, itself included
	limited string          // why there are fewer than the buffer asks for; "" = there are not
}

// limit keeps as many of the pods as the limits of the namespace allow.
func (x *resolution) limit(n int, limits corev1.ResourceList) {
	x.limited = fmt.Sprintf("capacity is kept for %d of %d pods: the buffers of a namespace may request %s together, and older buffers come first",
		n, len(x.pods), text(limits))
	x.message, x.pods = x.limited, x.pods[:n]
}

func (x *resolution) ready() bool { return x.reason == v1beta1.ResolvedReason }

// target is the object that a buffer refers to.
type target struct {
	pods     *corev1.PodTemplateSpec
	replicas *int32 // of a workload; nil = it is a PodTemplate
}

// resolve returns what the buffer requests. It returns an error if that cannot
// be determined now.
func (r *Reconciler) resolve(ctx context.Context, b *v1beta1.CapacityBuffer) (*resolution, error) {
	if err := unreadable.Error(b); err != nil {
		return &resolution{reason: v1beta1.ResolutionFailedReason, message: err.Error(), invalid: true}, nil
	}
	switch {
	case b.Spec.PodTemplateRef != nil:
		return r.resolveTemplate(ctx, b)
	case b.Spec.ScalableRef != nil:
		return r.resolveWorkload(ctx, b)
	}
	return &resolution{reason: v1beta1.ResolutionFailedReason, message: "neither podTemplateRef nor scalableRef is set"}, nil
}

func (r *Reconciler) resolveTemplate(ctx context.Context, b *v1beta1.CapacityBuffer) (*resolution, error) {
	t := &corev1.PodTemplate{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: b.Namespace, Name: b.Spec.PodTemplateRef.Name}, t)
	if apierrors.IsNotFound(err) {
		return &resolution{
			reason:  v1beta1.PodTemplateNotFoundReason,
			message: fmt.Sprintf("there is no PodTemplate %s in namespace %s", b.Spec.PodTemplateRef.Name, b.Namespace),
		}, nil
	}
	if err != nil {
		return unresolved(err)
	}
	out := r.size(b, target{pods: &t.Template})
	out.template, out.generation = &v1beta1.LocalObjectRef{Name: t.Name}, &t.Generation
	return out, nil
}

func (r *Reconciler) resolveWorkload(ctx context.Context, b *v1beta1.CapacityBuffer) (*resolution, error) {
	ref := b.Spec.ScalableRef
	kind := workloads()[ref.Kind]
	if kind.empty == nil || ref.APIGroup != "" && ref.APIGroup != appsv1.GroupName {
		return &resolution{
			reason: v1beta1.ResolutionFailedReason, invalid: true,
			message: fmt.Sprintf("scalableRef names a %s of API group %q; it can be a Deployment, StatefulSet or ReplicaSet of group %s",
				ref.Kind, ref.APIGroup, appsv1.GroupName),
		}, nil
	}
	o := kind.empty()
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: b.Namespace, Name: ref.Name}, o)
	if apierrors.IsNotFound(err) {
		return &resolution{
			reason:  v1beta1.ScalableRefNotFoundReason,
			message: fmt.Sprintf("there is no %s %s in namespace %s", ref.Kind, ref.Name, b.Namespace),
		}, nil
	}
	if err != nil {
		return unresolved(err)
	}
	return r.size(b, kind.target(o)), nil
}

// unresolved returns the error. If a retry is useless until the kind can be read, it
// returns a resolution that reports the error in the buffer's status instead.
func unresolved(err error) (*resolution, error) {
	if errors.Is(err, optional.ErrUnread) {
		return &resolution{reason: v1beta1.ResolutionFailedReason, message: err.Error()}, nil
	}
	return nil, err
}

// workload is a kind that scalableRef may name.
type workload struct {
	empty  func() client.Object
	target func(client.Object) target
}

// workloads returns the kinds that scalableRef may name, all of the group apps.
func workloads() map[string]workload {
	return map[string]workload{
		"Deployment": {func() client.Object { return &appsv1.Deployment{} }, func(o client.Object) target {
			d := o.(*appsv1.Deployment)
			return target{&d.Spec.Template, replicas(d.Spec.Replicas)}
		}},
		"StatefulSet": {func() client.Object { return &appsv1.StatefulSet{} }, func(o client.Object) target {
			s := o.(*appsv1.StatefulSet)
			return target{&s.Spec.Template, replicas(s.Spec.Replicas)}
		}},
		"ReplicaSet": {func() client.Object { return &appsv1.ReplicaSet{} }, func(o client.Object) target {
			s := o.(*appsv1.ReplicaSet)
			return target{&s.Spec.Template, replicas(s.Spec.Replicas)}
		}},
	}
}

// replicas returns the number of replicas with the default of the API.
func replicas(given *int32) *int32 {
	if given != nil {
		return given
	}
	one := int32(1)
	return &one
}

// size makes the pods that stand in for the buffer.
func (r *Reconciler) size(b *v1beta1.CapacityBuffer, t target) *resolution {
	pod := r.Convert.Pod(convert.StandIn(t.pods, b.Namespace, b.CreationTimestamp))
	requests := r.Convert.Requested(&pod)
	delete(requests, corev1.ResourcePods) // the pods' number is what is asked for
	n := b.Spec.DesiredReplicas(t.replicas, requests)
	out := &resolution{reason: v1beta1.ResolvedReason, message: fmt.Sprintf("keeping capacity for %d pods", n)}
	if n > most {
		out.message = fmt.Sprintf("keeping capacity for %d of %d pods: a buffer can have at most %d", most, n, most)
		n = most
	}
	out.pods = standIns(b, pod, int(n))
	out.each = r.Convert.Resources(r.limited(requests)).With(model.Pods, 1)
	return out
}
