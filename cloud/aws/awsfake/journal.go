// SPDX-License-Identifier: Apache-2.0

package awsfake

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Entry is something that changed an account. An account depends on nothing but
// its Config, the time and what is asked of it, so Restore gets the account back
// by repeating its entries.
type Entry struct {
	At time.Time `json:"at"`
	// Name is the API call, such as CreateFleet, or the method of AWS, such as
	// Interrupt.
	Name string `json:"name"`
	// Input is the call's input or the method's arguments.
	Input json.RawMessage `json:"input"`
	// Before and After count the identifiers that the account has given out.
	Before uint64 `json:"before"`
	After  uint64 `json:"after"`
}

// created is the name of an account's first entry, whose input is a birth.
const created = "New"

// birth is the part of Config that an account keeps when it is restored.
type birth struct {
	Region, Account, Cluster, KubernetesVersion          string
	Types                                                []string
	Seed                                                 uint32
	BootDelay, ShutdownDelay, VisibleAfter, ProfileDelay time.Duration
}

func (c *Config) birth() birth {
	return birth{c.Region, c.Account, c.Cluster, c.KubernetesVersion, c.Types, c.Seed, c.BootDelay, c.ShutdownDelay, c.VisibleAfter, c.ProfileDelay}
}

func (b birth) apply(c *Config) {
	c.Region, c.Account, c.Cluster, c.KubernetesVersion, c.Types, c.Seed = b.Region, b.Account, b.Cluster, b.KubernetesVersion, b.Types, b.Seed
	c.BootDelay, c.ShutdownDelay, c.VisibleAfter, c.ProfileDelay = b.BootDelay, b.ShutdownDelay, b.VisibleAfter, b.ProfileDelay
}

// record passes an entry to Config.Record. The lock is held. As the arguments of
// a defer are evaluated at once, the usual call is
//
//	defer a.record(now, a.ids, "Interrupt", id)
func (a *AWS) record(now time.Time, before uint64, name string, input any) {
	if a.config.Record == nil {
		return
	}
	text, err := json.Marshal(input)
	if err != nil {
		panic(fmt.Sprintf("awsfake: record %s: %v", name, err)) // inputs are plain values
	}
	a.config.Record(Entry{At: now, Name: name, Input: text, Before: before, After: a.ids})
}

// recorded makes do record itself if the call of the name changes the account.
// Queues are not recorded: messages live for five minutes, and consumers must
// expect to receive a message twice.
func recorded[Out any](a *AWS, name string, in any, do func(time.Time) (*Out, error)) func(time.Time) (*Out, error) {
	op := operations[name]
	if a.config.Record == nil || !op.mutating || op.service == "SQS" {
		return do
	}
	return func(now time.Time) (*Out, error) {
		defer a.record(now, a.ids, name, in)
		return do(now)
	}
}

// Restore returns the account that recorded the entries, as it is now. The
// region, the names, the seed and the types are those of the entries. The delays,
// the cluster's endpoint, its certificate authority and its version are those of
// config; another version is an upgrade of the cluster.
//
// Restore fails if repeating the entries gives other identifiers than they
// record, which happens if another version of this package recorded them.
func Restore(config Config, entries []Entry) (*AWS, error) {
	if len(entries) == 0 || entries[0].Name != created {
		return nil, fmt.Errorf("awsfake: the first entry is not %q", created)
	}
	var b birth
	if err := json.Unmarshal(entries[0].Input, &b); err != nil {
		return nil, fmt.Errorf("awsfake: read the entry %q: %w", created, err)
	}
	past := config
	b.apply(&past)
	past.Clock, past.Record = instant(entries[0].At), nil
	a, err := New(past)
	if err != nil {
		return nil, err
	}
	if a.ids != entries[0].After {
		return nil, fmt.Errorf("awsfake: %d identifiers are given out in a new account, it was %d", a.ids, entries[0].After)
	}
	actions := a.actions()
	for _, e := range entries[1:] {
		if err := a.repeat(actions, e); err != nil {
			return nil, fmt.Errorf("awsfake: repeat %s of %s: %w", e.Name, e.At.Format(time.RFC3339), err)
		}
	}
	return a, a.resume(config)
}

// repeat makes an entry happen again, and compares what it records now.
func (a *AWS) repeat(actions map[string]action, e Entry) error {
	do := actions[e.Name]
	if do == nil {
		return fmt.Errorf("unknown name")
	}
	a.clock = instant(e.At)
	a.locked(func(time.Time) { a.ids = e.Before }) // messages take identifiers, too
	var again Entry
	a.config.Record = func(e Entry) { again = e }
	if err := do(e.Input); err != nil {
		return err
	}
	if again.After != e.After {
		return fmt.Errorf("%d identifiers are given out afterwards, it was %d", again.After, e.After)
	}
	return nil
}

// resume hands the account over to the clock and the cluster of config.
func (a *AWS) resume(config Config) error {
	past, version := a.config, *a.cluster.Version
	if err := config.complete(); err != nil {
		return err
	}
	a.clock, a.config = config.Clock, config
	past.birth().apply(&a.config)
	a.config.BootDelay, a.config.ShutdownDelay = config.BootDelay, config.ShutdownDelay
	a.config.VisibleAfter, a.config.ProfileDelay = config.VisibleAfter, config.ProfileDelay
	a.cluster.Endpoint, a.cluster.CertificateAuthority.Data = &a.config.Endpoint, &a.config.CertificateAuthority
	if config.KubernetesVersion == version {
		return nil
	}
	a.SetKubernetesVersion(config.KubernetesVersion)
	return a.ReleaseImages(config.KubernetesVersion, a.clock.Now(), newestBottlerocket)
}

// instant is a clock that stands still.
type instant time.Time

func (i instant) Now() time.Time                  { return time.Time(i) }
func (i instant) Since(t time.Time) time.Duration { return time.Time(i).Sub(t) }

// action repeats an entry. It returns an error only if it cannot read the input:
// a call that was rejected is rejected again.
type action func(input []byte) error

// actions are the names that entries can have.
func (a *AWS) actions() map[string]action {
	ec2, iam := ec2API{a}, iamAPI{a}
	return map[string]action{
		"CreateFleet":                   call(ec2.CreateFleet),
		"RunInstances":                  call(ec2.RunInstances),
		"CreateTags":                    call(ec2.CreateTags),
		"TerminateInstances":            call(ec2.TerminateInstances),
		"RebootInstances":               call(ec2.RebootInstances),
		"CreateLaunchTemplate":          call(ec2.CreateLaunchTemplate),
		"DeleteLaunchTemplate":          call(ec2.DeleteLaunchTemplate),
		"CreateInstanceProfile":         call(iam.CreateInstanceProfile),
		"DeleteInstanceProfile":         call(iam.DeleteInstanceProfile),
		"AddRoleToInstanceProfile":      call(iam.AddRoleToInstanceProfile),
		"RemoveRoleFromInstanceProfile": call(iam.RemoveRoleFromInstanceProfile),

		"Interrupt":            method(func(id string) { _ = a.Interrupt(id) }),
		"Lose":                 method(func(id string) { _ = a.Lose(id) }),
		"Stock":                method(func(s stock) { a.Stock(s.Pool, s.Left) }),
		"SetSpotPrice":         method(func(s spotChange) { a.SetSpotPrice(s.Type, s.Zone, s.Dollars) }),
		"ReleaseImages":        method(func(r newImages) { _ = a.ReleaseImages(r.Kubernetes, r.Date, r.Bottlerocket) }),
		"SetKubernetesVersion": method(a.SetKubernetesVersion),
		"Deny":                 method(func(d denial) { a.Deny(d.Action, d.Why) }),
		"Allow":                method(a.Allow),
	}
}

// The arguments of methods that have more than one.
type (
	stock struct {
		Pool Pool
		Left int64
	}
	spotChange struct {
		Type, Zone string
		Dollars    float64
	}
	newImages struct {
		Kubernetes   string
		Date         time.Time
		Bottlerocket string
	}
	denial struct{ Action, Why string }
)

// call is the action of an API call. What it returned was returned when it was
// recorded.
func call[In, Out, Option any](do func(context.Context, *In, ...func(*Option)) (*Out, error)) action {
	return func(input []byte) error {
		in := new(In)
		if err := json.Unmarshal(input, in); err != nil {
			return err
		}
		_, _ = do(Unguarded(context.Background()), in)
		return nil
	}
}

// method is the action of a method of AWS.
func method[In any](do func(In)) action {
	return func(input []byte) error {
		var in In
		if err := json.Unmarshal(input, &in); err != nil {
			return err
		}
		do(in)
		return nil
	}
}
