// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/api/conditions"
	kwokv1alpha1 "karpenter/api/kwok/v1alpha1"
	v1 "karpenter/api/v1"
	"karpenter/cmd/karpenter/recording"
	"karpenter/cmd/karpenter/situation"
	"karpenter/kube/pods"
)

// succession is how long after a pod had to leave its node another one of its owner is taken
// for the one in its place.
const succession = 5 * time.Minute

// atOnce is how long it may take until a ReplicaSet has deleted all the pods that are too many, or has created another in place of one.
const atOnce = 5 * time.Second

// history is what a recording shows.
type history struct {
	from, to   time.Time
	demands    []*demand // by arrival
	settings   []setting // by time
	catalogues []catalogue
	standing   []standing // nodes of NodePools that were there when the recording began
	fixed      []stay     // instances of static NodePools, which are as recorded in every run
	pools      map[string]*v1.NodePool
	delays     delays
	outcome    Outcome
	nominates  bool // the controller writes the planned node to the status of pods
	repulsions []repulsion
	losses     []loss
	replicas   map[string][]*demand // of ReplicaSets, by owner and by arrival
}

// setting is the creation, change or deletion of an object that the replay takes from
// the recording.
type setting struct {
	at      time.Time
	deleted bool
	object  client.Object
}

// catalogue is what the leader published.
type catalogue struct {
	at        time.Time
	published situation.Published
}

// standing is a node of a NodePool as it was when the recording began.
type standing struct {
	claim *v1.NodeClaim
	node  *corev1.Node
}

// loss is a node that ended without a decision of Karpenter, as when the cloud reclaims its
// instance.
type loss struct {
	at time.Time
	of stay
}

// demand is the need for a pod: from when the first one was created until the last one that was
// made in its place ended.
type demand struct {
	pod     *corev1.Pod // the first one, as it was seen first
	at      time.Time
	leaves  time.Time     // when its last pod was deleted, if the pod did not end by itself
	ends    time.Time     // when that was gone; zero = not while it was recorded
	runs    time.Duration // it ends by itself when it has run for so long; 0 = it ends at ends
	surplus bool          // its ReplicaSet had too many pods then
	owner   string        // see ownerOf
	startup time.Duration // from bound to ready
	on      string        // node that it runs on when the replay begins; "" = it has none
	moved   time.Time     // when its pod on that node was made in place of one that Karpenter evicted; zero = it was not
	// pinned is the node outside NodePools that it was bound to, and after which time;
	// "" = none.
	pinned string
	after  time.Duration
}

// durations are how long something took each time, in the order in which it happened.
type durations []time.Duration

// at returns how long it takes the nth time in a run. Runs repeat what was recorded.
func (d durations) at(n int) time.Duration { return d[n%len(d)] }

func (d durations) mean() time.Duration { return mean(d) }

// delays are how long things took. None is empty.
type delays struct {
	Launch durations // from NodeClaim to instance
	Boot   durations // from instance to initialized node
	Stop   durations // from a pod's eviction to its end
	Finish durations // from the end of the last pod of a node to the end of its instance
}

// presets are the delays of which a recording has no example.
func presets() delays {
	return delays{Launch: durations{5 * time.Second}, Boot: durations{45 * time.Second}, Stop: durations{10 * time.Second}, Finish: durations{5 * time.Second}}
}

// instance is a NodeClaim as it was recorded.
type instance struct {
	first, last           *v1.NodeClaim
	launched, initialized time.Time
	deleted, ended        time.Time // zero = not
	vacated               time.Time // when the last of its pods was gone
}

// The reasons for which nodes go without a decision of the planner.
const (
	expired = "Expired"
	lost    = "other"
)

// reason is why the instance ended.
func (i *instance) reason() string {
	if k := conditions.Get(i.last, v1.DisruptionReasonCondition); k != nil {
		return k.Reason
	}
	if age := i.last.Spec.ExpireAfter.Duration; age != nil && !i.deleted.Before(i.last.CreationTimestamp.Add(*age)) {
		return expired
	}
	return lost
}

// life is a pod as it was recorded.
type life struct {
	demand          *demand
	pod             *corev1.Pod // as seen last
	created         time.Time
	bound, ready    time.Time
	leaving, gone   time.Time
	ran             time.Duration
	completed       bool
	displaced       bool
	node            string
	nominated       bool // its status named a node before it was bound
	presentAtTheTop bool
}

// reader reads a recording into a history.
type reader struct {
	h         *history
	static    map[string]bool // NodePools
	managed   map[string]bool // provider IDs of the instances of NodePools that are not static
	claims    map[string]*instance
	order     []*instance
	byNode    map[string]*instance
	nodes     map[string]*corev1.Node // as seen first, by provider ID
	lives     map[types.UID]*life
	all       []*life
	displaced map[string][]*life     // those that nothing has taken the place of, by owner
	made      map[string][]time.Time // when pods were created, by owner
	seen      map[string]bool        // objects of settings
	before    []*corev1.Event        // that had happened when the recording began
}

func newReader(r *recording.Recording) *reader {
	x := &reader{
		h: &history{from: r.Started, to: r.Ended(), pools: map[string]*v1.NodePool{}}, static: map[string]bool{}, managed: map[string]bool{}, claims: map[string]*instance{}, byNode: map[string]*instance{}, nodes: map[string]*corev1.Node{},
		lives: map[types.UID]*life{}, displaced: map[string][]*life{}, made: map[string][]time.Time{}, seen: map[string]bool{},
	}
	x.classify(r)
	return x
}

func readHistory(r *recording.Recording) (*history, error) {
	x := newReader(r)
	h := x.h
	for i := range r.Changes {
		if err := x.read(&r.Changes[i]); err != nil {
			return nil, err
		}
	}
	if len(h.catalogues) == 0 {
		return nil, errors.New("the recording has no instance types and prices: the leader of Karpenter publishes them in the ConfigMap " + situation.Name +
			". Record a cluster in which Karpenter runs, as a user with the ClusterRole " + situation.Viewer)
	}
	if !h.to.After(h.from) {
		return nil, errors.New("the recording has no duration. Record for longer with 'karpenter top --record FILE'")
	}
	h.catalogues[0].at = h.from
	x.finish()
	return h, nil
}

// classify finds out which NodePools are static and which instances are of the others.
func (x *reader) classify(r *recording.Recording) {
	for i := range r.Changes {
		if p, ok := r.Changes[i].Object.(*v1.NodePool); ok && p.IsStatic() {
			x.static[p.Name] = true
		}
	}
	for i := range r.Changes {
		if c, ok := r.Changes[i].Object.(*v1.NodeClaim); ok && c.Status.ProviderID != "" && !x.static[c.Labels[v1.NodePoolLabelKey]] {
			x.managed[c.Status.ProviderID] = true
		}
	}
}

func (x *reader) read(c *recording.Change) error {
	switch o := c.Object.(type) {
	case *corev1.ConfigMap:
		if o.Name != situation.Name || c.Deleted || len(o.Data) == 0 {
			return nil
		}
		published, err := situation.Parse(o)
		if err != nil {
			return err
		}
		x.h.catalogues = append(x.h.catalogues, catalogue{c.At, published})
	case *v1.NodeClaim:
		x.claim(o, c)
		if x.static[o.Labels[v1.NodePoolLabelKey]] {
			x.set(c)
		}
	case *corev1.Node:
		if x.managed[o.Spec.ProviderID] {
			if x.nodes[o.Spec.ProviderID] == nil {
				x.nodes[o.Spec.ProviderID] = o
			}
			return nil
		}
		x.set(c)
	case *corev1.Pod:
		x.pod(o, c)
	case *v1.NodePool:
		x.h.pools[o.Name] = o
		x.set(c)
	case *corev1.Event:
		if !o.LastTimestamp.After(x.h.from) {
			x.before = append(x.before, o)
		}
	case *coordinationv1.Lease, *appsv1.Deployment, *apiextensionsv1.CustomResourceDefinition, *awsv1.EC2NodeClass, *kwokv1alpha1.KWOKNodeClass:
		// Plans do not depend on them.
	default:
		x.set(c)
	}
	return nil
}

// set adds a setting. What was there before the recording began is there from its start.
func (x *reader) set(c *recording.Change) {
	o, at := c.Object, c.At
	if key := fmt.Sprintf("%T/%s/%s", o, o.GetNamespace(), o.GetName()); !x.seen[key] {
		x.seen[key] = true
		if created := o.GetCreationTimestamp(); created.Time.Before(x.h.from) {
			at = x.h.from
		}
	}
	x.h.settings = append(x.h.settings, setting{at, c.Deleted, o})
}

func (x *reader) claim(o *v1.NodeClaim, c *recording.Change) {
	i := x.claims[o.Name]
	if i == nil {
		i = &instance{first: o}
		x.claims[o.Name] = i
		x.order = append(x.order, i)
	}
	i.last = o
	if o.Status.NodeName != "" {
		x.byNode[o.Status.NodeName] = i
	}
	note := func(at *time.Time, kind string) {
		if k := conditions.Get(o, kind); at.IsZero() && k != nil && k.Status == metav1.ConditionTrue {
			*at = k.LastTransitionTime.Time
		}
	}
	note(&i.launched, v1.LaunchedCondition)
	note(&i.initialized, v1.InitializedCondition)
	note(&i.ended, v1.InstanceTerminatingCondition)
	if (o.DeletionTimestamp != nil || c.Deleted) && i.deleted.IsZero() {
		i.deleted = c.At
	}
	if c.Deleted && i.ended.IsZero() {
		i.ended = c.At
	}
}

// instanceOf returns the instance of the node, or nil if the node has no NodePool
// or a static one.
func (x *reader) instanceOf(node string) *instance {
	i := x.byNode[node]
	if i == nil || x.static[i.first.Labels[v1.NodePoolLabelKey]] {
		return nil
	}
	return i
}

func (x *reader) pod(o *corev1.Pod, c *recording.Change) {
	if pods.DaemonSet(o) || pods.Static(o) {
		x.set(c)
		return
	}
	l := x.lives[o.UID]
	if l == nil {
		if c.Deleted || pods.Terminal(o) {
			return
		}
		l = x.born(o, c)
	}
	l.pod = o
	l.nominated = l.nominated || o.Status.NominatedNodeName != ""
	if o.Spec.NodeName != "" && l.node == "" {
		l.node, l.bound = o.Spec.NodeName, since(o, corev1.PodScheduled, c.At)
	}
	if pods.Ready(o) && l.ready.IsZero() {
		l.ready = since(o, corev1.PodReady, c.At)
	}
	if pods.Terminal(o) && l.gone.IsZero() && l.leaving.IsZero() {
		l.gone, l.completed = c.At, true
		if !l.bound.IsZero() {
			l.ran = max(c.At.Sub(l.bound), time.Second)
		}
		return
	}
	if (o.DeletionTimestamp != nil || c.Deleted) && l.leaving.IsZero() && !l.completed {
		l.leaving = c.At
		if i := x.instanceOf(l.node); i != nil && !i.deleted.IsZero() {
			l.displaced = true
			owner := ownerOf(o)
			x.displaced[owner] = append(x.displaced[owner], l)
		}
	}
	if c.Deleted && l.gone.IsZero() {
		l.gone = c.At
		if i := x.instanceOf(l.node); i != nil {
			i.vacated = c.At
		}
	}
}

// since returns when the condition of the pod became true, or otherwise if it is not
// true.
func since(p *corev1.Pod, kind corev1.PodConditionType, otherwise time.Time) time.Time {
	for _, k := range p.Status.Conditions {
		if k.Type == kind && k.Status == corev1.ConditionTrue && !k.LastTransitionTime.IsZero() {
			return k.LastTransitionTime.Time
		}
	}
	return otherwise
}

// born records a new pod, as a new demand or as the successor of a pod that had to leave.
func (x *reader) born(o *corev1.Pod, c *recording.Change) *life {
	created := o.CreationTimestamp.Time
	if created.IsZero() {
		created = c.At
	}
	l := &life{pod: o, created: created, presentAtTheTop: created.Before(x.h.from)}
	x.lives[o.UID] = l
	x.all = append(x.all, l)
	owner := ownerOf(o)
	x.made[owner] = append(x.made[owner], created)
	for waiting := x.displaced[owner]; len(waiting) > 0; waiting = x.displaced[owner] {
		x.displaced[owner] = waiting[1:]
		if created.Sub(waiting[0].leaving) <= succession {
			l.demand = waiting[0].demand
			return l
		}
	}
	l.demand = &demand{pod: o, at: created, owner: owner}
	if l.presentAtTheTop {
		l.demand.at = x.h.from
	}
	x.h.demands = append(x.h.demands, l.demand)
	return l
}

// ownerOf is equal for pods of which one may take the place of the other.
func ownerOf(p *corev1.Pod) string {
	o := metav1.GetControllerOfNoCopy(p)
	if o == nil || o.Kind == "StatefulSet" {
		return p.Namespace + "/" + p.Name
	}
	return p.Namespace + "/" + o.Kind + "/" + o.Name
}

// finish makes the rest of the history when all was read.
func (x *reader) finish() {
	h := x.h
	out := &h.outcome
	out.Removed = map[string]int{}
	var launch, boot, finish, stop durations
	var stays []stay
	for _, i := range x.order {
		if i.launched.IsZero() {
			continue
		}
		s := stayOf(i.last, later(i.launched, h.from), i.ended)
		if s.to.IsZero() {
			s.to = h.to
		}
		if x.static[s.pool] {
			h.fixed = append(h.fixed, s)
			continue
		}
		stays = append(stays, s)
		created := i.first.CreationTimestamp.Time
		if created.Before(h.from) {
			if node := x.nodes[i.first.Status.ProviderID]; conditions.IsTrue(i.first, v1.InitializedCondition) && i.first.DeletionTimestamp == nil && node != nil {
				h.standing = append(h.standing, standing{i.first, node})
			}
		} else {
			out.Launched++
			launch = append(launch, max(i.launched.Sub(created), 0))
			if !i.initialized.IsZero() {
				boot = append(boot, max(i.initialized.Sub(i.launched), 0))
			}
		}
		if !i.deleted.IsZero() {
			reason := i.reason()
			out.Removed[reason]++
			if reason == lost && !i.initialized.IsZero() {
				h.losses = append(h.losses, loss{i.deleted, s})
			}
			if !i.ended.IsZero() {
				finish = append(finish, max(i.ended.Sub(later(i.deleted, i.vacated)), 0))
			}
		}
	}
	var waits []time.Duration
	nominated := 0
	for _, l := range x.all {
		x.settle(l)
		if l.demand.pinned != "" {
			continue
		}
		if l.displaced {
			out.Evictions++
			if !l.gone.IsZero() {
				stop = append(stop, l.gone.Sub(l.leaving))
			}
		}
		switch {
		case l.presentAtTheTop && !l.bound.After(h.from) && !l.bound.IsZero():
		case !l.bound.IsZero():
			waits = append(waits, max(l.bound.Sub(l.created), 0))
			if l.nominated {
				nominated++
			}
		case l.gone.IsZero() && l.leaving.IsZero():
			out.Pending++
		}
	}
	h.nominates = nominated > 0 && 4*nominated >= len(waits) // few: kube-scheduler preempted pods for them
	h.delays = presets()
	for _, d := range []struct {
		of  *durations
		all durations
	}{{&h.delays.Launch, launch}, {&h.delays.Boot, boot}, {&h.delays.Stop, stop}, {&h.delays.Finish, finish}} {
		if len(d.all) > 0 {
			*d.of = d.all
		}
	}
	x.remember()
	h.repulsions = repulsions(h.demands)
	h.settings = slices.DeleteFunc(h.settings, func(s setting) bool { // the nodes of a run have their own pods of DaemonSets
		p, ok := s.object.(*corev1.Pod)
		return ok && x.instanceOf(p.Spec.NodeName) != nil
	})
	slices.SortStableFunc(h.demands, func(a, b *demand) int { return a.at.Compare(b.at) })
	h.replicas = map[string][]*demand{}
	for _, d := range h.demands {
		if o := metav1.GetControllerOfNoCopy(d.pod); o != nil && o.Kind == "ReplicaSet" {
			h.replicas[d.owner] = append(h.replicas[d.owner], d)
		}
	}
	slices.SortStableFunc(h.settings, func(a, b setting) int { return a.at.Compare(b.at) })
	out.settle(h, append(stays, h.fixed...), nil, waits)
}

// remember marks the pods that Karpenter moved before the recording began as moved.
func (x *reader) remember() {
	var there []*corev1.Pod
	for _, d := range x.h.demands {
		if d.on != "" {
			there = append(there, d.pod)
		}
	}
	moved := situation.Moved(x.before, there)
	for _, d := range x.h.demands {
		d.moved = moved[d.pod]
	}
}

// surplus reports whether a ReplicaSet deleted the pod because it had too many: it has created none at that time.
func (x *reader) surplus(l *life) bool {
	o := metav1.GetControllerOfNoCopy(l.pod)
	return o != nil && o.Kind == "ReplicaSet" && !l.displaced && !l.leaving.IsZero() &&
		!slices.ContainsFunc(x.made[l.demand.owner], func(at time.Time) bool { return at.Sub(l.leaving).Abs() <= atOnce })
}

// settle brings the demand up to the last pod that served it.
func (x *reader) settle(l *life) {
	d := l.demand
	if !l.ready.IsZero() && !l.bound.IsZero() {
		d.startup = max(l.ready.Sub(l.bound), 0)
	}
	d.leaves, d.ends, d.runs, d.surplus = l.leaving, l.gone, 0, x.surplus(l)
	if l.completed {
		d.runs = l.ran
	}
	if d.pod.UID != l.pod.UID || l.node == "" {
		return
	}
	switch i := x.instanceOf(l.node); {
	case i == nil:
		d.pinned, d.after = l.node, max(l.bound.Sub(d.at), 0)
	case l.presentAtTheTop && !l.bound.After(x.h.from):
		d.on = l.node
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func mean(all []time.Duration) time.Duration {
	sum := time.Duration(0)
	for _, d := range all {
		sum += d
	}
	return (sum / time.Duration(max(len(all), 1))).Round(time.Second / 10)
}

// stay is an instance and the time for which it runs.
type stay struct {
	pool, kind, zone, capacityType string
	from, to                       time.Time // zero = not yet
}

func stayOf(c *v1.NodeClaim, from, to time.Time) stay {
	l := c.Labels
	return stay{l[v1.NodePoolLabelKey], l[corev1.LabelInstanceTypeStable], l[corev1.LabelTopologyZone], l[v1.CapacityTypeLabelKey], from, to}
}

// price returns the published price of an instance per hour, or 0 if it is not known.
func (c *catalogue) price(s *stay, pool string) float64 {
	all := c.published.Offerings.Snapshot.Pools
	for i := range all {
		if all[i].Name != pool {
			continue
		}
		for _, t := range all[i].Types {
			if t.Name != s.kind {
				continue
			}
			for j := range t.Offerings {
				if o := &t.Offerings[j]; o.Zone == s.zone && o.CapacityType == s.capacityType {
					return o.Price.Dollars()
				}
			}
		}
	}
	return 0
}

// cost returns the cost of the instances, and the instance hours whose price is not known.
// like maps NodePools that are not in the catalogues to those whose prices they have.
func (h *history) cost(stays []stay, like map[string]string) (dollars, unpriced float64) {
	for i := range h.catalogues {
		from, to := h.catalogues[i].at, h.to
		if i+1 < len(h.catalogues) {
			to = h.catalogues[i+1].at
		}
		prices := map[stay]float64{}
		for _, s := range stays {
			start, end := later(s.from, from), s.to
			if end.After(to) {
				end = to
			}
			if !end.After(start) {
				continue
			}
			key := s
			key.from, key.to = time.Time{}, time.Time{}
			price, known := prices[key]
			if !known {
				price = h.catalogues[i].price(&s, cmp.Or(like[s.pool], s.pool))
				prices[key] = price
			}
			dollars += price * end.Sub(start).Hours()
			if price == 0 {
				unpriced += end.Sub(start).Hours()
			}
		}
	}
	return dollars, unpriced
}
