// SPDX-License-Identifier: Apache-2.0

package capacitybuffer

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karpenter/api/autoscaling/v1beta1"
	"karpenter/world"
)

// teams are the buffers that Kueue has made for one Workload, with how many pods stand in for
// each, by the name of their PodGroup and by buffer. Kueue admits the Workload when all of its
// buffers have capacity, so they get it together or not at all.
type teams map[string]map[string]int

// teamOf returns the name of the PodGroup that the pods of the buffer are of; "" = of none. No
// name of a PodGroup that exists has a space.
func teamOf(b *v1beta1.CapacityBuffer) string {
	owner := metav1.GetControllerOf(b)
	if owner == nil || owner.Kind != "Workload" || !strings.HasPrefix(owner.APIVersion, "kueue.x-k8s.io/") {
		return ""
	}
	return fmt.Sprintf("CapacityBuffers of Workload %s/%s", b.Namespace, owner.Name)
}

// join has the buffer be in the team and in no other, with so many pods.
func (r *Reconciler) join(buffer, team string, pods int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name := range r.teams {
		if _, in := r.teams[name][buffer]; in && (name != team || pods == 0) {
			delete(r.teams[name], buffer)
			r.tell(name)
		}
	}
	if team == "" || pods == 0 || r.teams[team][buffer] == pods {
		return
	}
	if r.teams == nil {
		r.teams = teams{}
	}
	if r.teams[team] == nil {
		r.teams[team] = map[string]int{}
	}
	r.teams[team][buffer] = pods
	r.tell(team)
}

// tell tells the world how many pods of the team start together.
func (r *Reconciler) tell(team string) {
	if len(r.teams[team]) == 0 {
		delete(r.teams, team)
		r.World.DeletePodGroup(team)
		return
	}
	all := 0
	for _, pods := range r.teams[team] {
		all += pods
	}
	r.World.SetPodGroup(world.PodGroup{Name: team, MinCount: all})
}

// mates returns the buffers of the team that the buffer is in, itself included.
func (r *Reconciler) mates(buffer string) []string {
	for _, team := range r.teams {
		if _, in := team[buffer]; in {
			return slices.Sorted(maps.Keys(team))
		}
	}
	return []string{buffer}
}

// behind returns the other buffers of the Workload that have no capacity yet.
func (r *Reconciler) behind(buffer string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(r.mates(buffer), func(other string) bool {
		return other == buffer || r.outcomes[other].fits() && r.outcomes[other].total() > 0
	})
}
