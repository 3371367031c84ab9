// SPDX-License-Identifier: Apache-2.0

package provisioningrequest

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	autoscalingv1 "karpenter/api/autoscaling/v1"
	"karpenter/api/unreadable"
	"karpenter/kube/convert"
	"karpenter/kube/optional"
	"karpenter/kube/pods"
	"karpenter/model"
	"karpenter/world"
)

// most is how many pods one request can have.
const most = 10_000

// resolution is what a request asks for.
type resolution struct {
	pods      []world.Pod // that stand in for those that do not exist yet
	consumers int         // pods that exist and use its capacity
	reason    string      // why it asks for nothing now; "" = it does
	message   string
}

// set is what stands in for one pod set.
type set struct {
	pod   world.Pod // each of its pods, but for name and UID
	count int
}

// resolve returns what the request asks for. It returns an error if that cannot be
// determined now.
func (r *Reconciler) resolve(ctx context.Context, q *autoscalingv1.ProvisioningRequest) (*resolution, error) {
	if err := unreadable.Error(q); err != nil {
		return &resolution{reason: "Unreadable", message: err.Error()}, nil
	}
	sets, why, err := r.standIns(ctx, q)
	if err != nil || why != "" {
		return &resolution{reason: "PodTemplateNotFound", message: why}, err
	}
	limited, err := r.overLimits(ctx, q, sets)
	if err != nil || limited != "" {
		return &resolution{reason: "NamespaceLimits", message: limited}, err
	}
	consumers := &corev1.PodList{}
	if err := r.Client.List(ctx, consumers, client.InNamespace(q.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	out := &resolution{}
	done := r.endedOf(q)
	used := maps.Clone(done)
	for i := range consumers.Items {
		p := &consumers.Items[i]
		switch {
		case p.Annotations[autoscalingv1.ConsumeAnnotation] != q.Name:
		case !pods.Terminal(p):
			out.consumers++
			used[p.UID] = r.Convert.Pod(p).Shape.Requests
		case ranBooked(p, q):
			done[p.UID] = r.Convert.Pod(p).Shape.Requests
			used[p.UID] = done[p.UID]
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(used)) {
		use(sets, used[uid])
	}
	out.pods = named(q, sets)
	return out, nil
}

// ranBooked reports whether the pod, which has ended, was bound after the request
// was Provisioned, and so has used its part of the booked capacity.
func ranBooked(p *corev1.Pod, q *autoscalingv1.ProvisioningRequest) bool {
	is := meta.FindStatusCondition(q.Status.Conditions, autoscalingv1.Provisioned)
	if is == nil || is.Status != metav1.ConditionTrue {
		return false
	}
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue && !c.LastTransitionTime.Before(&is.LastTransitionTime)
	})
}

// ended sums up the requests of pods that have used the capacity of a request and ended.
// They count even after they are deleted, because no other pods replace them.
type ended struct {
	uid  types.UID // of the request
	pods map[types.UID]model.Resources
}

// endedOf returns those of the request, to add to.
func (r *Reconciler) endedOf(q *autoscalingv1.ProvisioningRequest) map[types.UID]model.Resources {
	key := client.ObjectKeyFromObject(q)
	if r.ended[key].uid != q.UID {
		if r.ended == nil {
			r.ended = map[client.ObjectKey]ended{}
		}
		r.ended[key] = ended{q.UID, map[types.UID]model.Resources{}}
	}
	return r.ended[key].pods
}

// use removes one pod from the sets: the last one with the same requests, or else the last
// one.
func use(sets []set, requests model.Resources) {
	last := -1
	for i := range sets {
		if sets[i].count > 0 && (last < 0 || sets[i].pod.Shape.Requests.Equal(requests) || !sets[last].pod.Shape.Requests.Equal(requests)) {
			last = i
		}
	}
	if last >= 0 {
		sets[last].count--
	}
}

// named returns the pods of the sets, the same whenever they are made. A UID stands for what
// the pod asks for, too: if the PodTemplate changes, these are other pods.
func named(q *autoscalingv1.ProvisioningRequest, sets []set) []world.Pod {
	var out []world.Pod
	for i := range sets {
		shape := fnv.New64a()
		_, _ = shape.Write([]byte(sets[i].pod.Shape.Key))
		for j := range sets[i].count {
			pod := sets[i].pod
			pod.Name = fmt.Sprintf("provisioning-request-%s-%d-%d", q.Name, i, j)
			pod.UID = fmt.Sprintf("%s-%d-%d-%x", q.UID, i, j, shape.Sum64())
			out = append(out, pod)
		}
	}
	return out
}

// standIns returns the pods that stand in for those of the request, or why
// there are none.
func (r *Reconciler) standIns(ctx context.Context, q *autoscalingv1.ProvisioningRequest) (sets []set, why string, err error) {
	all := 0
	for _, asked := range q.Spec.PodSets {
		t := &corev1.PodTemplate{}
		err := r.Client.Get(ctx, client.ObjectKey{Namespace: q.Namespace, Name: asked.PodTemplateRef.Name}, t)
		switch {
		case apierrors.IsNotFound(err):
			return nil, fmt.Sprintf("there is no PodTemplate %s in namespace %s", asked.PodTemplateRef.Name, q.Namespace), nil
		case errors.Is(err, optional.ErrUnread):
			return nil, err.Error(), nil
		case err != nil:
			return nil, "", err
		}
		count := max(int(asked.Count), 0)
		if all += count; all > most {
			return nil, fmt.Sprintf("it asks for more than %d pods", most), nil
		}
		pod := r.Convert.Pod(convert.StandIn(&t.Template, q.Namespace, q.CreationTimestamp))
		pod.Group = nameOf(client.ObjectKeyFromObject(q))
		sets = append(sets, set{pod, count})
	}
	return sets, "", nil
}

// overLimits says which limit of the namespace the request and those that come before it
// exceed together, "" if they exceed none.
func (r *Reconciler) overLimits(ctx context.Context, q *autoscalingv1.ProvisioningRequest, own []set) (string, error) {
	if len(r.Limits) == 0 {
		return "", nil
	}
	list := &autoscalingv1.ProvisioningRequestList{}
	if err := r.Client.List(ctx, list, client.InNamespace(q.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return "", err
	}
	sum := requested(own)
	for i := range list.Items {
		o := &list.Items[i]
		if o.UID == q.UID || !served(o) || over(o) || older(q, o) < 0 {
			continue
		}
		sets, _, err := r.standIns(ctx, o)
		if err != nil {
			return "", err
		}
		sum = sum.Plus(requested(sets))
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
func requested(sets []set) model.Resources {
	var sum model.Resources
	for i := range sets {
		sum = sum.Plus(sets[i].pod.Shape.Requests.Times(int64(sets[i].count)))
	}
	return sum
}
