// SPDX-License-Identifier: Apache-2.0

package situation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"karpenter/kube/convert"
	"karpenter/kube/devices"
	"karpenter/kube/feed"
	"karpenter/kube/spread"
	"karpenter/kube/volumes"
	"karpenter/model"
	"karpenter/scenario"
	"karpenter/world"
)

// page is how many objects one request asks for.
const page = 500

// Viewer is the ClusterRole of the chart that lets its subjects ask.
const Viewer = "karpenter-viewer"

// Reader reads a cluster with the rights of a user.
type Reader struct {
	Client client.Reader
	Scheme *runtime.Scheme
	// Namespace is where Karpenter is installed; "" = to be found.
	Namespace string
	// Progress is called with the kind that is being read and the number of
	// objects so far; nil means no call.
	Progress func(kind string, count int)
}

// ErrNotPublished reports that no leader has published its offerings.
var ErrNotPublished = errors.New("found no ConfigMap " + Name)

// Live returns the situation of the cluster at the time, with the pods in it.
func (r *Reader) Live(ctx context.Context, now time.Time) (scenario.Situation, []*corev1.Pod, error) {
	published, _, err := r.Published(ctx)
	if err != nil {
		return scenario.Situation{}, nil, err
	}
	var pods []*corev1.Pod
	s, err := Build(published, now, r.Listing(ctx, func(p *corev1.Pod) { pods = append(pods, p) }))
	return s, pods, Hinted(err)
}

// Listing returns List in the form that Build needs. It passes every pod to the
// function pod.
func (r *Reader) Listing(ctx context.Context, pod func(*corev1.Pod)) func(client.Object) ([]client.Object, error) {
	return func(kind client.Object) ([]client.Object, error) {
		objects, err := r.List(ctx, kind)
		for _, o := range objects {
			if p, ok := o.(*corev1.Pod); ok {
				pod(p)
			}
		}
		return objects, err
	}
}

// Published finds and reads what the leader published, and when it last changed;
// the zero time if that is not known.
func (r *Reader) Published(ctx context.Context) (Published, time.Time, error) {
	m, err := r.find(ctx)
	if err != nil {
		return Published{}, time.Time{}, err
	}
	var changed time.Time
	for _, f := range m.ManagedFields {
		if f.Time != nil && f.Time.After(changed) {
			changed = f.Time.Time
		}
	}
	out, err := Parse(m)
	return out, changed, err
}

// Home returns the namespace of Karpenter.
func (r *Reader) Home(ctx context.Context) (string, error) {
	if r.Namespace != "" {
		return r.Namespace, nil
	}
	m, err := r.find(ctx)
	if err != nil {
		return "", err
	}
	return m.Namespace, nil
}

// find returns the ConfigMap.
func (r *Reader) find(ctx context.Context) (*corev1.ConfigMap, error) {
	maps := &corev1.ConfigMapList{}
	err := r.Client.List(ctx, maps, client.InNamespace(r.Namespace),
		&client.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", Name)})
	if err != nil {
		return nil, Hinted(fmt.Errorf("look for ConfigMap %s: %w", Name, err))
	}
	switch len(maps.Items) {
	case 0:
		return nil, fmt.Errorf("%w%s: the leader of Karpenter publishes its instance types there. Run 'karpenter status' to see whether Karpenter runs; 'karpenter savings' needs no Karpenter", ErrNotPublished, in(r.Namespace))
	case 1:
		if m := &maps.Items[0]; len(m.Data) == 0 {
			return nil, fmt.Errorf("ConfigMap %s/%s is empty: no controller has published its instance types yet. Run 'karpenter status' to see whether Karpenter runs", m.Namespace, m.Name)
		}
		return &maps.Items[0], nil
	}
	var namespaces []string
	for i := range maps.Items {
		namespaces = append(namespaces, maps.Items[i].Namespace)
	}
	return nil, fmt.Errorf("found ConfigMap %s in the namespaces %s: name the namespace of Karpenter with --karpenter-namespace", Name, strings.Join(namespaces, ", "))
}

func in(namespace string) string {
	if namespace == "" {
		return ""
	}
	return " in namespace " + namespace
}

// List returns all objects of a kind, none if the cluster does not know the kind.
func (r *Reader) List(ctx context.Context, kind client.Object) ([]client.Object, error) {
	gvk, err := apiutil.GVKForObject(kind, r.Scheme)
	if err != nil {
		return nil, err
	}
	var out []client.Object
	next := ""
	for {
		object, err := r.Scheme.New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		if err != nil {
			return nil, err
		}
		list, ok := object.(client.ObjectList)
		if !ok {
			return nil, fmt.Errorf("%T is no list", object)
		}
		switch err := r.Client.List(ctx, list, client.Limit(page), client.Continue(next)); {
		case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("list %ss: %w", gvk.Kind, err)
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			out = append(out, item.(client.Object))
		}
		if r.Progress != nil {
			r.Progress(gvk.Kind, len(out))
		}
		if next = list.GetContinue(); next == "" {
			return out, nil
		}
	}
}

// Hinted adds to an error about missing rights how to get them.
func Hinted(err error) error {
	if err == nil || !forbidden(err) {
		return err
	}
	return fmt.Errorf("%w\nThe ClusterRole %s has the rights that this command needs. An administrator can bind it: kubectl create clusterrolebinding NAME --clusterrole=%s --user=USER", err, Viewer, Viewer)
}

func forbidden(err error) bool {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		return slices.ContainsFunc(joined.Unwrap(), forbidden)
	}
	return apierrors.IsForbidden(err)
}

// Build makes the situation at the time from what the leader published and from
// the objects that read returns. A user with the role of an older chart may not read
// devices: then pods with ResourceClaims are rejected. Nor may it read CSIDrivers: then no
// driver is required.
func Build(p Published, now time.Time, read func(kind client.Object) ([]client.Object, error)) (scenario.Situation, error) {
	shown := p.Offerings.Snapshot
	if p.Rules.Devices {
		_, err := read(&resourcev1.DeviceClass{})
		p.Rules.Devices = !forbidden(err)
	}
	w, c, sources := p.World()
	var pods []*corev1.Pod
	kept := func(kind client.Object) ([]client.Object, error) {
		objects, err := read(kind)
		if _, ok := kind.(*storagev1.CSIDriver); ok && forbidden(err) {
			return nil, nil
		}
		for _, o := range objects {
			if p, ok := o.(*corev1.Pod); ok {
				pods = append(pods, p)
			}
		}
		return objects, err
	}
	if err := feed.Load(w, c, sources, kept); err != nil {
		return scenario.Situation{}, err
	}
	objects, err := read(&corev1.Event{})
	if err != nil && !forbidden(err) { // without events, no pod counts as moved
		return scenario.Situation{}, err
	}
	var happened []*corev1.Event
	for _, o := range objects {
		if e, ok := o.(*corev1.Event); ok {
			happened = append(happened, e)
		}
	}
	for p, at := range Moved(happened, pods) {
		w.SetMoved(p.Namespace, p.Name, at)
	}
	for i := range shown.Pools {
		w.SetTypes(shown.Pools[i].Name, shown.Pools[i].Types, shown.Pools[i].Extras...)
	}
	for buffer, pods := range p.StandIns() {
		w.SetBuffer(buffer, pods)
	}
	return scenario.Situation{Snapshot: w.Snapshot(now), Policy: p.Offerings.Policy}, nil
}

// World returns a World without objects that is on the leader's axis, and how objects are
// read for it.
func (p Published) World() (*world.World, convert.Converter, feed.Sources) {
	axis := model.NewAxis()
	for _, name := range p.Offerings.Snapshot.Resources {
		axis.Index(name)
	}
	c := convert.Converter{Axis: axis, Labels: p.Rules.Labels, Manages: p.Rules.manages, StaticCapacity: p.Rules.StaticCapacity}
	sources := feed.Sources{Volumes: volumes.New(c.Labels, p.Rules.Volumes)}
	if p.Rules.Devices {
		sources.Devices = devices.New(c.Labels)
	}
	if len(p.Rules.Constraints) > 0 {
		sources.Spread = spread.New(p.Rules.Constraints)
	}
	return world.New(axis, c.WellKnown()), c, sources
}

// StandIns returns the pods that stand in for buffers, by buffer.
func (p Published) StandIns() map[string][]world.Pod {
	out := map[string][]world.Pod{}
	for _, p := range p.Offerings.Snapshot.Pending {
		labels := map[string]string{}
		for _, l := range p.Peer.Labels {
			labels[l.Key] = l.Value
		}
		for _, pod := range p.Pods {
			out[pod.Buffer] = append(out[pod.Buffer], world.Pod{
				Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, Created: pod.Created, Labels: labels,
				Shape: p.Shape, Pending: true, Buffer: pod.Buffer,
			})
		}
	}
	return out
}
