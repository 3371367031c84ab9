// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"time"

	"karpenter/sim/simcloud"
	"karpenter/sim/store"
)

// Actor is someone besides the process who works on the cluster. It reads and
// writes through Run.API, without lag and without faults.
type Actor interface {
	Name() string
	// Step does at most one thing, and reports whether it did something. After
	// false, it is not called again before something has changed in the API or
	// the cloud, or Wake has come. An error ends the run as a failure of the
	// simulation itself.
	Step(ctx context.Context) (progress bool, err error)
	// Wake is when there will be something to do if nothing changes until
	// then; zero means never.
	Wake() time.Time
}

// Law is something that must hold.
type Law interface {
	Name() string
	// Check is called after every step that has changed something in the API
	// or the cloud. An error says how the law was broken.
	Check(*Seen) error
	// End is called once, after the last step.
	End(*Seen) error
}

// Seen is what a Law may look at. Nothing in it may be modified or kept, but
// for the objects of Changes, which stay as they are.
type Seen struct {
	Now     time.Time
	Started time.Time // when the run began
	Step    int
	What    string         // the step, in words
	Changes []store.Change // to the API's objects in this step, in order
	Calls   []Made         // that the process made in this step, those to the cloud included
	Told    []Told         // to users, in this step
	API     *store.Store
	Cloud   *simcloud.Cloud
	// Quiet is when the process last changed anything in the API or the cloud.
	Quiet time.Time
}

// Target is whom a Call goes to.
type Target string

// The targets.
const (
	API   Target = "api"
	Cloud Target = "cloud"

	// fromCache is for reads that wait for their turn as calls do, and cannot
	// fail.
	fromCache Target = "cache"
)

// Call is one request of the process.
type Call struct {
	Target Target
	// By is the controller that makes it; "" = not known.
	By string
	// Verb is get, list, create, update, patch, patch-status, apply-status,
	// delete or evict at the API; reads from caches are no calls. At the cloud
	// it is the method: Create, Delete, Get, List, InstanceTypes or IsDrifted.
	Verb string
	// Kind is that of the object, such as NodeClaim; "" at the cloud.
	Kind string
	// Name of the object, with its namespace and a slash if it has one; at the
	// cloud the name of the NodeClaim, provider ID or NodePool. For an object
	// whose name is generated, the prefix.
	Name string
}

// Made is a Call that was answered.
type Made struct {
	Call
	Writes bool  // it would change something
	Late   bool  // by a replica that does not know yet that another leads
	Effect bool  // it reached the API or the cloud
	Err    error // what the process was told
}

// Fault is what goes wrong with a call. The zero value is nothing.
type Fault struct {
	// Refuse is answered instead of carrying the call out.
	Refuse error
	// Lose is answered although the call was carried out.
	Lose error
	// Crash ends the process: before the call is carried out, or, with After,
	// when it has been but is not answered.
	Crash, After bool
	// Leave is the share of the answer to leave out, from 0 to 1, of the List
	// and InstanceTypes of the cloud.
	Leave float64
	// Delay is how long the call takes before it is carried out.
	Delay time.Duration
}

// Faults decides what goes wrong. Both methods are called once for each call
// that is about to be carried out.
type Faults interface {
	API(Call) Fault
	Cloud(Call) Fault
}
