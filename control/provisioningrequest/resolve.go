// SPDX-License-Identifier: Apache-2.0

package provisioningrequest

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	autoscalingv1 "karpenter/api/autoscaling/v1"
	"karpenter/kube/convert"
	"karpenter/kube/optional"
	"karpenter/model"
	"karpenter/world"
)

// most is how many pods one request can have.
const most = 10_000

// resolution is what a request was found to ask for.
type resolution struct {
	pods      []world.Pod // that stand in for those that do not exist yet
	consumers int         // pods that exist and use its capacity
	reason    string      // why it asks for nothing now; "" = it does
	message   string
}

// resolve finds out what the request asks for. An error means that it could not be found
// out.
func (r *Reconciler) resolve(ctx context.Context, q *autoscalingv1.ProvisioningRequest) (*resolution, error) {
	all, why, err := r.standIns(ctx, q)
	if err != nil || why != "" {
		return &resolution{reason: "PodTemplateNotFound", message: why}, err
	}
	limited, err := r.overLimits(ctx, q, all)
	if err != nil || limited != "" {
		return &resolution{reason: "NamespaceLimits", message: limited}, err
	}
	consumers := &corev1.PodList{}
	if err := r.Client.List(ctx, consumers, client.InNamespace(q.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	out := &resolution{pods: all}
	for i := range consumers.Items {
		p := &consumers.Items[i]
		if p.Annotations[autoscalingv1.ConsumeAnnotation] == q.Name && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			out.consumers++
			out.pods = without(out.pods, r.Convert.Pod(p).Shape.Requests)
		}
	}
	return out, nil
}

// without removes the last pod that requests as much, or else the last one.
func without(pods []world.Pod, requests model.Resources) []world.Pod {
	for i := len(pods) - 1; i >= 0; i-- {
		if pods[i].Shape.Requests.Equal(requests) {
			return append(pods[:i:i], pods[i+1:]...)
		}
	}
	return pods[:max(len(pods)-1, 0)]
}

// standIns returns the pods that stand in for the request, the same whenever they are
// made, or why there are none.
func (r *Reconciler) standIns(ctx context.Context, q *autoscalingv1.ProvisioningRequest) (pods []world.Pod, why string, err error) {
	for i, set := range q.Spec.PodSets {
		t := &corev1.PodTemplate{}
		err := r.Client.Get(ctx, client.ObjectKey{Namespace: q.Namespace, Name: set.PodTemplateRef.Name}, t)
		switch {
		case apierrors.IsNotFound(err):
			return nil, fmt.Sprintf("there is no PodTemplate %s in namespace %s", set.PodTemplateRef.Name, q.Namespace), nil
		case errors.Is(err, optional.ErrUnread):
			return nil, err.Error(), nil
		case err != nil:
			return nil, "", err
		}
		if len(pods)+int(set.Count) > most {
			return nil, fmt.Sprintf("it asks for more than %d pods", most), nil
		}
		pod := r.Convert.Pod(convert.StandIn(&t.Template, q.Namespace, q.CreationTimestamp))
		pod.Group = nameOf(client.ObjectKeyFromObject(q))
		for j := range int(set.Count) {
			pod.Name = fmt.Sprintf("provisioning-request-%s-%d-%d", q.Name, i, j)
			pod.UID = fmt.Sprintf("%s-%d-%d", q.UID, i, j)
			pods = append(pods, pod)
		}
	}
	return pods, "", nil
}

// overLimits says which limit of the namespace the request and those that come before it
// exceed together, "" if they exceed none.
func (r *Reconciler) overLimits(ctx context.Context, q *autoscalingv1.ProvisioningRequest, own []world.Pod) (string, error) {
	if len(r.Limits) == 0 {
		return "", nil
	}
	list := &autoscalingv1.ProvisioningRequestList{}
	if err := r.Client.List(ctx, list, client.InNamespace(q.Namespace)); err != nil {
		return "", err
	}
	sum := requested(own)
	for i := range list.Items {
		o := &list.Items[i]
		if o.UID == q.UID || !served(o) || over(o) || older(q, o) < 0 {
			continue
		}
		pods, _, err := r.standIns(ctx, o)
		if err != nil {
			return "", err
		}
		sum = sum.Plus(requested(pods))
	}
	limits := r.Convert.Resources(r.Limits)
	for i, limit := range limits {
		if limit > 0 && sum.At(i) > limit {
			return fmt.Sprintf("it waits for other requests to end: all of the namespace may request %s together, and older ones come first",
				limits.Format(r.Convert.Axis.Names())), nil
		}
	}
	return "", nil
}

// requested sums up what the pods request.
func requested(pods []world.Pod) model.Resources {
	var sum model.Resources
	for i := range pods {
		sum = sum.Plus(pods[i].Shape.Requests)
	}
	return sum
}
