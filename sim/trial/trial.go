// SPDX-License-Identifier: Apache-2.0

// Package trial puts the system on trial: it runs a script with its actors and
// faults, and holds the run against the laws.
package trial

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/api/scheme"
	"karpenter/cmd/karpenter/config"
	"karpenter/cmd/karpenter/wiring"
	"karpenter/sim"
	"karpenter/sim/actors"
	"karpenter/sim/amazon"
	"karpenter/sim/laws"
	"karpenter/sim/microsoft"
	"karpenter/sim/script"
	"karpenter/sim/store"
)

// mostSteps ends a run that does not get anywhere.
const mostSteps = 400_000

// Trial is one run of a script. Only Server and Script are required.
type Trial struct {
	Server     *store.Server
	Script     *script.Script
	Transcript io.Writer
	// Witness sees every step after the laws have.
	Witness sim.Law
	// Calm has the scheduler go by how empty nodes are.
	Calm bool
	// Steps bounds the run; 0 = enough for any script that Draw makes up.
	Steps int
	// Amazon has the process work with the AWS provider on an account like that.
	// The script's types and zones must be of EC2; see Translate. Nil = simcloud,
	// unless Microsoft is set.
	Amazon *amazon.Config
	// Microsoft has the process work with the provider for AKS in a subscription
	// like that; see TranslateToAzure. Nil as well = simcloud.
	Microsoft *microsoft.Config
	// Free lifts the bound on how many reconciles a controller has under way,
	// and has time pass only when nothing else can happen.
	Free bool
	// PublishIn is as in sim.Setup.
	PublishIn string
	// Lawless leaves the laws out.
	Lawless bool
	// Planner makes the plans of the process; nil = its own.
	Planner wiring.Planner
	// Objects exist from the start besides those of the script.
	Objects []client.Object
	// Args are given to the process besides.
	Args []string
	// Subscription, if not nil, is told the subscription of the run.
	Subscription func(*microsoft.Subscription)
	// Account, if not nil, is told the account of the run.
	Account func(*amazon.Account)
}

// Verdict is how a trial went. Err of the Result is nil when all laws held.
type Verdict struct {
	sim.Result
	Faults map[script.Kind]int // how often each has hit calls
}

// NewServer returns the Server for trials; they may share it.
func NewServer() (*store.Server, error) {
	s := runtime.NewScheme()
	if err := errors.Join(kubescheme.AddToScheme(s), scheme.AddToScheme(s)); err != nil {
		return nil, err
	}
	return store.NewServer(s)
}

// Hold runs the trial. The test fails only if it cannot be held.
func (c Trial) Hold(t *testing.T) Verdict {
	t.Helper()
	vendor := c.vendor()
	settings, err := settingsOf(c.Script, vendor, c.Args)
	if err != nil {
		t.Fatalf("the script cannot be run: %v", err)
	}
	clock, faults, strays := &steps{}, (*faults)(nil), map[types.UID]bool{}
	s := sim.Setup{
		Seed: c.Script.Seed, Server: c.Server, Config: settings, Types: actors.Types(c.Script), Transcript: c.Transcript, PublishIn: c.PublishIn,
		Objects: append([]client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}}, slices.Concat(actors.Objects(c.Script), c.Objects)...),
		Lasts:   c.Script.Run + c.Script.Rest, MostSteps: c.Steps, Planner: c.Planner,
	}
	if s.MostSteps == 0 {
		s.MostSteps = mostSteps
	}
	if vendor != nil {
		vendor.sell(&s)
	}
	if c.Free {
		s.Steady, s.Workers = true, 1000
	}
	s.Actors = func(r *sim.Run) ([]sim.Actor, error) {
		faults = newFaults(r, c.Script)
		faults.vendor = vendor
		var out []sim.Actor
		for _, a := range actors.New(actors.Config{
			Store: r.Store, Cloud: r.Cloud, Rand: r.Rand("actors"), Script: c.Script, Faults: faults.script,
			Started: r.Started, Steps: clock.now, Calm: c.Calm, Strays: strays,
		}) {
			out = append(out, a)
		}
		return out, nil
	}
	s.Laws = func(*sim.Run) []sim.Law {
		out := []sim.Law{clock}
		for _, l := range laws.All(c.Script, strays) {
			if !c.Lawless {
				out = append(out, l)
			}
		}
		if c.Witness != nil {
			out = append(out, c.Witness)
		}
		return out
	}
	s.Faults = func(*sim.Run) sim.Faults { return faults }
	out := Verdict{Result: sim.Play(t, s)}
	if faults != nil {
		out.Faults = faults.script.Hits()
	}
	return out
}

// settingsOf is how the process is configured for the script.
func settingsOf(s *script.Script, of *vendor, more []string) (config.Config, error) {
	args, environment := []string{"--cloud-provider=" + config.CloudKWOK}, map[string]string(nil) // whose settings need no cloud
	if of != nil {
		args, environment = slices.Clone(of.args), of.environment
	}
	gates := ""
	for i, g := range s.Gates {
		if i > 0 {
			gates += ","
		}
		gates += g + "=true"
	}
	if gates != "" {
		args = append(args, "--feature-gates="+gates)
	}
	if s.Seed%2 == 0 { // opt-in, and most of what can go wrong with plans goes wrong without
		args = append(args, "--nominate-pods=true")
	}
	if s.Seed%4 < 2 && slices.Contains(s.Gates, "NodeRepair") { // both ways to repair nodes
		args = append(args, "--legacy-node-repair=true")
	}
	if slices.ContainsFunc(s.Pods, func(w script.Workload) bool { return w.Surge }) {
		args = append(args, "--surge-first-timeout="+laws.SurgeTimeout.String())
	}
	c, err := config.Parse(append(args, more...), func(name string) (string, bool) {
		value, ok := environment[name]
		return value, ok
	})
	if err == nil && len(c.UnknownGates) > 0 {
		err = fmt.Errorf("there are no feature gates %v", c.UnknownGates)
	}
	return c, err
}

// steps is a law that nothing breaks: it knows how many steps were made.
type steps struct{ n int }

func (s *steps) now() int                { return s.n }
func (s *steps) Name() string            { return "steps" }
func (s *steps) Check(x *sim.Seen) error { s.n = x.Step; return nil }
func (s *steps) End(*sim.Seen) error     { return nil }
