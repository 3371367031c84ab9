// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestElect: a ReplicaSet with too many pods deletes those first that Kubernetes would, where the pods of the run
// are, and the recorded one among equals; each pod goes once.
func TestElect(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	type replica struct {
		name, node string
		ready      bool
		age        time.Duration
		cost       string
	}
	for _, x := range []struct {
		name     string
		replicas []replica
		leave    string // demands, in turn
		want     string // pods
	}{
		{"equals", []replica{{"a", "m", true, time.Hour, ""}, {"b", "n", true, time.Hour, ""}, {"c", "o", true, time.Hour, ""}}, "b c", "b c"},
		{"without a node", []replica{{"a", "m", true, time.Minute, ""}, {"b", "", false, time.Hour, ""}}, "a b", "b a"},
		{"not ready", []replica{{"a", "m", true, time.Minute, ""}, {"b", "n", false, time.Hour, ""}}, "a", "b"},
		{"cheap to delete", []replica{{"a", "m", true, time.Minute, "2"}, {"b", "n", true, time.Hour, "1"}}, "a", "b"},
		{"on one node", []replica{{"a", "m", true, time.Hour, ""}, {"b", "n", true, time.Hour, ""}, {"c", "n", true, time.Hour, ""}}, "a", "b"},
		{"on one node, when it began", []replica{{"a", "m", true, time.Hour, ""}, {"b", "n", true, time.Hour, ""}, {"c", "n", true, time.Hour, ""}}, "a b", "b c"},
		{"young", []replica{{"a", "m", true, time.Hour, ""}, {"b", "n", true, time.Minute, ""}}, "a b", "b a"},
		{"about as young", []replica{{"a", "m", true, 65 * time.Minute, ""}, {"b", "n", true, 60 * time.Minute, ""}}, "a", "a"},
		{"in a ring", []replica{{"a", "m", true, 8 * time.Hour, ""}, {"b", "n", true, time.Hour, ""}, {"c", "o", true, time.Minute, ""}}, "a b c", "c b a"},
	} {
		r := &run{agenda: agenda{now: now}, h: &history{replicas: map[string][]*demand{}}}
		r.load.pods, r.load.current, r.load.instead = map[string]*pod{}, map[*demand]*pod{}, map[*demand]*demand{}
		demands := map[string]*demand{}
		for _, y := range x.replicas {
			d := &demand{owner: "web", surplus: true}
			o := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: y.name, UID: types.UID(y.name)}}
			if o.Spec.NodeName = y.node; y.cost != "" {
				o.Annotations = map[string]string{corev1.PodDeletionCost: y.cost}
			}
			p := &pod{demand: d, object: o, ready: y.ready, since: now.Add(-y.age)}
			demands[y.name], r.load.current[d] = d, p
			r.h.replicas["web"] = append(r.h.replicas["web"], d)
		}
		var gone []string
		for name := range strings.FieldsSeq(x.leave) {
			r.elect(demands[name])
			p := r.load.current[r.load.ending(demands[name])]
			if p.leaving {
				t.Errorf("%s: %s goes twice", x.name, p.object.Name)
			}
			p.leaving, p.since = true, now
			gone = append(gone, p.object.Name)
		}
		if got := strings.Join(gone, " "); got != x.want {
			t.Errorf("%s: %s goes, want %s", x.name, got, x.want)
		}
	}
}
