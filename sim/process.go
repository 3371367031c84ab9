// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	v1 "karpenter/api/v1"
	"karpenter/cmd/karpenter/config"
	"karpenter/cmd/karpenter/wiring"
	"karpenter/kube/feed"
	kube "karpenter/kube/manager"
	"karpenter/sim/simcloud"
	"karpenter/sim/store"
)

// workers is how many reconciles a controller may have under way.
const workers = 4

// process is one life of what is under test. It is the manager.Manager of its
// controllers.
type process struct {
	store   *store.Store
	cache   *lagging
	client  client.Client
	live    client.Reader
	gate    *gate
	fence   *kube.Fence
	log     logr.Logger
	elected chan struct{}
	asleep  time.Time // until then it stands still

	runnables []manager.Runnable
	stop      context.CancelFunc
	running   sync.WaitGroup

	mu       sync.Mutex
	starting string // which runnable is
	queues   []requests
	told     []Told
	failure  error
	ended    bool
}

var _ manager.Manager = (*process)(nil)

// Told is an event the process published for users.
type Told struct {
	Kind, Name      string // of the object
	Type            string // Normal or Warning
	Reason, Message string
}

// awaits reports whether a controller has not begun to work, since its caches
// are not full.
func (p *process) awaits() bool {
	for _, q := range p.queues {
		if !q.begun() {
			return true
		}
	}
	return false
}

// habitat is what a process finds when it starts.
type habitat struct {
	store    *store.Store
	cloud    *simcloud.Cloud
	settings config.Config
	rand     *rand.Rand
	slow     func(controller string) bool // as in gated
	logs     io.Writer
	vendor   Vendor // nil = the cloud itself
	workers  int
	planner  wiring.Planner // nil = the process's own
	// publishIn is as in Setup.
	publishIn string
	wake      chan struct{} // as that of a gate
}

// provider returns what makes the provider of the process.
func (h *habitat) provider(p *process) func(context.Context, wiring.Supplies) (wiring.Provider, error) {
	if h.vendor != nil {
		return func(ctx context.Context, s wiring.Supplies) (wiring.Provider, error) {
			return h.vendor.Provider(ctx, p.gate.door, s)
		}
	}
	return func(context.Context, wiring.Supplies) (wiring.Provider, error) {
		return wiring.Provider{
			Provider: &provider{h.cloud, p.gate, h.rand}, Labels: v1.Labels{},
			Register: func(manager.Manager) error { return nil },
		}, nil
	}
}

// newProcess wires everything up without starting it.
func newProcess(h habitat) (*process, error) {
	fence := kube.NewFence(clock.RealClock{})
	p := &process{store: h.store, gate: newGate(fence, h.wake), fence: fence, elected: make(chan struct{})}
	close(p.elected)
	p.log = logr.New(&sink{process: p, out: h.logs})
	var err error
	if p.cache, err = newCache(h.store, feed.Trims(), p.listening); err != nil {
		return nil, err
	}
	direct := h.store.Client(processName)
	p.client = &gated{Client: direct, reader: p.cache, store: h.store, gate: p.gate, slow: h.slow}
	p.live = &live{reader: direct, store: h.store, gate: p.gate}
	ctx, stop := context.WithCancel(log.IntoContext(context.Background(), p.log))
	p.stop = stop
	if err := kube.AddIndexes(ctx, p.cache); err != nil {
		return nil, err
	}
	p.starting = "world"
	err = wiring.Wire(ctx, wiring.Surroundings{
		Manager: p, Config: h.settings, Registry: prometheus.NewRegistry(), Workers: h.workers, Orderly: true, PublishIn: h.publishIn, Planner: h.planner,
		Provider:  h.provider(p),
		Nominator: func() (client.StatusClient, error) { return p.client, nil },
	})
	if err != nil {
		stop()
		return nil, fmt.Errorf("wire: %w", err)
	}
	return p, nil
}

// listening is who adds handlers now.
func (p *process) listening() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.starting
}

// start starts all runnables, one after the
// other, and calls settle in between. It does not block.
func (p *process) start(ctx context.Context, settle func()) {
	p.gate.shut()
	ctx, stop := context.WithCancel(log.IntoContext(ctx, p.log))
	wired := p.stop
	p.stop = func() { stop(); wired() }
	for _, r := range p.runnables {
		p.mu.Lock()
		p.starting = nameOf(r)
		p.mu.Unlock()
		p.running.Go(func() {
			if err := r.Start(ctx); err != nil && ctx.Err() == nil {
				p.fail(fmt.Errorf("start %T: %w", r, err))
			}
		})
		settle()
	}
}

// nameOf returns the name of a controller, the type of another runnable.
func nameOf(r manager.Runnable) string {
	if value := reflect.ValueOf(r); value.Kind() == reflect.Pointer && value.Elem().Kind() == reflect.Struct {
		if field := value.Elem().FieldByName("Name"); field.IsValid() && field.Kind() == reflect.String {
			return field.String()
		}
	}
	return fmt.Sprintf("%T", r)
}

// Start implements manager.Manager. The run uses start instead.
func (p *process) Start(context.Context) error {
	return errors.New("a run starts its processes itself")
}

// end ends the process: its calls have no effect any more. Settle waits for
// everything that can go on by itself.
func (p *process) end(settle func()) {
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	p.gate.end()
	p.stop()
	settle()
	p.running.Wait()
}

// fail notes the first thing that must not happen in a process.
func (p *process) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failure == nil {
		p.failure = err
	}
}

func (p *process) tell(o runtime.Object, kind, reason, message string) {
	t := Told{Type: kind, Reason: reason, Message: message}
	if object, ok := o.(client.Object); ok {
		t.Name = named(object)
		if gvk, err := p.store.KindOf(o); err == nil {
			t.Kind = gvk.Kind
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told = append(p.told, t)
}

// news returns what was told to users since the last call, and what has failed.
func (p *process) news() ([]Told, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := p.told
	p.told = nil
	return out, p.failure
}

// sink is where the process logs to. A panic that controller-runtime has caught
// fails the process.
type sink struct {
	process *process
	out     io.Writer // nil = not written
	context string
	// controller is which one logs; "" = none.
	controller string
}

// controllerOf returns the controller whose reconcile has the context, "" if it
// is not one's.
func controllerOf(ctx context.Context) string {
	l, err := logr.FromContext(ctx)
	if err != nil {
		return ""
	}
	if s, ok := l.GetSink().(*sink); ok {
		return s.controller
	}
	return ""
}

// Init implements logr.LogSink.
func (s *sink) Init(logr.RuntimeInfo) {}

// Enabled implements logr.LogSink.
func (s *sink) Enabled(level int) bool { return s.out != nil && level <= 0 }

// Info implements logr.LogSink.
func (s *sink) Info(_ int, message string, pairs ...any) {
	if strings.HasPrefix(message, "Starting") || strings.HasPrefix(message, "Shutdown") || strings.HasPrefix(message, "All workers") {
		return
	}
	s.write("      log %s: %s%s%s\n", s.controller, message, s.context, paired(pairs))
}

// write adds a line to the transcript, unless the process has ended.
func (s *sink) write(format string, args ...any) {
	s.process.mu.Lock()
	defer s.process.mu.Unlock()
	if !s.process.ended {
		fmt.Fprintf(s.out, format, args...)
	}
}

// Error implements logr.LogSink.
func (s *sink) Error(err error, message string, pairs ...any) {
	if err != nil && strings.HasPrefix(err.Error(), "panic: ") {
		s.process.fail(fmt.Errorf("%s: %s%s: %w", s.controller, message, s.context, err))
	}
	if s.out != nil {
		s.write("      log %s: %s: %v%s%s\n", s.controller, message, err, s.context, paired(pairs))
	}
}

// WithValues implements logr.LogSink.
func (s *sink) WithValues(pairs ...any) logr.LogSink {
	if len(pairs) < 2 || pairs[0] == "reconcileID" || s.out == nil && pairs[0] != "controller" {
		return s
	}
	next := *s
	if pairs[0] == "controller" {
		next.controller = fmt.Sprint(pairs[1])
	} else {
		next.context += paired(pairs)
	}
	return &next
}

// WithName implements logr.LogSink.
func (s *sink) WithName(string) logr.LogSink { return s }

func paired(pairs []any) string {
	var out strings.Builder
	for i := 0; i+1 < len(pairs); i += 2 {
		fmt.Fprintf(&out, " %v=%v", pairs[i], pairs[i+1])
	}
	return out.String()
}
