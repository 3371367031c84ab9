// SPDX-License-Identifier: Apache-2.0

package actors

import (
	"context"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "karpenter/api/v1"
	"karpenter/sim/script"
	"karpenter/sim/simcloud"
	"karpenter/sim/store"
)

// users do what the script says, one thing after the other.
type users struct {
	left  []script.Event
	pools map[string]script.Pool // as they are now
	todo  []func(context.Context) error
	// poisoned is until when each node of a pool is tainted by a third party.
	poisoned map[string]time.Time
}

func newUsers(s *script.Script) *users {
	u := &users{left: slices.Clone(s.Events), pools: map[string]script.Pool{}, poisoned: map[string]time.Time{}}
	for _, p := range s.Pools {
		u.pools[p.Name] = p
	}
	return u
}

func (u *users) look(a *Actor, c *choice) {
	if len(u.todo) == 0 && !a.over() {
		u.begin(a)
	}
	u.poison(a, c)
	if len(u.todo) > 0 {
		next := u.todo[0]
		c.offer(func(ctx context.Context) error {
			u.todo = u.todo[1:]
			return client.IgnoreNotFound(next(ctx))
		})
	}
}

// begin looks for an event whose moment has come and what it takes.
func (u *users) begin(a *Actor) {
	for i := 0; i < len(u.left); {
		e := u.left[i]
		if e.At.Step > a.Steps() || e.At.Step == 0 && !a.due(a.Started.Add(e.At.After)) {
			i++
			continue
		}
		u.left = slices.Delete(u.left, i, i+1)
		if u.todo = u.takes(a, &e); len(u.todo) > 0 {
			return
		}
	}
}

// takes lists what is to be done for the event, against the objects there are.
func (u *users) takes(a *Actor, e *script.Event) []func(context.Context) error {
	switch e.Do {
	case script.Scale:
		return u.scale(a, e)
	case script.DeletePod:
		return several(a, e.Count, func(p *corev1.Pod) bool { return p.Labels[appLabel] == e.Name })
	case script.DeleteNode:
		return several(a, e.Count, func(n *corev1.Node) bool { return n.Labels[v1.NodePoolLabelKey] == e.Name })
	case script.DeleteClaim:
		return several(a, e.Count, func(n *v1.NodeClaim) bool { return n.Labels[v1.NodePoolLabelKey] == e.Name })
	case script.DeletePool:
		return several(a, 1, func(p *v1.NodePool) bool { return p.Name == e.Name })
	case script.Edit:
		return u.edit(a, e)
	case script.Price:
		return []func(context.Context) error{func(context.Context) error { reprice(a, e); return nil }}
	case script.Poison:
		u.poisoned[e.Name] = a.now.Add(e.For)
		return nil
	case script.Sicken:
		return sicken(a, e)
	default: // Interrupt
		return interrupt(a, e.Count)
	}
}

// several deletes that many of the objects, drawn.
func several[T client.Object](a *Actor, n int, which func(T) bool) []func(context.Context) error {
	var all []T
	for o := range store.All[T](a.Store) {
		if which(o) && o.GetDeletionTimestamp() == nil {
			all = append(all, o)
		}
	}
	a.Rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	var out []func(context.Context) error
	for _, o := range all[:min(n, len(all))] {
		out = append(out, a.remove(o))
	}
	return out
}

func (u *users) scale(a *Actor, e *script.Event) []func(context.Context) error {
	d := store.Find[*appsv1.Deployment](a.Store, namespace, e.Name)
	size := int32(e.Count)
	if d == nil || *d.Spec.Replicas == size {
		return nil
	}
	fresh := d.DeepCopy()
	fresh.Spec.Replicas = &size
	fresh.ResourceVersion = ""
	return []func(context.Context) error{a.update(fresh)}
}

func (u *users) edit(a *Actor, e *script.Event) []func(context.Context) error {
	pool := u.pools[e.Name]
	if e.Apply(&pool) != nil {
		return nil
	}
	u.pools[e.Name] = pool
	stored := store.Find[*v1.NodePool](a.Store, "", e.Name)
	if stored == nil {
		return nil
	}
	return []func(context.Context) error{func(ctx context.Context) error {
		fresh := &v1.NodePool{}
		if err := a.client.Get(ctx, client.ObjectKeyFromObject(stored), fresh); err != nil {
			return err
		}
		class := fresh.Spec.Template.Spec.NodeClassRef
		fresh.Spec = poolOf(&pool).Spec
		fresh.Spec.Template.Spec.NodeClassRef = class
		return a.client.Update(ctx, fresh)
	}}
}

// sicken has as many ready nodes of the pool, drawn, be unready for a while.
func sicken(a *Actor, e *script.Event) []func(context.Context) error {
	var well []*corev1.Node
	for n := range store.All[*corev1.Node](a.Store) {
		if n.Labels[v1.NodePoolLabelKey] == e.Name && n.DeletionTimestamp == nil && isReady(n) {
			well = append(well, n)
		}
	}
	a.Rand.Shuffle(len(well), func(i, j int) { well[i], well[j] = well[j], well[i] })
	var out []func(context.Context) error
	for _, n := range well[:min(e.Count, len(well))] {
		out = append(out, a.status(withSickness(n, a.now, e.For)))
	}
	return out
}

// poisonous is the key of the taint that a third party puts on nodes.
const poisonous = "example.com/poison"

// poison taints the nodes of poisoned pools, which has their pods deleted, and
// removes the taints in the end.
func (u *users) poison(a *Actor, c *choice) {
	if len(u.poisoned) == 0 {
		return
	}
	bad := map[string]bool{}
	for n := range store.All[*corev1.Node](a.Store) {
		until, ok := u.poisoned[n.Labels[v1.NodePoolLabelKey]]
		if !ok || n.DeletionTimestamp != nil {
			continue
		}
		clean := withoutKeys(n.Spec.Taints, poisonous)
		tainted := len(clean) != len(n.Spec.Taints)
		over := a.due(until)
		bad[n.Name] = tainted && !over
		if tainted != over {
			continue
		}
		fresh := n.DeepCopy()
		if fresh.Spec.Taints = clean; !over {
			fresh.Spec.Taints = append(clean, corev1.Taint{Key: poisonous, Effect: corev1.TaintEffectNoExecute})
		}
		c.offer(a.update(fresh))
	}
	for p := range store.All[*corev1.Pod](a.Store) {
		if bad[p.Spec.NodeName] && p.DeletionTimestamp == nil && !ended(p) && !ownedByDaemonSet(p) {
			c.offer(a.remove(p))
		}
	}
}

func ownedByDaemonSet(p *corev1.Pod) bool {
	return len(p.OwnerReferences) > 0 && p.OwnerReferences[0].Kind == "DaemonSet"
}

func interrupt(a *Actor, n int) []func(context.Context) error {
	spot := slices.DeleteFunc(slices.Clone(a.machines()), func(m simcloud.Machine) bool { return m.Offering.CapacityType != v1.CapacityTypeSpot })
	a.Rand.Shuffle(len(spot), func(i, j int) { spot[i], spot[j] = spot[j], spot[i] })
	var out []func(context.Context) error
	for _, m := range spot[:min(n, len(spot))] {
		out = append(out, func(context.Context) error {
			a.Cloud.Lose(m.ProviderID)
			return nil
		})
	}
	return out
}

// reprice sets the prices the event is about, as multiples of what the type's
// line says.
func reprice(a *Actor, e *script.Event) {
	for i := range a.Script.Types {
		t := &a.Script.Types[i]
		if t.Name != e.Name {
			continue
		}
		for _, zone := range t.Zones {
			for sold, dollars := range map[string]float64{v1.CapacityTypeOnDemand: t.Price, v1.CapacityTypeSpot: t.Spot} {
				if dollars > 0 && (e.Zone == "" || e.Zone == zone) && (e.Sold == "" || e.Sold == sold) {
					a.Cloud.SetPrice(simcloud.Offering{Type: t.Name, Zone: zone, CapacityType: sold}, price(dollars*e.Factor))
				}
			}
		}
	}
}

// market is what the cloud has to offer while faults last.
type market struct {
	empty map[int][]simcloud.Offering // by the fault's position in the script
	lag   time.Duration
}

func newMarket() *market { return &market{empty: map[int][]simcloud.Offering{}} }

func (m *market) look(a *Actor, c *choice) {
	lag := time.Duration(0)
	for i := range a.Script.Faults {
		f := &a.Script.Faults[i]
		switch f.Kind {
		case script.CloudLag:
			if m.lasts(a, f) {
				lag = max(lag, f.Lag)
			}
		case script.NoCapacity:
			m.ration(a, c, i, f)
		}
	}
	if lag != m.lag {
		c.offer(func(context.Context) error {
			m.lag = lag
			a.Cloud.SetLag(lag)
			return nil
		})
	}
}

// lasts reports whether the fault's window is open, and wakes at its ends.
func (m *market) lasts(a *Actor, f *script.Fault) bool {
	end := a.Script.Run
	if f.For > 0 {
		end = min(end, f.From+f.For)
	}
	return a.due(a.Started.Add(f.From)) && !a.due(a.Started.Add(end))
}

// ration empties the fault's offerings when its window opens, one in Every of
// them, and fills them when it closes.
func (m *market) ration(a *Actor, c *choice, i int, f *script.Fault) {
	out, empty := m.empty[i]
	if lasts := m.lasts(a, f); lasts == empty {
		return
	}
	if !empty {
		out = rationed(a, f)
	}
	c.offer(func(context.Context) error {
		for _, o := range out {
			a.Cloud.SetEmpty(o, !empty)
		}
		if m.empty[i] = out; empty {
			delete(m.empty, i)
		}
		return nil
	})
}

// rationed draws the offerings the fault empties.
func rationed(a *Actor, f *script.Fault) []simcloud.Offering {
	var out []simcloud.Offering
	for _, t := range a.Cloud.Types() {
		for i := range t.Offerings {
			o := simcloud.Offering{Type: t.Name, Zone: t.Offerings[i].Zone(), CapacityType: t.Offerings[i].CapacityType()}
			if (f.Type == "" || f.Type == o.Type) && (f.Zone == "" || f.Zone == o.Zone) && (f.Capacity == "" || f.Capacity == o.CapacityType) &&
				(f.Every < 2 || a.Rand.IntN(f.Every) == 0) {
				out = append(out, o)
			}
		}
	}
	return out
}
