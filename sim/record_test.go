// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/cmd/karpenter/record"
	"karpenter/model"
	"karpenter/sim"
	"karpenter/sim/script"
	"karpenter/sim/simcloud"
	"karpenter/sim/store"
	"karpenter/sim/trial"
)

// span is from when to when a NodeClaim says that its instance ran.
type span struct {
	start, end time.Time
	planned    bool // the claim is for pending pods
	name       string
}

func (x *span) take(c *v1.NodeClaim, gone bool, now time.Time) {
	x.name, x.planned = c.Name, c.Annotations[v1.ReplacesAnnotationKey] == ""
	if launched := conditions.Get(c, v1.LaunchedCondition); launched != nil && launched.Status == "True" && x.start.IsZero() {
		x.start = launched.LastTransitionTime.Time
	}
	if ends := conditions.Get(c, v1.InstanceTerminatingCondition); ends != nil && ends.Status == "True" && x.end.IsZero() {
		x.end = ends.LastTransitionTime.Time
	}
	if gone && x.end.IsZero() {
		x.end = now
	}
}

// auditor is a law about the record: it can be read after every step, loses no
// decision but to the ring, and says what happened.
type auditor struct {
	started time.Time
	last    record.Record
	first   record.Record // that knows costs
	half    record.Record // the last before the middle of the run
	middle  time.Duration
	writes  []time.Time
	claims  map[string]string // names of all NodeClaims: instance type, "" before the launch
	spans   map[types.UID]*span
	all     []simcloud.Machine
}

func (a *auditor) Name() string { return "record" }

func (a *auditor) Check(s *sim.Seen) error {
	a.started = s.Started
	changed := false
	for _, c := range s.Changes {
		switch o := c.Object().(type) {
		case *v1.NodeClaim:
			a.claims[o.Name] = o.Labels[corev1.LabelInstanceTypeStable]
			if a.spans[o.UID] == nil {
				a.spans[o.UID] = &span{}
			}
			a.spans[o.UID].take(o, c.New == nil, s.Now)
		case *corev1.ConfigMap:
			if strings.HasPrefix(o.Name, "karpenter-record-") {
				changed = true
				a.writes = append(a.writes, s.Now)
			}
		}
	}
	if !changed {
		return nil
	}
	return a.read(s)
}

func (a *auditor) read(s *sim.Seen) error {
	var maps []*corev1.ConfigMap
	for m := range store.All[*corev1.ConfigMap](s.API) {
		if strings.HasPrefix(m.Name, "karpenter-record-") {
			maps = append(maps, m)
		}
	}
	now, err := record.Read(maps)
	if err != nil {
		return err
	}
	for i := range now.Decisions {
		d := &now.Decisions[i]
		if i > 0 && d.ID != now.Decisions[i-1].ID+1 {
			return fmt.Errorf("decision %d follows %d", d.ID, now.Decisions[i-1].ID)
		}
		for _, name := range slices.Concat(d.Launched, d.Removed) {
			if _, known := a.claims[name]; !known {
				return fmt.Errorf("decision %d is about NodeClaim %s, which there never was", d.ID, name)
			}
		}
		if err := a.agrees(d); err != nil {
			return fmt.Errorf("decision %d: %w", d.ID, err)
		}
	}
	if len(now.Decisions) < len(a.last.Decisions) {
		return fmt.Errorf("%d decisions are left of %d", len(now.Decisions), len(a.last.Decisions))
	}
	if now.Meter.Until.Before(a.last.Meter.Until) {
		return fmt.Errorf("costs are counted up to %s, before up to %s", now.Meter.Until, a.last.Meter.Until)
	}
	a.last = now
	if a.first.Written.IsZero() && now.Meter.Totals.Cost.N > 0 {
		a.first = now
	}
	if s.Now.Sub(s.Started) < a.middle {
		a.half = now
	}
	return nil
}

// agrees reports what an outcome says otherwise than it was.
func (a *auditor) agrees(d *record.Decision) error {
	o := d.Outcome
	if o == nil {
		return nil
	}
	if o.Ready+o.Failed > len(d.Launched) || o.Removed+o.Kept > len(d.Removed) || !o.Late && (o.Ready+o.Failed < len(d.Launched) || o.Removed+o.Kept < len(d.Removed)) {
		return fmt.Errorf("of %d launched nodes %d are ready and %d failed; of %d nodes %d are removed and %d kept", len(d.Launched), o.Ready, o.Failed, len(d.Removed), o.Removed, o.Kept)
	}
	types := map[string]int{}
	for _, name := range d.Launched {
		types[a.claims[name]]++
	}
	for _, g := range o.Became {
		if types[g.Type] < g.Count {
			return fmt.Errorf("%d nodes became %s, and %d NodeClaims did", g.Count, g.Type, types[g.Type])
		}
	}
	return nil
}

func (a *auditor) End(s *sim.Seen) error {
	a.all = s.Cloud.Machines()
	return nil
}

// bill is what instances cost from one time to the other, by their own bookkeeping:
// from their start until they were told to end, or were lost.
func (a *auditor) bill(from, to time.Time, price func(*simcloud.Machine) model.Price) float64 {
	sum := 0.0
	for i := range a.all {
		m := &a.all[i]
		begin, end := m.Created, to
		if !m.Told.IsZero() && m.Told.Before(end) {
			end = m.Told
		}
		if m.Lost && m.Ended.Before(end) {
			end = m.Ended
		}
		begin, end = begin.Truncate(time.Second), end.Truncate(time.Second) // billed by the second
		if begin.Before(from) {
			begin = from
		}
		if end.After(begin) {
			sum += price(m).Dollars() * end.Sub(begin).Hours()
		}
	}
	return sum
}

// statement is what instances cost from one time to the other by what the API server was
// told of them.
func (a *auditor) statement(from, to time.Time) float64 {
	sum := 0.0
	for i := range a.all {
		m := &a.all[i]
		x := a.spans[m.ClaimUID]
		if x == nil || x.start.IsZero() {
			continue
		}
		begin, end := x.start, to
		if !x.end.IsZero() && x.end.Before(end) {
			end = x.end
		}
		if begin.Before(from) {
			begin = from
		}
		if end.After(begin) {
			sum += m.Price.Dollars() * end.Sub(begin).Hours()
		}
	}
	return sum
}

// forgotten returns the NodeClaims for pending pods that no decision launched.
func (a *auditor) forgotten() []string {
	known := map[string]bool{}
	for i := range a.last.Decisions {
		for _, name := range a.last.Decisions[i].Launched {
			known[name] = true
		}
	}
	var out []string
	for _, x := range a.spans {
		if x.planned && !known[x.name] && x.start.Before(a.last.Written.Add(-time.Minute)) {
			out = append(out, x.name)
		}
	}
	return out
}

func paid(m *simcloud.Machine) model.Price { return m.Price }

// dear makes everything cost so much more that minutes come to dollars.
func dear(s *script.Script, factor float64) {
	for i := range s.Types {
		s.Types[i].Price *= factor
		s.Types[i].Spot *= factor
	}
	s.Events = slices.DeleteFunc(s.Events, func(e script.Event) bool { return e.Do == script.Price })
}

func audit(t *testing.T, s *script.Script) *auditor {
	t.Helper()
	server, err := trial.NewServer()
	if err != nil {
		t.Fatal(err)
	}
	a := &auditor{claims: map[string]string{}, spans: map[types.UID]*span{}, middle: s.Run / 2}
	v := trial.Trial{Server: server, Script: s, Witness: a, PublishIn: "default", Lawless: true, Free: len(s.Faults) == 0}.Hold(t)
	if v.Err != nil {
		t.Fatalf("seed %d: %v", s.Seed, v.Err)
	}
	for i := 1; i < len(a.writes); i++ {
		if between := a.writes[i].Sub(a.writes[i-1]); between < 29*time.Second && v.Restarts == 0 {
			t.Errorf("seed %d: the record is written %s after it was written", s.Seed, between)
		}
	}
	return a
}

// TestRecordAgreesWithBill has the record count what the cloud counts, to the cent, and
// savings add up, in runs drawn now.
func TestRecordAgreesWithBill(t *testing.T) {
	for range 6 {
		s := script.Draw(rand.Uint64N(1 << 32))
		t.Run(fmt.Sprint("seed-", s.Seed), func(t *testing.T) {
			dear(s, 10)
			s.Faults = nil
			s.Events = slices.DeleteFunc(s.Events, func(e script.Event) bool { return e.Do == script.Interrupt })
			a := audit(t, s)
			got := a.last.Meter
			if names := a.forgotten(); len(names) > 0 && !slices.ContainsFunc(s.Pools, func(p script.Pool) bool { return p.Static > 0 }) {
				t.Errorf("no decision has launched %v", names)
			}
			want := a.bill(got.Since, got.Until, paid)
			near(t, "cost", float64(got.Cents())/100, want)
			onDemand := map[string]float64{}
			for _, x := range s.Types {
				onDemand[x.Name] = x.Price
			}
			list := a.bill(got.Since, got.Until, func(m *simcloud.Machine) model.Price {
				return model.Price(onDemand[m.Offering.Type] * float64(model.Dollar))
			})
			t.Logf("%d machines cost $%.2f, on demand $%.2f; %d decisions in %d bytes, %d writes", len(a.all), want, list, len(a.last.Decisions), a.last.Bytes, len(a.writes))
			a.savings(t)
		})
	}
}

// near fails if amounts in dollars differ by more than a cent.
func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if d := got - want; d > 0.01 || d < -0.01 {
		t.Errorf("%s: $%.4f, the biller has $%.4f", what, got, want)
	}
}

// savings checks what was saved since the middle of the run.
func (a *auditor) savings(t *testing.T) {
	t.Helper()
	b, err := record.Freeze(a.half.Meter)
	if err != nil {
		t.Logf("no baseline: %v", err)
		return
	}
	got, err := record.Since(b, a.last.Meter)
	if err != nil {
		t.Fatal(err)
	}
	// What began or ended moments before the record was written may have been seen or not.
	const unsure = 2 * time.Second
	rate, doubt := 0.0, 0.0
	at := a.half.Written
	for i := range a.all {
		m := &a.all[i]
		end := at.Add(time.Hour)
		for _, x := range []time.Time{m.Told, m.Ended} {
			if !x.IsZero() && x.Before(end) {
				end = x
			}
		}
		switch {
		case m.Created.After(at) || end.Before(at.Add(-unsure)):
		case m.Created.After(at.Add(-unsure)) || !end.After(at):
			doubt += m.Price.Dollars()
		default:
			rate += m.Price.Dollars()
		}
	}
	actual := a.bill(got.From, got.Until, paid)
	hours := got.Until.Sub(got.From).Hours()
	near(t, "actual", float64(got.Actual)/100, actual)
	baseline := float64(got.Baseline) / 100
	near(t, "baseline", baseline, min(max(baseline, rate*hours), (rate+doubt)*hours))
	near(t, "saved", float64(got.Saved)/100, baseline-actual)
	sum := int64(0)
	for _, c := range got.Causes {
		sum += c.Cents
		t.Logf("%-14s %8.2f", c.Name, float64(c.Cents)/100)
	}
	if sum != got.Saved {
		t.Errorf("the causes add up to %d cents, saved are %d", sum, got.Saved)
	}
}

// TestRecordSurvivesCrashes has processes die, freeze and lose the lease at any call.
func TestRecordSurvivesCrashes(t *testing.T) {
	for range 8 {
		s := script.Draw(rand.Uint64N(1 << 32))
		t.Run(fmt.Sprint("seed-", s.Seed), func(t *testing.T) {
			dear(s, 10)
			a := audit(t, s)
			got := a.last.Meter
			want := a.bill(got.Since, got.Until, paid)
			told, unseen := a.statement(got.Since, got.Until), float64(got.Unseen.N)/1e9
			t.Logf("$%.2f, by what the API server was told $%.2f, the biller has $%.2f; at most $%.2f were not seen", float64(got.Cents())/100, told, want, unseen)
			if d := told - float64(got.Cents())/100; d > unseen+0.015 || d < -0.015 {
				t.Errorf("the record has $%.2f, the API server was told of $%.2f, and $%.2f may be missing", float64(got.Cents())/100, told, unseen)
			}
			if len(a.writes) < 5 {
				t.Errorf("the record was written %d times", len(a.writes))
			}
		})
	}
}
