// SPDX-License-Identifier: Apache-2.0

package world

import (
	"reflect"
	"slices"
	"sync"
	"time"

	"karpenter/model"
)

// World is what is known of the cluster. Make one with New. It is safe for
// concurrent use.
type World struct {
	axis      *model.Axis
	wellKnown model.LabelSet

	mu        sync.Mutex
	listeners []func(uid string)
	now       time.Time // of the last Snapshot

	fleet
	workloads
	intents
	offers
	devices
	lessons
	drivers
	features
	usual  usual
	listed listed
	count  Adherence
}

// fleet is the machines there are, with what is derived from them.
type fleet struct {
	machines map[string]*machine // by ID
	nodeIDs  map[string]string   // Node name → machine
	claimIDs map[string]string   // NodeClaim name → machine
	moved    bool                // a machine was added or removed since nodes was made
	nodes    []model.Node        // as last handed out

	touched   []*machine           // those whose views are out of date
	timed     map[*machine]bool    // those whose views end
	going     map[*machine]bool    // those that are being removed
	seeded    map[*machine]bool    // those that Planned brought, and some more
	standings map[string]*standing // by pool

	hosts  map[string]*host          // by node name
	limits map[string]map[string]int // of volumes, by node name and driver
}

// workloads is the pods, and what decides how they are seen.
type workloads struct {
	pods     map[string]*pod    // by namespace/name
	spaces   map[string]*space  // by namespace
	shapes   map[string]*shape  // by key
	claiming int                // shapes that claim devices
	waiting  []*group           // those of which pods ask for a node, in the order of Snapshots
	daemons  map[string]*daemon // by namespace/name
	binding  map[string]int     // by node: pods that are being bound to it, and have devices reserved there

	interest   interest
	namespaces map[string]map[string]string // labels
	unsettled  map[string]bool              // namespaces whose pods may be seen differently now
	buffers    map[string]map[string]bool   // keys of the pods of each
	podGroups  map[string]*podGroup         // by namespace/name
	ended      endings                      // pods that have gone recently
	classes    map[string]*class            // of pods that end, by name

	scratch []*pod // no one's between calls
}

// intents is what was planned and has not come about yet.
type intents struct {
	plans      map[string]plan            // by pod UID
	planned    map[string]map[string]bool // target → pod UIDs
	boundPlans int                        // plans of pods that are bound
	named      map[string]*pod            // those with Nominated, by UID
	awaited    map[string]map[string]*pod // those with Awaits, by that node and key
	bequests   map[string][][]launched    // launches for pods that have gone, by what replaces them
	outlooks   map[string]outlook         // of claims that are not launched, by pool and demands
	granted    map[string]int             // nodes of static pools that are about to be planned, by pool
}

// offers is what can be launched.
type offers struct {
	pools        map[string]*pool // by name
	poolVersions int              // given out so far
	types        map[string][]*model.InstanceType
	extras       map[string][]model.Extra // by pool
}

// listed is parts of a Snapshot as last handed out; nil = to be made.
type listed struct {
	daemons   []model.Daemon
	pending   []model.Pending
	podGroups []model.PodGroup
	holds     time.Time // until when podGroups holds; zero = until something happens
}

// New returns an empty World. Vectors of what goes in and comes out are on the
// axis; wellKnown are the labels a pod may ask for although no pool defines
// them.
func New(axis *model.Axis, wellKnown model.LabelSet) *World {
	return &World{
		axis: axis, wellKnown: wellKnown,
		fleet: fleet{
			machines: map[string]*machine{}, nodeIDs: map[string]string{}, claimIDs: map[string]string{},
			timed: map[*machine]bool{}, going: map[*machine]bool{}, seeded: map[*machine]bool{}, standings: map[string]*standing{},
			hosts: map[string]*host{}, limits: map[string]map[string]int{},
		},
		workloads: workloads{
			pods: map[string]*pod{}, spaces: map[string]*space{}, shapes: map[string]*shape{}, daemons: map[string]*daemon{}, binding: map[string]int{}, classes: map[string]*class{},
			interest: newInterest(), namespaces: map[string]map[string]string{}, unsettled: map[string]bool{}, buffers: map[string]map[string]bool{}, podGroups: map[string]*podGroup{},
		},
		intents: intents{
			plans: map[string]plan{}, planned: map[string]map[string]bool{}, named: map[string]*pod{}, awaited: map[string]map[string]*pod{}, bequests: map[string][][]launched{},
			outlooks: map[string]outlook{}, granted: map[string]int{},
		},
		devices:  devices{published: map[string][]model.DevicePool{}},
		lessons:  newLessons(),
		features: features{needed: map[string]int{}, declared: map[string]declared{}, predicted: map[string]map[string]bool{}},
		drivers:  drivers{required: map[string]bool{}, missing: map[site]map[string]time.Time{}},
		offers:   offers{pools: map[string]*pool{}, types: map[string][]*model.InstanceType{}, extras: map[string][]model.Extra{}},
	}
}

// Axis returns the axis all vectors are on. World borrows names that only pods
// ask for, as long as they do.
func (w *World) Axis() *model.Axis { return w.axis }

// OnPending has f called whenever there may be something new to place: with
// the UID of a pod that asks for a node or has lost the one it was to get, of
// a node or claim that starts to go away, or with the name of a pool that may
// launch and has changed, or of a buffer that has. f is called on the goroutine that brought the news,
// holding no lock, and must not block.
func (w *World) OnPending(f func(uid string)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.listeners = append(w.listeners, f)
}

// notify unlocks w and tells the listeners.
func (w *World) notify(uids ...string) {
	listeners := w.listeners
	w.mu.Unlock()
	for _, f := range listeners {
		for _, uid := range uids {
			f(uid)
		}
	}
}

// SetNode takes in a Node that is new or changed. A managed Node that has no
// provider ID, or is not initialized and has no instance type yet, is still
// being filled in by others and left as it was.
func (w *World) SetNode(n Node) {
	managed := n.Labels[model.LabelNodePool] != ""
	if managed && n.ProviderID == "" {
		return
	}
	if managed && n.Labels[model.LabelInstanceType] == "" && n.Labels[model.LabelInitialized] == "" {
		return
	}
	w.mu.Lock()
	id := n.ProviderID
	if id == "" {
		id = "node/" + n.Name
	}
	m := w.machine(id)
	if old, ok := w.nodeIDs[n.Name]; ok && old != id {
		if from := w.machines[old]; from != nil && from.claim == nil { // else another machine's Node takes the name
			w.inherit(m, from)
		}
		w.dropNode(n.Name)
	}
	if w.nodeIDs[n.Name] != id {
		w.nodeIDs[n.Name] = id
		w.touchNamed(n.Name)
		w.touchShadow(n.Name)
	}
	if m.node != nil && m.node.Name != n.Name {
		m.setTwin(&n)
		w.touch(m)
		w.mu.Unlock()
		return
	}
	if m.node != nil && reflect.DeepEqual(*m.node, n) {
		w.mu.Unlock()
		return
	}
	was := m.deleting()
	if m.node == nil || m.node.Labels[model.LabelInstanceType] != n.Labels[model.LabelInstanceType] {
		w.usual.stale = true
	}
	m.node = &n
	w.touch(m)
	w.notifyIf(m.deleting() && !was, n.UID)
}

// DeleteNode takes in that the Node is gone.
func (w *World) DeleteNode(name string) {
	w.mu.Lock()
	w.dropNode(name)
	w.notify(append(w.dropPlans(name), w.touchNamed(name)...)...)
}

// dropNode removes the Node half of a machine.
func (w *World) dropNode(name string) {
	m := w.machines[w.nodeIDs[name]]
	delete(w.nodeIDs, name)
	w.touchShadow(name)
	if m == nil || m.node == nil {
		return
	}
	if m.node.Name != name {
		m.dropTwin(name)
		w.touch(m)
		return
	}
	m.node, w.usual.stale = nil, true
	if len(m.twins) > 0 {
		m.node, m.twins = m.twins[0], m.twins[1:]
	}
	w.touch(m)
	w.dropEmpty(m)
}

// SetClaim takes in a NodeClaim that is new or changed.
func (w *World) SetClaim(c Claim) {
	w.mu.Lock()
	m := w.setClaim(c)
	m.seeded = false
	w.unlockClaim(m, c)
}

func (w *World) unlockClaim(m *machine, c Claim) {
	if m.claim != nil && reflect.DeepEqual(*m.claim, c) {
		w.mu.Unlock()
		return
	}
	was := m.deleting()
	if m.claim == nil && m.node != nil {
		w.touchNamed(m.node.Name)
	}
	m.claim = &c
	w.touch(m)
	w.notifyIf(m.deleting() && !was, c.UID)
}

// setClaim returns the machine of the claim, which is moved there when it was
// another's.
func (w *World) setClaim(c Claim) *machine {
	id := c.ProviderID
	if id == "" {
		id = "claim/" + c.Name
	}
	m := w.machine(id)
	if old, ok := w.claimIDs[c.Name]; ok && old != id {
		if from := w.machines[old]; from != nil {
			w.inherit(m, from)
		}
		w.dropClaim(c.Name)
	}
	w.claimIDs[c.Name] = id
	return m
}

// DeleteClaim takes in that the NodeClaim is gone. Pods planned on it look for
// a place again.
func (w *World) DeleteClaim(name string) {
	w.mu.Lock()
	if m := w.machines[w.claimIDs[name]]; m != nil && m.claim != nil && !m.launched() {
		w.uncountLaunch(name)
	}
	w.dropClaim(name)
	w.notify(w.dropPlans(claimKey(name))...)
}

// dropClaim removes the NodeClaim half of a machine.
func (w *World) dropClaim(name string) {
	m := w.machines[w.claimIDs[name]]
	delete(w.claimIDs, name)
	if m == nil || m.claim == nil || m.claim.Name != name {
		return
	}
	m.claim = nil
	w.touch(m)
	if m.node != nil {
		w.touchNamed(m.node.Name)
	}
	w.dropEmpty(m)
}

// touch has the machine looked at again.
func (w *World) touch(m *machine) {
	if !m.stale {
		m.stale = true
		w.touched = append(w.touched, m)
	}
}

func (w *World) dropEmpty(m *machine) {
	if m.node == nil && m.claim == nil {
		delete(w.machines, m.id)
		if w.going[m] {
			w.listed.pending = nil
		}
		w.exclude(m)
		w.moved = true
	}
}

// machine returns the machine with the ID, a new one if there is none.
func (w *World) machine(id string) *machine {
	m, ok := w.machines[id]
	if !ok {
		m = &machine{id: id}
		w.machines[id] = m
		w.touch(m)
		w.moved = true
	}
	return m
}

// notifyIf unlocks w and tells the listeners if there is something to tell.
func (w *World) notifyIf(news bool, uid string) {
	if news {
		w.notify(uid)
		return
	}
	w.mu.Unlock()
}

// SetPool takes in a NodePool that is new or changed.
func (w *World) SetPool(p Pool) {
	w.mu.Lock()
	old := w.pools[p.Name]
	next := &pool{Pool: p}
	if old != nil && sameNodes(old.Pool, p) {
		next.version = old.version
	} else {
		w.poolVersions++
		next.version = w.poolVersions
	}
	w.pools[p.Name] = next
	if old == nil || !sameOffer(old.Pool, p) {
		for _, g := range w.podGroups {
			w.resume(g)
		}
	}
	if old == nil || old.ConsolidateAfter != p.ConsolidateAfter {
		w.touchPool(p.Name)
	}
	w.notifyIf(p.Unavailable == "" && (old == nil || !samePool(old.Pool, p)), p.Name)
}

// samePool reports whether the pools may launch the same.
func samePool(a, b Pool) bool {
	b.Allowed, b.Policy, b.ConsolidateAfter, b.Never = nil, a.Policy, a.ConsolidateAfter, a.Never
	a.Allowed = nil
	return reflect.DeepEqual(a, b)
}

// sameOffer reports whether the pools may launch the same once their nodes start.
func sameOffer(a, b Pool) bool {
	b.Drift = a.Drift
	return samePool(a, b)
}

// sameNodes reports whether the nodes of the pools are the same, however many
// there may be.
func sameNodes(a, b Pool) bool {
	b.Drift, b.Limits, b.Weight, b.Aims = a.Drift, a.Limits, a.Weight, a.Aims
	return samePool(a, b)
}

// DeletePool takes in that the NodePool is gone.
func (w *World) DeletePool(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.pools, name)
	delete(w.types, name)
	delete(w.offered, name)
	delete(w.extras, name)
	delete(w.predicted, name)
	clear(w.outlooks)
	w.touchPool(name)
}

// SetTypes takes in what can be launched for a NodePool, and what its nodes cost
// besides their instances, which the prices of the types include. Handing in the
// same types again is cheap. World keeps the slices.
func (w *World) SetTypes(pool string, types []*model.InstanceType, extras ...model.Extra) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if same(w.offered[pool], types) && slices.Equal(w.extras[pool], extras) {
		return
	}
	w.offered[pool], w.extras[pool] = types, extras
	w.types[pool] = w.correct(pool)
	clear(w.outlooks)
	w.touchPool(pool)
}

func same(a, b []*model.InstanceType) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// touchPool has the machines of a pool looked at again.
func (w *World) touchPool(name string) {
	for _, m := range w.machines {
		if m.label(model.LabelNodePool) == name {
			w.touch(m)
		}
	}
}

// MarkForDeletion makes Snapshots treat the nodes of the claims as being removed,
// before the API shows it. Unknown names are ignored.
func (w *World) MarkForDeletion(claims ...string) { w.mark(claims, true) }

// Unmark takes MarkForDeletion back. What was planned for the pods of the nodes is
// forgotten.
func (w *World) Unmark(claims ...string) { w.mark(claims, false) }

func (w *World) mark(claims []string, marked bool) {
	w.mu.Lock()
	var news []string
	for _, name := range claims {
		m := w.machines[w.claimIDs[name]]
		if m == nil || m.marked == marked {
			continue
		}
		m.marked = marked
		w.touch(m)
		if marked {
			news = append(news, m.uid())
			continue
		}
		for _, p := range w.podsOf(m) {
			w.unplan(p.UID)
		}
	}
	w.notify(news...)
}

// Nominate keeps the node, named as in Snapshots or by its claim, from being
// disrupted before until. A later time extends an earlier one; unknown names
// are ignored.
func (w *World) Nominate(name string, until time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m := w.machines[w.identify(name)]; m != nil && until.After(m.nominated) {
		m.nominated = until
		w.touch(m)
	}
}

// Machines returns how many nodes there are and are on their way.
func (w *World) Machines() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.machines)
}
