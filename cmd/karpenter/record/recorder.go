// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v1 "karpenter/api/v1"
	"karpenter/model"
)

const (
	glance = 10 * time.Second // between two reads of the cluster
	// Retries. No event asks for the next look, so that it must not be far away.
	failureMin = time.Second
	failureMax = time.Minute
	// settles is how long ago everything is known that happened then: costs count up
	// to then.
	settles = 30 * time.Second
	// leastBetween and mostBetween are the times between two writes.
	leastBetween = 30 * time.Second
	mostBetween  = 10 * time.Minute
	// unknown is how long a NodeClaim may be missing from the cache.
	unknown = time.Minute
	// abandoned is the time after which a Decision is no longer followed.
	abandoned = 2 * time.Hour
	// ahead is how far the record may be ahead of the clock, as when the clock of the last
	// leader was. If it is further, costs are counted from scratch: they would not count
	// until then.
	ahead = time.Hour
	// unpriced is how long a leader waits for prices of instances before it counts.
	unpriced = 2 * time.Minute
)

// Recorder is the controller record: it writes the record of the leader. Its exported
// fields are required. It is safe for concurrent use.
type Recorder struct {
	Client    client.Client
	Live      client.Reader // reads the ConfigMaps past the caches
	Namespace string
	Snapshot  func(time.Time) *model.Snapshot
	Ready     func() bool // the Snapshot holds everything there is
	Clock     clock.PassiveClock

	mu        sync.Mutex
	instances map[string]*instance // by name of the claim
	open      []*following         // oldest first
	pending   []line               // not written yet
	early     []Decision           // made before the record was read
	lastID    int64
	began     time.Time // when this process read the record; zero = not yet
	meter     Meter
	before    Record // what was found then; emptied by the first look

	written segment   // the newest that is known to be in the cluster
	tried   segment   // what the last write was to become; Segment 0 = there was none
	claimed bool      // this process has written since it read the record
	lost    time.Time // Written of what was tried before that
	rates   Rates     // that were written last
}

// following is a Decision without an Outcome.
type following struct {
	Decision
	evictions int
	late      bool
}

// Register adds the controller to the manager.
func (r *Recorder) Register(ctx context.Context, mgr manager.Manager) error {
	r.instances = map[string]*instance{}
	informer, err := mgr.GetCache().GetInformer(ctx, &v1.NodeClaim{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("informer for NodeClaims: %w", err)
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { r.see(o, false) },
		UpdateFunc: func(_, o any) { r.see(o, false) },
		DeleteFunc: func(o any) {
			if tombstone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
				o = tombstone.Obj
			}
			r.see(o, true)
		},
	})
	if err != nil {
		return fmt.Errorf("watch NodeClaims: %w", err)
	}
	start := source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(reconcile.Request{})
		return nil
	})
	return builder.ControllerManagedBy(mgr).
		Named("record").
		WatchesRawSource(start).
		WithOptions(controller.Options{MaxConcurrentReconciles: 1, RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](failureMin, failureMax)}).
		Complete(r)
}

// see updates the instance of a NodeClaim.
func (r *Recorder) see(object any, gone bool) {
	claim, ok := object.(*v1.NodeClaim)
	if !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	i := r.instances[claim.Name]
	if i == nil {
		i = &instance{}
		r.instances[claim.Name] = i
	}
	was := i.start
	i.take(claim)
	if was.IsZero() && !i.start.IsZero() {
		i.until = i.start
	}
	if gone {
		i.gone = true
		if i.end.IsZero() && !i.start.IsZero() {
			i.end = r.Clock.Now().UTC().Truncate(time.Second)
		}
	}
}

// Launched records the launches of a plan for pending pods. claims has the names
// of the NodeClaims that were created.
func (r *Recorder) Launched(s *model.Snapshot, p *model.Plan, launches []model.Launch, claims []string) {
	if len(launches) > 0 {
		r.decided(provision(s, p, launches, claims))
	}
}

// Started records that a command was started. Claims has the names of the
// NodeClaims that were created.
func (r *Recorder) Started(s *model.Snapshot, c *model.Command, claims []string) {
	r.decided(command(s, c, claims))
}

func (r *Recorder) decided(d Decision) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.began.IsZero() {
		r.early = append(r.early, d)
		return
	}
	r.enter(d)
}

func (r *Recorder) enter(d Decision) {
	r.lastID++
	d.ID = r.lastID
	r.pending = append(r.pending, line{Decision: &d})
	r.open = append(r.open, &following{Decision: d})
}

// Evicted records that a pod was evicted from the Node.
func (r *Recorder) Evicted(node string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.open {
		if slices.ContainsFunc(f.Removed, func(claim string) bool { i := r.instances[claim]; return i != nil && i.node == node }) {
			f.evictions++
		}
	}
}

// Reconcile looks at the cluster, and writes what is new.
func (r *Recorder) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	if !r.Ready() {
		return reconcile.Result{RequeueAfter: time.Second}, nil
	}
	if r.reading() {
		if err := r.load(ctx); err != nil {
			return reconcile.Result{}, err
		}
	}
	snapshot := r.Snapshot(r.Clock.Now())
	r.look(snapshot)
	if err := r.flush(ctx); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: glance}, nil
}

// reading reports whether the record is to be read.
func (r *Recorder) reading() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.began.IsZero()
}

// load reads the record, to continue it. What is not readable is left alone until its
// slot is written.
func (r *Recorder) load(ctx context.Context) error {
	var found []*corev1.ConfigMap
	for slot := range Slots {
		m, err := r.get(ctx, slot)
		if err != nil {
			return err
		}
		if m != nil {
			found = append(found, m)
		}
	}
	rec, _ := Read(found)
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.Clock.Now().UTC()
	r.began, r.before, r.meter = now, rec, rec.Meter
	r.pending, r.open, r.claimed = nil, nil, false
	r.written, r.tried, r.lastID = segment{head: head{Version: version, Segment: 1}}, segment{}, 0
	if rec.newest != nil {
		r.written, r.lastID = *rec.newest, rec.newest.LastID
	}
	if rec.newest == nil || r.meter.Until.After(now.Add(ahead)) {
		now := now.Truncate(time.Second)
		r.meter, r.before = Meter{Since: now, Until: now}, Record{}
	}
	for _, d := range rec.Decisions {
		if d.Outcome == nil && now.Sub(d.At) < abandoned {
			r.open = append(r.open, &following{Decision: d, late: true})
		}
	}
	for _, d := range r.early {
		r.enter(d)
	}
	r.early = nil
	for _, i := range r.instances {
		i.until = later(i.start, r.meter.Until)
		if !i.end.IsZero() && i.end.Before(i.until) {
			i.until = i.end
		}
		i.launched = !i.start.IsZero() && !i.start.After(r.meter.Until)
		i.retired = !i.end.IsZero() && !i.end.After(r.meter.Until)
	}
	return nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// look counts costs and checks the results of decisions.
func (r *Recorder) look(s *model.Snapshot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := s.Now.UTC()
	requests, demand := r.price(s)
	if r.missing() > 0 && now.Sub(r.began) < unpriced {
		return // prices are being fetched
	}
	r.gap(now)
	to := now.Add(-settles).Truncate(time.Second)
	if d := to.Sub(r.meter.Until); d > 0 {
		r.meter.Totals.Retired.add(r.meter.Rates.Retired, d)
		r.meter.Totals.Requests.add(requests, d)
		r.meter.Until = to
	}
	for _, i := range r.instances {
		i.count(r.meter.Until, &r.meter.Totals)
	}
	r.release(demand)
	r.meter.Rates = Rates{Retired: r.retire(), Requests: requests}
	r.meter.Instances = 0
	for _, i := range r.instances {
		if !i.runs(now) {
			continue
		}
		r.meter.Instances++
		r.meter.Rates.Cost += i.rates.Cost
		r.meter.Rates.Discount += i.rates.Discount
		r.meter.Rates.Own += i.rates.Own
	}
	r.meter.Unpriced = r.missing()
	r.follow(now)
	asked := map[string]bool{}
	for _, f := range r.open {
		for _, name := range slices.Concat(f.Launched, f.Removed) {
			asked[name] = true
		}
	}
	maps.DeleteFunc(r.instances, func(name string, i *instance) bool {
		return i.gone && !asked[name] && (i.start.IsZero() || i.end.Before(r.meter.Until))
	})
}

// price records the prices of the nodes. It returns the requests of the pods on them,
// and the requests of these and the pending pods together.
func (r *Recorder) price(s *model.Snapshot) (requests, demand model.Price) {
	weights := Weights(s.Resources)
	pools := map[string]*model.Pool{}
	for i := range s.Pools {
		pools[s.Pools[i].Name] = &s.Pools[i]
	}
	sum := 0.0
	for k := range s.Nodes {
		n := &s.Nodes[k]
		if n.Claim == "" {
			continue
		}
		sum += worth(n.Requested, weights) - worth(n.DaemonRequested, weights)
		if i := r.instances[n.Claim]; i != nil {
			i.price(n, pools[n.Pool], weights)
		}
	}
	waiting := 0.0
	for k := range s.Pending {
		p := &s.Pending[k]
		for j := range p.Pods {
			if p.Pods[j].From == "" && p.Pods[j].Buffer == "" {
				waiting += worth(p.Shape.Requests, weights)
			}
		}
	}
	return model.Price(sum * float64(model.Dollar)), model.Price((sum + waiting) * float64(model.Dollar))
}

// release records the present requests of pods. If they are lower than before,
// nodes can be removed to that extent without counting as a saving of
// consolidation.
func (r *Recorder) release(demand model.Price) {
	was := r.meter.Demand
	if r.meter.Demand = demand; was > 0 {
		change := float64(demand-was) / float64(was)
		r.meter.Released = max(0, r.meter.Released-model.Price(change*float64(usable(r.meter.Rates))))
	}
}

// missing counts instances whose price was never known.
func (r *Recorder) missing() int {
	n := 0
	for _, i := range r.instances {
		if !i.start.IsZero() && !i.priced && !i.gone {
			n++
		}
	}
	return n
}

// gap enters what may be missing since the record was written last: instances that ran
// then and are gone, of which no one knows when they ended.
func (r *Recorder) gap(now time.Time) {
	if r.before.newest == nil {
		return
	}
	vanished := r.before.Meter.Rates.Cost
	for _, i := range r.instances {
		if i.runs(r.before.Written) {
			vanished -= i.rates.Cost
		}
	}
	if vanished > 0 {
		r.meter.Unseen.add(vanished, max(now.Sub(r.before.Meter.Until), 0))
	}
	r.before = Record{}
}

// retire returns the rate Retired, updated for the instances that were launched
// or ended since the last look.
func (r *Recorder) retire() model.Price {
	retired := r.meter.Rates.Retired
	for _, name := range slices.Sorted(maps.Keys(r.instances)) {
		i := r.instances[name]
		if !i.priced {
			continue
		}
		if !i.start.IsZero() && !i.launched {
			i.launched = true
			switch {
			case consolidated(i.replaces):
				retired -= usable(i.rates)
			case i.replaces == "":
				retired -= min(max(retired, 0), usable(i.rates))
			}
		}
		if !i.end.IsZero() && !i.retired {
			i.retired = true
			if consolidated(i.reason) {
				released := min(r.meter.Released, usable(i.rates))
				r.meter.Released -= released
				retired += usable(i.rates) - released
			}
		}
	}
	return retired
}

// follow adds the Outcomes of the decisions that are complete.
func (r *Recorder) follow(now time.Time) {
	r.open = slices.DeleteFunc(r.open, func(f *following) bool {
		o, over := r.outcome(f, now)
		if over {
			r.pending = append(r.pending, line{Outcome: &o})
		}
		return over
	})
}

// outcome returns the Outcome of a decision so far, and whether it is complete.
func (r *Recorder) outcome(f *following, now time.Time) (o Outcome, over bool) {
	o = Outcome{Of: f.ID, At: f.At, Evictions: f.evictions, Late: f.late}
	young := now.Sub(f.At) < unknown
	waiting := false
	var became []Group
	for _, name := range f.Launched {
		switch i := r.instances[name]; {
		case i != nil && !i.initialized.IsZero():
			o.Ready++
			o.Price += i.rates.Cost
			o.At = later(o.At, i.initialized)
			became = append(became, i.group)
			if !f.Oldest.IsZero() {
				o.Wait = max(o.Wait, i.initialized.Sub(f.Oldest))
			}
		case i == nil && !young, i != nil && i.gone:
			o.Failed++
		default:
			waiting = true
		}
	}
	for _, name := range f.Removed {
		switch i := r.instances[name]; {
		case i == nil, i.gone, !i.end.IsZero():
			o.Removed++
			if i != nil {
				o.Freed += i.rates.Cost
				o.At = later(o.At, i.end)
			}
		case i.reason == "" && !i.deleting && !young:
			o.Kept++
		default:
			waiting = true
		}
	}
	o.Became = groups(became)
	if waiting && now.Sub(f.At) >= abandoned {
		o.Late, o.At, waiting = true, now, false
	}
	return o, !waiting
}

// flush writes what is new, if it is time to.
func (r *Recorder) flush(ctx context.Context) error {
	due, newest := r.due()
	if !due {
		return nil
	}
	have, err := r.get(ctx, newest)
	if err != nil || !r.leads(have) {
		return err
	}
	want, err := r.next()
	if err != nil {
		return err
	}
	if want.Name != Name(newest) { // the segment is full, and another takes the place of the oldest
		if have, err = r.get(ctx, newest+1); err != nil || !r.mayReplace(have) {
			return err
		}
	}
	if have == nil {
		err = r.Client.Create(ctx, want)
	} else {
		changed := have.DeepCopy()
		changed.Data, changed.BinaryData = want.Data, want.BinaryData
		err = r.Client.Update(ctx, changed) // fails if another leader has written since
	}
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return nil // the next look finds out which leader wrote
	case err != nil:
		return fmt.Errorf("write the record in ConfigMap %s/%s: %w", r.Namespace, want.Name, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.commit()
	return nil
}

// get returns the ConfigMap in the slot, nil if there is none.
func (r *Recorder) get(ctx context.Context, slot int) (*corev1.ConfigMap, error) {
	m := &corev1.ConfigMap{}
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: Name(slot % Slots)}, m)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the record: %w", err)
	}
	return m, nil
}

// due reports whether something is to be written, and the slot of the segment that was
// written last.
func (r *Recorder) due() (bool, int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	slot := int(r.written.Segment % Slots)
	since := r.Clock.Now().Sub(later(r.written.Written, r.tried.Written)) // also if the answer was lost
	switch {
	case r.tried.Segment == 0:
		return true, slot
	case since >= 0 && since < leastBetween: // less than 0: the clock was set back
		return false, slot
	}
	return !r.claimed || len(r.pending) > 0 || r.rates != r.meter.Rates || since >= mostBetween, slot
}

// leads reports whether the newest segment is as this process left it. If not, another
// leader has written it, and the record is read again.
func (r *Recorder) leads(have *corev1.ConfigMap) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := head{}
	if s, err := unpack(have); err == nil && s != nil {
		found = s.head
	}
	if r.tried.Segment != 0 && found.Written.Equal(r.tried.Written) && !found.Written.Equal(r.written.Written) {
		r.commit() // the answer to the last write was lost
	}
	if !found.Written.Equal(r.written.Written) {
		if found.Written.IsZero() { // a user has deleted it or made it unreadable: what was decided since is ours
			for _, l := range r.pending {
				if l.Decision != nil {
					r.early = append(r.early, *l.Decision)
				}
			}
		}
		r.began = time.Time{}
		return false
	}
	return true
}

// mayReplace reports whether the segment is an old one, or what this process tried to
// write before. If not, the record is read again.
func (r *Recorder) mayReplace(have *corev1.ConfigMap) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s, err := unpack(have); err == nil && s != nil && s.Segment >= r.tried.Segment && !s.Written.Equal(r.lost) {
		r.began = time.Time{}
		return false
	}
	return true
}

// next returns the ConfigMap to write.
func (r *Recorder) next() (*corev1.ConfigMap, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// The first write changes nothing but the head, so that it can only succeed in the
	// newest segment, where a leader that does not know better would write.
	first := !r.claimed
	from, lines := r.written, r.pending
	if first {
		lines = nil
	}
	for {
		next, err := r.appended(from, lines)
		if err != nil {
			return nil, err
		}
		m, fits, err := next.configMap(r.Namespace)
		switch {
		case err != nil:
			return nil, err
		case fits || first:
			r.lost, r.tried = r.tried.Written, next
			return m, nil
		case from.Segment == r.written.Segment && len(from.text) > 0:
			from.text = nil
			from.Segment++
		case len(lines) > 1:
			lines = lines[:len(lines)/2]
		default:
			r.pending = r.pending[len(lines):]
			return nil, errors.New("write the record: a decision does not fit into a ConfigMap and is left out")
		}
	}
}

// appended returns the segment with the lines.
func (r *Recorder) appended(to segment, lines []line) (segment, error) {
	next := segment{head: to.head, text: slices.Clone(to.text), added: len(lines)}
	next.Version, next.Written, next.Meter = version, r.Clock.Now().UTC(), r.meter
	for _, l := range lines {
		text, err := json.Marshal(l)
		if err != nil {
			return next, err
		}
		next.text = append(append(next.text, text...), '\n')
		if l.Decision != nil {
			next.LastID = l.Decision.ID
		}
	}
	return next, nil
}

// commit records that the attempted write succeeded.
func (r *Recorder) commit() {
	r.written, r.rates = r.tried, r.tried.Meter.Rates
	r.pending = slices.Delete(r.pending, 0, r.tried.added)
	r.written.added, r.tried.added, r.claimed = 0, 0, true
}
