// SPDX-License-Identifier: Apache-2.0

package top

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/cmd/karpenter/record"
	"karpenter/cmd/karpenter/situation"
)

// How often a recording reads the record of decisions, which the leader writes at most
// this often, and how long it waits for the record at its end.
const (
	keepEvery = 30 * time.Second
	keepLast  = 5 * time.Second
)

// kept finds the ConfigMaps of the record of decisions that have changed. They are read one by
// one: a user may read them by name only.
type kept struct {
	from     client.Reader
	versions map[string]string // resource versions by name
}

// changed returns the ConfigMaps in the namespace that are other than when it was asked last.
// Those that cannot be read are left out: commands say of a recording what it does not have.
func (k *kept) changed(ctx context.Context, namespace string) []client.Object {
	var out []client.Object
	for _, name := range append([]string{record.BaselineName}, record.Names()...) {
		m := &corev1.ConfigMap{}
		if err := k.from.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, m); err != nil || k.versions[name] == m.ResourceVersion {
			continue
		}
		k.versions[name] = m.ResourceVersion
		out = append(out, m)
	}
	return out
}

// keepRecord adds the record of decisions to the recording until ctx is done.
func (l *Live) keepRecord(ctx context.Context) {
	tick := time.NewTicker(keepEvery)
	defer tick.Stop()
	for {
		l.keepNow(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// keepNow adds the present record of decisions to the recording.
func (l *Live) keepNow(ctx context.Context) {
	home := situation.Reader{Client: l, Scheme: l.scheme}
	namespace, err := home.Home(ctx)
	if err != nil {
		return // no leader has published anything
	}
	l.keeping.Lock()
	defer l.keeping.Unlock()
	for _, m := range l.kept.changed(ctx, namespace) {
		l.seen(m, false)
	}
}
