// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
)

// Settings of leader election. Another replica takes over a lease that is not
// renewed for leaseDuration. The leader renews every retryPeriod, and stops
// leading if that fails for renewDeadline.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// Fence prevents a process from changing anything while another process may
// lead. A leader that was frozen, for example for lack of CPU, learns too late
// that it has lost its lease. Without a check before each change, it would go
// on with what it was doing.
//
// A nil Fence prevents nothing. Fence is safe for concurrent use.
type Fence struct {
	clock clock.PassiveClock

	mu      sync.Mutex
	renewed time.Time     // when the last successful renewal began; zero: does not lead
	closed  chan struct{} // closed with the fence
}

// NewFence returns one that is closed until the lease is won.
func NewFence(c clock.PassiveClock) *Fence {
	return &Fence{clock: c, closed: make(chan struct{})}
}

// Check returns an error if the process may not change anything now.
func (f *Fence) Check() error {
	if f == nil {
		return nil
	}
	_, err := f.left()
	return err
}

// left returns for how long changes may be made if the lease is not renewed, or
// why none may be made now.
func (f *Fence) left() (time.Duration, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.renewed.IsZero() {
		return 0, errors.New("this replica does not lead")
	}
	now := f.clock.Now()
	// The monotonic clock stands still while a machine sleeps, the other one jumps.
	age := max(now.Sub(f.renewed), now.Round(0).Sub(f.renewed.Round(0)))
	if age > leaseDuration-retryPeriod {
		return 0, fmt.Errorf("another replica may lead: the lease was renewed %v ago", age.Round(time.Second))
	}
	return leaseDuration - retryPeriod - age, nil
}

// Renewed opens the fence: the lease was renewed by a request that began then.
func (f *Fence) Renewed(began time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.renewed = began
}

// Close closes the fence and cancels the contexts of Hold, because the lease
// was released or another process has it.
func (f *Fence) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.renewed = time.Time{}
	close(f.closed)
	f.closed = make(chan struct{})
}

// errClosed is the cause with which a Fence cancels the contexts of Hold.
var errClosed = errors.New("another replica may lead before the request is answered")

// Hold returns a context for one change. It ends when changes may no longer be
// made; each renewal of the lease extends it. The error says why no change may
// be made now. The caller calls the function when the change is made.
func (f *Fence) Hold(ctx context.Context) (context.Context, context.CancelFunc, error) {
	if f == nil {
		return ctx, func() {}, nil
	}
	f.mu.Lock()
	closed := f.closed
	f.mu.Unlock()
	left, err := f.left()
	if err != nil {
		return nil, nil, err
	}
	held, cancel := context.WithCancelCause(ctx)
	go f.watch(held, closed, left, cancel)
	return held, func() { cancel(nil) }, nil
}

// watch cancels the held context when the fence is closed or the lease runs
// out.
func (f *Fence) watch(held context.Context, closed <-chan struct{}, left time.Duration, end context.CancelCauseFunc) {
	timer := time.NewTimer(left)
	defer timer.Stop()
	for {
		select {
		case <-held.Done():
			return
		case <-closed:
			end(errClosed)
			return
		case <-timer.C:
			left, err := f.left()
			if err != nil {
				end(errClosed)
				return
			}
			timer.Reset(left + time.Millisecond)
		}
	}
}

// guard sends requests that change something only while the fence is open.
// Events, and POST requests that only ask about identity or permissions, are
// always sent.
func (f *Fence) guard(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if f == nil || !changes(r) {
			return next.RoundTrip(r)
		}
		ctx, release, err := f.Hold(r.Context())
		if err != nil {
			if r.Body != nil {
				_ = r.Body.Close()
			}
			return nil, err
		}
		return f.send(ctx, release, r, next)
	})
}

// send sends the request while changes may be made. Before the request is
// written, a connection may have to be made, which can take longer than the
// lease lasts: so the request is abandoned when the lease runs out, and its body
// is given out only while changes may be made. Giving up also ends what waits at
// the API server.
func (f *Fence) send(ctx context.Context, release context.CancelFunc, r *http.Request, next http.RoundTripper) (*http.Response, error) {
	bounded := r.WithContext(ctx)
	if r.Body != nil && r.Body != http.NoBody {
		bounded.Body = &fencedBody{r.Body, f}
	}
	if again := r.GetBody; again != nil {
		bounded.GetBody = func() (io.ReadCloser, error) {
			body, err := again()
			if err != nil {
				return nil, err
			}
			return &fencedBody{body, f}, nil
		}
	}
	response, err := next.RoundTrip(bounded)
	if err != nil {
		if ctx.Err() != nil && r.Context().Err() == nil {
			err = context.Cause(ctx)
		}
		release()
		return nil, err
	}
	response.Body = &releasedBody{response.Body, release}
	return response, nil
}

// fencedBody is the body of a request that changes something.
type fencedBody struct {
	io.ReadCloser
	fence *Fence
}

func (b *fencedBody) Read(p []byte) (int, error) {
	if err := b.fence.Check(); err != nil {
		return 0, err
	}
	return b.ReadCloser.Read(p)
}

// releasedBody ends the hold of the request when it is closed.
type releasedBody struct {
	io.ReadCloser
	release context.CancelFunc
}

func (b *releasedBody) Close() error {
	defer b.release()
	return b.ReadCloser.Close()
}

func changes(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return false
	}
	for _, harmless := range []string{"/apis/authentication.k8s.io/", "/apis/authorization.k8s.io/"} {
		if strings.Contains(r.URL.Path, harmless) {
			return false
		}
	}
	// …/namespaces/NAMESPACE/KIND/…: objects and namespaces may be named events, too.
	parts := strings.Split(r.URL.Path, "/")
	at := slices.Index(parts, "namespaces")
	return at < 0 || len(parts) < at+3 || parts[at+2] != "events"
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// lock is a lease that reports its renewals to the fence.
type lock struct {
	resourcelock.Interface
	fence *Fence
}

// newLock returns the lease. It calls record when the lease changes its holder.
func newLock(config *rest.Config, l Lease, record func() resourcelock.EventRecorder) (resourcelock.Interface, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("name this replica: %w", err)
	}
	namespace, err := l.namespace(inClusterNamespace)
	if err != nil {
		return nil, err
	}
	own := rest.CopyConfig(config)
	own.UserAgent += "/leader-election"
	own.Timeout = renewDeadline / 2 // one request that hangs does not lose the lease
	leases, err := coordinationv1.NewForConfig(own)
	if err != nil {
		return nil, fmt.Errorf("client for the lease: %w", err)
	}
	return lock{fence: l.Fence, Interface: &resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: namespace, Name: l.Name},
		Client:    leases,
		LockConfig: resourcelock.ResourceLockConfig{
			Identity: host + "_" + string(uuid.NewUUID()), EventRecorder: lateRecorder(record),
		},
	}}, nil
}

// Get closes the fence if another process holds the lease. A process whose
// clocks stood still has no other way to know.
func (l lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil && record.HolderIdentity != l.Identity() && l.fence != nil {
		l.fence.Close()
	}
	return record, raw, err
}

func (l lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Create)
}

func (l lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Update)
}

// write counts a renewal from when it was begun, as others count from later; and
// a release from before it is made.
func (l lock) write(ctx context.Context, record resourcelock.LeaderElectionRecord, do func(context.Context, resourcelock.LeaderElectionRecord) error) error {
	if l.fence == nil {
		return do(ctx, record)
	}
	began := l.fence.clock.Now()
	if record.HolderIdentity != l.Identity() {
		l.fence.Close()
		return do(ctx, record)
	}
	err := do(ctx, record)
	if err == nil {
		l.fence.Renewed(began)
	}
	return err
}

// lateRecorder is one that is made later.
type lateRecorder func() resourcelock.EventRecorder

func (r lateRecorder) Eventf(about runtime.Object, kind, reason, message string, args ...any) {
	r().Eventf(about, kind, reason, message, args...)
}
