// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"karpenter/sandbox/fleet"
)

// Sizing configures Size: the size of the cluster, and the phases.
type Sizing struct {
	Nodes   int           // made as objects, and not grown; 0: all are grown
	Made    string        // folder where clusters made of objects are kept; empty: a temporary one
	Bare    bool          // of a cluster made of objects run only etcd, the API server and the controller
	Drifted int           // nodes of a cluster made of objects that are replaced
	Pods    int           // of 20 deployments of mixed sizes
	Cores   int           // of every instance: their number follows, about Pods × 0.8 / Cores
	Burst   int           // pods that come, and go again
	Left    int           // of 100 pods, when most have gone
	Idle    time.Duration // how long nothing is done
	Rest    time.Duration // how long nothing may happen until all counts as at rest
	Within  time.Duration // how long each step may take
	Results string        // a file for all figures, as JSON; empty: none
}

// DefaultSizing is a cluster of about 1,000 nodes.
func DefaultSizing() Sizing {
	return Sizing{Drifted: 1000, Pods: 10_000, Cores: 8, Burst: 1000, Left: 80, Idle: 10 * time.Minute, Rest: time.Minute, Within: time.Hour}
}

// Validate returns an error for invalid values.
func (s *Sizing) Validate() error {
	switch {
	case s.Pods < 1 || s.Burst < 1 && s.Nodes == 0 || s.Cores < 1:
		return errors.New("pods, burst and cores must be at least 1")
	case s.Bare && s.Nodes == 0:
		return errors.New("nodes cannot be grown without a scheduler: with bare, say how many to make")
	case s.Left < 0 || s.Left > 100:
		return fmt.Errorf("of 100 pods %d cannot be left", s.Left)
	case s.Idle <= 0 || s.Rest <= 0 || s.Within <= s.Rest:
		return fmt.Errorf("%v of idleness, and steps of %v that end with %v of rest, make no sense", s.Idle, s.Within, s.Rest)
	}
	return nil
}

// Size grows a cluster, leaves it alone, has pods come and go, and consolidates it; it prints what the controller needs
// for each of that.
func Size(ctx context.Context, options Options) error {
	s := &options.Sizing
	if err := s.Validate(); err != nil {
		return err
	}
	if s.Nodes > 0 {
		return sizeMade(ctx, options)
	}
	z := &sizing{Sizing: s}
	err := perform(ctx, options, script{steps: z.steps(), settle: 5 * time.Second, measure: z.finish})
	return errors.Join(err, writeLoads(options.Out, z.loads), keepFigures(s.Results, z.loads))
}

// sizing is what came of a Sizing so far.
type sizing struct {
	*Sizing
	meter *meter // of the phase that goes on; nil: none
	loads []*load
}

func (z *sizing) steps() []step {
	burst := func(replicas int) func(context.Context, *stage) error {
		return func(ctx context.Context, st *stage) error {
			if replicas > 0 {
				return create(ctx, st, deployment("burst", size{"500m", "1Gi"}, replicas))
			}
			return scale("burst", 0)(ctx, st)
		}
	}
	out := []step{{"a pool of instances of one size", func(ctx context.Context, st *stage) error {
		return st.applier.Apply(ctx, oneSize(st.session.Provider(), z.Cores, z.Pods))
	}, []want{{"all pools are ready", time.Minute, poolsReady}}}}
	for wave := 1; wave <= waves; wave++ {
		pods := z.pods(wave * 100 / waves)
		name := fmt.Sprintf("%d pods", pods)
		wants := z.untilRest(pods)
		if wave < waves {
			wants = wants[:1]
		}
		out = append(out, step{name, all(z.phase("up to "+name), z.resize(wave*100/waves)), wants})
	}
	return append(out,
		step{fmt.Sprintf("nothing for %v", z.Idle), z.phase("idle"), []want{z.undisturbed()}},
		step{fmt.Sprintf("%d more pods", z.Burst), all(z.phase("burst up"), burst(z.Burst)), z.untilRest(z.Pods + z.Burst)},
		step{"and they go", all(z.phase("burst down"), burst(0)), z.untilRest(z.Pods)},
		step{fmt.Sprintf("scale everything to %d %%", z.Left), all(z.phase("consolidating"), z.resize(z.Left)), z.untilRest(z.pods(z.Left))},
		step{"the last phase is measured", z.phase(""), nil},
	)
}

// waves is in how many the pods come: kube-scheduler looks at all that wait again with every node, which would be most
// of the work otherwise.
const waves = 5

// pods is how many there are when so many of 100 are wanted.
func (z *sizing) pods(percent int) int {
	n := 0
	for i := range sizes() {
		n += z.share(i) * percent / 100
	}
	return n
}

// share is how many pods a deployment has at most.
func (z *sizing) share(i int) int {
	share := z.Pods / len(sizes())
	if i < z.Pods%len(sizes()) {
		share++
	}
	return share
}

// resize has so many of 100 pods wanted, of every deployment.
func (z *sizing) resize(percent int) func(context.Context, *stage) error {
	return func(ctx context.Context, st *stage) error {
		for i, size := range sizes() {
			replicas := z.share(i) * percent / 100
			err := scale(deploymentName(i), replicas)(ctx, st)
			if apierrors.IsNotFound(err) {
				err = create(ctx, st, deployment(deploymentName(i), size, replicas))
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}

func (z *sizing) untilRest(pods int) []want {
	return []want{
		{fmt.Sprintf("%d pods running", pods), z.Within, allRunning(pods)},
		{fmt.Sprintf("all at rest for %v", z.Rest), z.Within, atRest(pods, z.Rest)},
	}
}

// undisturbed wants that the time of idleness has passed. What the controller does meanwhile is its own doing.
func (z *sizing) undisturbed() want {
	var since time.Time
	return want{fmt.Sprintf("%v have passed", z.Idle), z.Idle + z.Within, func(*fleet.View) string {
		if since.IsZero() {
			since = time.Now()
		}
		if passed := time.Since(since); passed < z.Idle {
			return fmt.Sprintf("%v have passed", passed.Round(time.Second))
		}
		return ""
	}}
}

// phase ends the phase that goes on, and begins the one of that name; "" is none.
func (z *sizing) phase(name string) func(context.Context, *stage) error {
	return func(ctx context.Context, st *stage) error {
		if err := z.finish(ctx, st); err != nil || name == "" {
			return err
		}
		var err error
		z.meter, err = startMeter(ctx, st, name)
		return err
	}
}

// finish ends the phase that goes on.
func (z *sizing) finish(ctx context.Context, st *stage) error {
	if z.meter == nil {
		return nil
	}
	l, err := z.meter.read(ctx, st)
	z.meter = nil
	if err != nil {
		return err
	}
	z.loads = append(z.loads, l)
	st.line("figures", l.line())
	return keepFigures(z.Results, z.loads)
}
