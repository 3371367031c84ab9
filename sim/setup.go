// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"io"
	"math/rand/v2"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/cloud"
	"karpenter/cmd/karpenter/config"
	"karpenter/cmd/karpenter/wiring"
	"karpenter/sim/simcloud"
	"karpenter/sim/store"
)

// Setup is everything a run depends on.
type Setup struct {
	Seed   uint64
	Server *store.Server // may be shared by runs
	Config config.Config // of the process
	// Types are what the cloud offers; nil = simcloud.Types.
	Types []*cloud.InstanceType
	// Vendor is whose cloud it is; nil = simcloud's.
	Vendor func(*Run) (Vendor, error)
	// PublishIn is the namespace in which the process publishes its offerings for
	// the commands; "" = nowhere.
	PublishIn string
	// Planner makes the plans; nil = the process's own.
	Planner wiring.Planner
	// Workers is how many reconciles a controller may have under way; 0 = 4.
	Workers int
	// Steady has time pass only when nothing else can happen, and no reads of
	// the cache wait.
	Steady bool
	// Objects exist when the run starts.
	Objects []client.Object
	// Actors and Laws are made for each run, after the Objects. May be nil.
	Actors func(*Run) ([]Actor, error)
	Laws   func(*Run) []Law
	Faults func(*Run) Faults
	// Lasts is the virtual time after which the run ends, MostSteps the number
	// of steps after which it fails.
	Lasts     time.Duration
	MostSteps int
	// Transcript gets a line for each step; nil = not written.
	Transcript io.Writer
}

// types returns what the cloud offers.
func (s *Setup) types() []*cloud.InstanceType {
	if s.Types == nil {
		return simcloud.Types()
	}
	return s.Types
}

// Result is how a run went.
type Result struct {
	Hash     uint64 // of the transcript: equal runs have equal hashes
	Steps    int
	Calls    int           // that the process has made
	Restarts int           // of the process
	Lasted   time.Duration // in virtual time
	Err      error         // the law that was broken, or what went wrong in the simulation; nil = neither
}

// Run is a run under way, as actors, laws and faults see it.
type Run struct {
	Store *store.Store
	Cloud *simcloud.Cloud
	// Started is when the run began.
	Started time.Time

	seed   uint64
	orders orders
}

// orders are what actors want done to the process before the next step.
type orders struct {
	crash, relead bool
	freeze        time.Duration
	gaps          map[string]bool
	frozen        map[string]time.Time
}

// API returns a client without lag or faults, whose writes are recorded under
// the name.
func (r *Run) API(by string) client.Client { return r.Store.Client(by) }

// Rand returns a source of randomness of the seed, another for each name, so
// that who draws more from one does not change what others draw.
func (r *Run) Rand(name string) *rand.Rand {
	h := uint64(14695981039346656037)
	for _, b := range []byte(name) {
		h = (h ^ uint64(b)) * 1099511628211
	}
	return rand.New(rand.NewPCG(r.seed, h))
}

// Crash ends the process before the next step, in whatever it is doing. It is
// restarted at once.
func (r *Run) Crash() { r.orders.crash = true }

// ChangeLeader ends the process as Crash does, but calls that wait for an answer
// may still arrive, since they had been sent, each with even odds, while its successor works already.
func (r *Run) ChangeLeader() { r.orders.relead = true }

// FreezeLeader has the process stand still from the next step on: it is handed
// and told nothing, and its calls are not sent. If its lease runs out meanwhile,
// another process takes over; when the time is over, the frozen one goes on where
// it was, until it finds out.
func (r *Run) FreezeLeader(d time.Duration) { r.orders.freeze = d }

// Gap makes the process's watch of the kind, such as Node, lose what it has
// not been told yet: its cache lists again.
func (r *Run) Gap(kind string) { r.orders.gaps[kind] = true }

// Freeze keeps news of the kind from the process until then.
func (r *Run) Freeze(kind string, until time.Time) { r.orders.frozen[kind] = until }
