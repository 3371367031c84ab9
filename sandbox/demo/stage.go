// SPDX-License-Identifier: Apache-2.0

// Package demo runs scripts on a new cluster: it applies manifests, scales up and down, waits by watching,
// and prints a timeline. If a step does not reach its goal in time, the script fails with an error that names
// what is missing.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"karpenter/sandbox/fleet"
	"karpenter/sandbox/manifest"
	"karpenter/sandbox/process"
	"karpenter/sandbox/session"
)

const (
	look     = 50 * time.Millisecond // how often wants are looked at, at most
	hopeless = 4                     // crashes of the controller that end the script
)

// Options says what to run on what.
type Options struct {
	// Session is the cluster to bring up. An empty data folder means a temporary one, removed after success.
	Session session.Options
	// Examples is the folder with the manifests of the script, beside inflate.yaml; default examples/ and the provider.
	Examples string
	// Scale is how many pods Stress runs; default 5000.
	Scale int
	// Disruption is what Disrupt does.
	Disruption Disruption
	// Sizing is what Size does.
	Sizing Sizing
	// Out receives the timeline.
	Out io.Writer
}

// step is one part of a script: an action, and its expected results.
type step struct {
	name  string
	do    func(context.Context, *stage) error
	wants []want
}

// want is something to wait for.
type want struct {
	name   string
	within time.Duration // of the step's begin
	// missing says what is not there yet; empty: all is.
	missing func(*fleet.View) string
}

// result is a want that came about.
type result struct {
	step int    // its place in the script
	name string // the step's
	what string
	took time.Duration // since the step's begin
}

// source is the cluster as it is watched.
type source interface {
	View() fleet.View
	Changed() <-chan struct{}
}

// stage is where a script runs.
type stage struct {
	out      io.Writer
	settle   time.Duration // how long changes are gathered before they are printed
	source   source
	began    time.Time
	examples string
	crashes  func() int // of the controller, so far
	applier  *manifest.Applier
	client   kubernetes.Interface
	untyped  dynamic.Interface
	session  *session.Session
	history  *fleet.History
	memory   *samples // of the controller
	count    func(context.Context) (nodes, pods int, err error)

	results    []result
	told       string // the state that was printed last
	toldAt     time.Time
	bought     int
	lastBought time.Time
}

// script is what a demo does.
type script struct {
	steps  []step
	settle time.Duration // how long changes are gathered before they are printed
	// measure is called at the end, also after a failure, while everything runs; nil: nothing to measure.
	measure func(context.Context, *stage) error
}

// perform brings a session up, plays a script on it, sums up what came about, and takes it down. Whatever fails, no
// process is left. A folder of its own is kept only for finding out what failed.
func perform(ctx context.Context, options Options, play script) error {
	remove, err := freshFolder(&options.Session.ControlPlane.Dir)
	if err != nil {
		return err
	}
	if options.Session.Report == nil {
		options.Session.Report = io.Discard
	}
	err = performIn(ctx, options, play)
	if err == nil || ctx.Err() != nil {
		return errors.Join(err, remove())
	}
	return fmt.Errorf("%w\nthe cluster and its logs are in %s", err, options.Session.ControlPlane.Dir)
}

func performIn(ctx context.Context, options Options, play script) error {
	began := time.Now()
	s, err := session.Start(ctx, options.Session)
	if err != nil {
		return err
	}
	watching, stopWatching := context.WithCancel(ctx)
	defer func() {
		stopWatching()
		if err := s.Stop(); err != nil { // all are gone; one of them not by itself
			fmt.Fprintln(options.Session.Report, "sandbox:", err)
		}
	}()
	client, err := kubernetes.NewForConfig(s.Config())
	if err != nil {
		return err
	}
	untyped, err := dynamic.NewForConfig(s.Config())
	if err != nil {
		return err
	}
	history := &fleet.History{}
	watched, err := fleet.Watch(watching, s.Config(), history, s.Prices())
	if err != nil {
		return err
	}
	st := &stage{
		out: options.Out, settle: play.settle, source: watched, began: began, examples: options.Examples,
		crashes: s.Controller().Failures, applier: s.Applier, client: client, untyped: untyped,
		session: s, history: history, memory: sampleMemory(watching, s.Controller()),
	}
	st.count = st.viewed
	st.heading("the cluster is up")
	if err := st.play(ctx, play); err != nil {
		if ctx.Err() != nil {
			return err
		}
		return fmt.Errorf("%w\nthe end of %s:\n%s", err, s.ControllerLog(), process.Tail(s.ControllerLog()))
	}
	writeSummary(options.Out, st.results, new(watched.View()))
	writeController(options.Out, s.Controller())
	return writeRequests(ctx, options.Out, s)
}

// play runs all steps, measures, and holds what happened against the budgets.
func (st *stage) play(ctx context.Context, play script) error {
	var errs []error
	for i := range play.steps {
		if err := st.run(ctx, i, &play.steps[i]); err != nil {
			errs = append(errs, err)
			break
		}
	}
	if ctx.Err() == nil && play.measure != nil {
		errs = append(errs, play.measure(ctx, st))
	}
	for _, broken := range st.history.Between(time.Time{}, time.Now()).Broken {
		errs = append(errs, errors.New(broken))
	}
	return errors.Join(errs...)
}

// freshFolder makes sure that no cluster is in dir, or makes a temporary folder. It returns how to remove what it made.
func freshFolder(dir *string) (func() error, error) {
	if *dir == "" {
		made, err := os.MkdirTemp("", "sandbox-")
		if err != nil {
			return nil, err
		}
		*dir = made
		return func() error { return os.RemoveAll(made) }, nil
	}
	if _, err := os.Stat(filepath.Join(*dir, "etcd")); err == nil {
		return nil, fmt.Errorf("%s holds a cluster already; this wants a fresh folder", *dir)
	}
	return func() error { return nil }, nil
}

// run does a step and waits for what it wants, one want after the other.
func (st *stage) run(ctx context.Context, place int, s *step) error {
	st.heading(s.name)
	began := time.Now()
	if s.do != nil {
		if err := s.do(ctx, st); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	for _, w := range s.wants {
		deadline, cancel := context.WithDeadline(ctx, began.Add(w.within))
		missing, err := st.await(deadline, w.missing)
		cancel()
		switch {
		case err != nil:
			return fmt.Errorf("%s: %s: %w", s.name, w.name, err)
		case missing != "" && ctx.Err() != nil:
			return fmt.Errorf("%s: interrupted while waiting: %s", s.name, missing)
		case missing != "":
			return fmt.Errorf("%s: not within %v: %s: %s", s.name, w.within, w.name, missing)
		}
		took := time.Since(began)
		st.results = append(st.results, result{place, s.name, w.name, took})
		st.line("done", fmt.Sprintf("%s, after %s", w.name, seconds(took)))
	}
	if st.lastBought.After(began) {
		st.results = append(st.results, result{place, s.name, "last node launched", st.lastBought.Sub(began)})
	}
	return nil
}

// await tells what happens until nothing is missing, or ctx is done: then it returns what still is. A broken limit ends
// it at once, as does a controller that cannot stay alive.
func (st *stage) await(ctx context.Context, missing func(*fleet.View) string) (string, error) {
	tick := time.NewTimer(0)
	defer tick.Stop()
	for {
		changed := st.source.Changed()
		view := st.source.View()
		st.notePurchases(&view)
		if err := withinLimits(&view); err != nil {
			st.tell(&view)
			return "", err
		}
		left := missing(&view)
		if n := st.crashes(); n >= hopeless && left != "" {
			return "", fmt.Errorf("the controller has died %d times; %s", n, left)
		}
		if left == "" || time.Since(st.toldAt) >= st.settle {
			st.tell(&view)
		}
		if left == "" {
			return "", nil
		}
		// Rest a little, then wait for a change, or tell what is gathered.
		tick.Reset(look)
		select {
		case <-ctx.Done():
			st.tell(&view)
			return left, nil
		case <-tick.C:
		}
		tick.Reset(st.settle)
		select {
		case <-ctx.Done():
			st.tell(&view)
			return left, nil
		case <-changed:
		case <-tick.C:
		}
	}
}

func (st *stage) notePurchases(view *fleet.View) {
	bought := 0
	for _, p := range view.Bought {
		bought += p.Count
	}
	if bought > st.bought {
		st.bought, st.lastBought = bought, time.Now()
	}
}

// withinLimits checks that no pool exceeded its limits at any change that the API server reported.
func withinLimits(view *fleet.View) error {
	for i := range view.Pools {
		p := &view.Pools[i]
		for name, limit := range p.Limits {
			if peak := p.Peak[name]; peak.Cmp(limit) > 0 {
				return fmt.Errorf("pool %s went over its limit: %s %s, allowed are %s", p.Name, peak.String(), name, limit.String())
			}
		}
	}
	return nil
}

// tell prints the state if it has changed since the last call.
func (st *stage) tell(view *fleet.View) {
	if now := view.String(); now != st.told {
		st.line("now", now)
		st.told = now
	}
	st.toldAt = time.Now()
}

func (st *stage) line(kind, text string) {
	fmt.Fprintf(st.out, "%9s  %-4s %s\n", "+"+seconds(time.Since(st.began)), kind, text)
}

func (st *stage) heading(text string) {
	fmt.Fprintf(st.out, "%9s  == %s\n", "+"+seconds(time.Since(st.began)), text)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1fs", d.Seconds()) }

// apply returns a step's action that applies manifests of the examples.
func apply(names ...string) func(context.Context, *stage) error {
	return func(ctx context.Context, st *stage) error {
		for _, name := range names {
			objects, err := manifest.Read(filepath.Join(st.examples, name))
			if err == nil {
				err = st.applier.Apply(ctx, objects)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// removeKind returns a step's action that deletes, of what a manifest of the examples made, the objects of one kind.
func removeKind(kind, name string) func(context.Context, *stage) error {
	return func(ctx context.Context, st *stage) error {
		objects, err := manifest.Read(filepath.Join(st.examples, name))
		if err != nil {
			return err
		}
		objects = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() != kind })
		return st.applier.Delete(ctx, objects)
	}
}

// scale returns a step's action that sets a deployment's replicas.
func scale(name string, replicas int) func(context.Context, *stage) error {
	return func(ctx context.Context, st *stage) error {
		patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
		_, err := st.client.AppsV1().Deployments(metav1.NamespaceDefault).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
		if err != nil {
			return fmt.Errorf("scale deployment %s to %d: %w", name, replicas, err)
		}
		return nil
	}
}

// all returns a step's action that is several, one after the other.
func all(actions ...func(context.Context, *stage) error) func(context.Context, *stage) error {
	return func(ctx context.Context, st *stage) error {
		for _, do := range actions {
			if err := do(ctx, st); err != nil {
				return err
			}
		}
		return nil
	}
}
