// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"karpenter/kube/optional"
)

const (
	// steady is how long a watch must be open to count as working: one that
	// always fails at an object it cannot decode is opened again and again.
	steady = 10 * time.Second
	// toleratedDown is how long a watch can be down before the process is no
	// longer ready. An informer tries again every 30 seconds at the latest.
	toleratedDown = time.Minute
)

// Watches measures how long informers have been without a working watch. The
// objects in such an informer are old, and no error reports that. It is safe
// for concurrent use.
type Watches struct {
	clock    clock.PassiveClock
	optional []client.Object
	down     *prometheus.Desc

	mu    sync.Mutex
	kinds []*watched
}

// watched is what is known of the watch of one informer.
type watched struct {
	kind     string
	optional bool        // the process does without the kind
	synced   func() bool // the informer has had all objects once
	opened   time.Time   // when the present watch was opened; zero = there is none
	since    time.Time   // when the last working watch ended, at first when the informer was made
	cause    error       // of the latest failure
}

// Down is a kind of object that is not being watched.
type Down struct {
	Kind     string
	Since    time.Time
	Optional bool // the process does without the kind
	Refused  bool // the API server does not allow it
}

// NewWatches returns a Watches that is published in reg. The process does without the optional kinds.
func NewWatches(reg prometheus.Registerer, c clock.PassiveClock, optional ...client.Object) *Watches {
	w := &Watches{clock: c, optional: optional, down: prometheus.NewDesc("karpenter_cluster_state_watch_down_time_seconds",
		"For how long objects of the kind have not been watched; 0 while the watch works.", []string{"kind", "optional"}, nil)}
	reg.MustRegister(w)
	return w
}

// Describe implements prometheus.Collector.
func (w *Watches) Describe(out chan<- *prometheus.Desc) { out <- w.down }

// Collect implements prometheus.Collector.
func (w *Watches) Collect(out chan<- prometheus.Metric) {
	type series struct {
		kind     string
		optional bool
	}
	longest := map[series]float64{}
	for _, k := range w.snapshot() {
		of := series{k.kind, k.optional}
		longest[of] = max(longest[of], k.downTime(w.clock.Now()).Seconds())
	}
	for of, seconds := range longest {
		out <- prometheus.MustNewConstMetric(w.down, prometheus.GaugeValue, seconds, of.kind, strconv.FormatBool(of.optional))
	}
}

func (w *Watches) snapshot() []watched {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make([]watched, len(w.kinds))
	for i, k := range w.kinds {
		out[i] = *k
	}
	return out
}

// downTime returns how long there has been no working watch. It is 0 for optional
// kinds that the API server does not serve.
func (k watched) downTime(now time.Time) time.Duration {
	if k.optional && optional.Unserved(k.cause) {
		return 0
	}
	if !k.opened.IsZero() && now.Sub(k.opened) >= steady {
		return 0
	}
	return now.Sub(k.since)
}

// Down returns the kinds of objects that are not being watched, by name.
func (w *Watches) Down() []Down {
	var out []Down
	now := w.clock.Now()
	for _, k := range w.snapshot() {
		if k.downTime(now) > 0 {
			out = append(out, Down{k.kind, k.since, k.optional, apierrors.IsForbidden(k.cause)})
		}
	}
	slices.SortFunc(out, func(a, b Down) int { return cmp.Or(strings.Compare(a.Kind, b.Kind), a.Since.Compare(b.Since)) })
	return slices.CompactFunc(out, func(a, b Down) bool { return a.Kind == b.Kind })
}

// Unread returns why objects of an optional kind cannot be read: none has been, and the API
// server rejects them, or has not listed them for a while. It returns nil for kinds that
// no one has asked for.
func (w *Watches) Unread(kind client.Object) error {
	now := w.clock.Now()
	for _, k := range w.snapshot() {
		if k.kind != kindName(kind) || k.synced() {
			continue
		}
		if optional.Refused(k.cause) {
			return k.cause
		}
		if waited := now.Sub(k.since); waited > toleratedDown {
			return fmt.Errorf("the API server has not listed any for %v: %w", waited.Round(time.Second), cmp.Or(k.cause, errNoAnswer))
		}
	}
	return nil
}

// errNoAnswer reports that a request has not been answered yet.
var errNoAnswer = errors.New("no answer so far")

// work returns a check that fails while a watch has been down for too long.
func (w *Watches) work() healthz.Checker {
	return func(*http.Request) error {
		var failures []string
		now := w.clock.Now()
		for _, k := range w.snapshot() {
			if down := k.downTime(now); down > toleratedDown && !k.optional {
				failures = append(failures, fmt.Sprintf("%s for %v (%v)", k.kind, down.Round(time.Second), k.cause))
			}
		}
		if len(failures) == 0 {
			return nil
		}
		slices.Sort(failures)
		return fmt.Errorf("not watched: %s", strings.Join(failures, "; "))
	}
}

// informer makes an informer whose watch is tracked.
func (w *Watches) informer(lw toolscache.ListerWatcher, o runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	plain, ok := lw.(*toolscache.ListWatch)
	if !ok {
		return toolscache.NewSharedIndexInformer(lw, o, resync, indexers)
	}
	k := &watched{kind: kindName(o), since: w.clock.Now()}
	k.optional = slices.ContainsFunc(w.optional, func(kind client.Object) bool { return kindName(kind) == k.kind })
	out := toolscache.NewSharedIndexInformer(w.follow(plain, k), o, resync, indexers)
	k.synced = out.HasSynced
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kinds = append(w.kinds, k)
	return out
}

// follow notes whether watches of the kind of object can be opened, and when
// they end.
func (w *Watches) follow(lw *toolscache.ListWatch, k *watched) *toolscache.ListWatch {
	return &toolscache.ListWatch{
		DisableChunking: lw.DisableChunking,
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := lw.ListWithContext(ctx, options)
			w.failed(k, err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			inner, err := lw.WatchWithContext(ctx, options)
			if err != nil {
				w.failed(k, err)
				return nil, err
			}
			w.open(k)
			return &following{Interface: inner, ended: func() { w.ended(k) }}, nil
		},
	}
}

func (w *Watches) failed(k *watched, err error) {
	if err == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	k.cause = err
	if k.optional && optional.Unserved(err) {
		k.since = w.clock.Now() // the API server did not serve the kind
	}
}

func (w *Watches) open(k *watched) {
	w.mu.Lock()
	defer w.mu.Unlock()
	k.opened = w.clock.Now()
	if k.optional {
		k.cause = nil
	}
}

func (w *Watches) ended(k *watched) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := w.clock.Now(); now.Sub(k.opened) >= steady {
		k.since, k.cause = now, nil
	}
	k.opened = time.Time{}
}

// following is a watch that tells when it is stopped.
type following struct {
	watch.Interface
	once  sync.Once
	ended func()
}

// Stop implements watch.Interface.
func (f *following) Stop() {
	f.once.Do(f.ended)
	f.Interface.Stop()
}

// kindName returns the kind of the object.
func kindName(o runtime.Object) string {
	if kind := o.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return kind
	}
	return reflect.TypeOf(o).Elem().Name()
}
