// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karpenter/model"
	"karpenter/scenario"
	"karpenter/solve"
)

func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

func TestAmountIsExact(t *testing.T) {
	r := seeded(t)
	for range 200 {
		var a Amount
		want := new(big.Rat)
		for range 20 {
			rate, d := model.Price(r.Int64N(2e14)-1e14), time.Duration(r.IntN(4e6)-2e6)*time.Second
			a.add(rate, d)
			want.Add(want, times(perHour(rate), big.NewRat(int64(d/time.Second), 3600)))
		}
		if a.dollars().Cmp(want) != 0 {
			t.Fatalf("got %s, want %s", a.dollars().FloatString(12), want.FloatString(12))
		}
	}
}

// TestSavingsAddUp has the causes add up to what was saved to the cent, whatever the
// meters say.
func TestSavingsAddUp(t *testing.T) {
	r := seeded(t)
	for range 500 {
		rates := func() Rates {
			cost := model.Price(r.Int64N(1e12) + 1)
			return Rates{cost, model.Price(r.Int64N(1e12) - 1e11), model.Price(r.Int64N(1e11)), model.Price(r.Int64N(1e12) - 1e11), model.Price(r.Int64N(1e12) + 1)}
		}
		m := Meter{Since: time.Unix(0, 0), Until: time.Unix(0, 0), Rates: rates()}
		m = m.At(m.Until.Add(time.Duration(r.IntN(1e6)) * time.Second))
		b, err := Freeze(m)
		if err != nil {
			t.Fatal(err)
		}
		for range r.IntN(10) {
			m.Rates = rates()
			m = m.At(m.Until.Add(time.Duration(r.IntN(1e5)) * time.Second))
		}
		s, err := Since(b, m)
		if err != nil {
			t.Fatal(err)
		}
		sum := int64(0)
		for _, c := range s.Causes {
			sum += c.Cents
		}
		if sum != s.Saved || s.Saved != s.Baseline-s.Actual {
			t.Fatalf("the causes add up to %d cents: %+v", sum, s)
		}
	}
}

// TestSavingsByCause changes one thing at a time, and expects that its cause alone saves.
func TestSavingsByCause(t *testing.T) {
	const d = model.Dollar
	base := Rates{Cost: 10 * d, Discount: 0, Own: 1 * d, Retired: 0, Requests: 6 * d}
	for _, c := range []struct {
		cause string
		then  Rates
	}{
		{"spot", Rates{Cost: 6 * d, Discount: 4 * d, Own: 1 * d, Requests: 6 * d}},
		{"fewer nodes", Rates{Cost: 9*d + d/2, Own: d / 2, Requests: 6 * d}},
		{"packing", Rates{Cost: 8 * d, Own: 1 * d, Requests: 6 * d}},
		{"consolidation", Rates{Cost: 7 * d, Own: 1 * d, Retired: 3 * d, Requests: 6 * d}},
		{"off-hours", Rates{Cost: 5 * d, Own: d / 2, Requests: 3 * d}},
	} {
		m := Meter{Since: time.Unix(0, 0), Until: time.Unix(0, 0), Rates: base}.At(time.Unix(7200, 0))
		b, err := Freeze(m)
		if err != nil {
			t.Fatal(err)
		}
		m.Rates = c.then
		s, err := Since(b, m.At(m.Until.Add(10*time.Hour)))
		if err != nil {
			t.Fatal(err)
		}
		for _, got := range s.Causes {
			if want := map[bool]int64{true: s.Saved}[got.Name == c.cause]; got.Cents != want {
				t.Errorf("%s: %s saved %d cents, want %d", c.cause, got.Name, got.Cents, want)
			}
		}
	}
}

// stage is a Recorder on a fake API server.
type stage struct {
	*Recorder
	clock *clocktesting.FakePassiveClock
	api   client.Client
}

func newStage(t testing.TB, api client.Client, at time.Time) *stage {
	t.Helper()
	if api == nil {
		api = fake.NewClientBuilder().WithScheme(scheme.Scheme).Build()
	}
	s := &stage{clock: clocktesting.NewFakePassiveClock(at), api: api}
	s.Recorder = &Recorder{
		Client: api, Live: api, Namespace: "kube-system", Ready: func() bool { return true }, Clock: s.clock,
		Snapshot:  func(now time.Time) *model.Snapshot { return &model.Snapshot{Now: now} },
		instances: map[string]*instance{},
	}
	return s
}

// pass lets time pass, and a look be taken.
func (s *stage) pass(t testing.TB, d time.Duration) {
	t.Helper()
	s.clock.SetTime(s.clock.Now().Add(d))
	if _, err := s.Reconcile(t.Context(), reconcile.Request{}); err != nil {
		t.Fatal(err)
	}
}

func (s *stage) read(t testing.TB) (Record, []*corev1.ConfigMap) {
	t.Helper()
	list := &corev1.ConfigMapList{}
	if err := s.api.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	var maps []*corev1.ConfigMap
	for i := range list.Items {
		maps = append(maps, &list.Items[i])
	}
	r, err := Read(maps)
	if err != nil {
		t.Fatal(err)
	}
	return r, maps
}

func (s *stage) decide(r *rand.Rand, claims int) {
	d := Decision{At: s.clock.Now().UTC(), Kind: string(model.Underutilized), Nodes: r.IntN(1000), Cost: model.Price(r.Int64N(1e12)), Savings: model.Price(r.Int64N(1e10))}
	var names []string
	for range claims {
		names = append(names, fmt.Sprintf("general-%08x", r.Uint32()))
	}
	d.Removes = []Group{{Count: claims, Pool: "general", Type: fmt.Sprintf("m%d.large", r.IntN(9)), Zone: "us-west-2a", CapacityType: "spot", Price: model.Price(r.Int64N(1e9))}}
	d.follow(nil, names)
	s.decided(d)
}

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// TestRingIsBounded fills the ring several times over.
func TestRingIsBounded(t *testing.T) {
	r := seeded(t)
	s := newStage(t, nil, start)
	s.pass(t, 0)
	decided, least := 0, int64(1)
	for range 40 {
		for range r.IntN(100) {
			s.decide(r, r.IntN(2*mostClaims))
			decided++
		}
		s.pass(t, leastBetween)
		rec, maps := s.read(t)
		if len(maps) > Slots || rec.Bytes > Slots*MostBytes {
			t.Fatalf("%d ConfigMaps hold %d bytes", len(maps), rec.Bytes)
		}
		for i, d := range rec.Decisions {
			if i > 0 && d.ID != rec.Decisions[i-1].ID+1 {
				t.Fatalf("decision %d follows %d", d.ID, rec.Decisions[i-1].ID)
			}
		}
		if len(rec.Decisions) > 0 {
			least = max(least, rec.Decisions[0].ID)
		}
	}
	for range 20 { // what did not fit at once follows
		s.pass(t, leastBetween)
	}
	rec, _ := s.read(t)
	last := rec.Decisions[len(rec.Decisions)-1]
	if last.ID != int64(decided) || least == 1 {
		t.Errorf("of %d decisions the last is %d, and the first that was kept %d", decided, last.ID, least)
	}
	t.Logf("%d of %d decisions are kept in %d bytes", len(rec.Decisions), decided, rec.Bytes)
}

// TestHugeDecision has a decision be larger than a ConfigMap: it is left out, and the record goes on.
func TestHugeDecision(t *testing.T) {
	r := seeded(t)
	s := newStage(t, nil, start)
	s.pass(t, 0)
	s.decide(r, 1)
	s.pass(t, leastBetween)
	var text strings.Builder
	for text.Len() < 4*MostBytes {
		fmt.Fprintf(&text, "%016x", r.Uint64())
	}
	s.decided(Decision{At: s.clock.Now().UTC(), Kind: text.String()})
	s.decide(r, 1)
	s.clock.SetTime(s.clock.Now().Add(leastBetween))
	if _, err := s.Reconcile(t.Context(), reconcile.Request{}); err == nil || errors.Is(err, reconcile.TerminalError(nil)) {
		t.Errorf("error is %v; want one after which it is tried again", err)
	}
	s.pass(t, leastBetween)
	if rec, _ := s.read(t); len(rec.Decisions) != 2 {
		t.Errorf("%d decisions are kept, want those before and after", len(rec.Decisions))
	}
}

// TestRingHolds has the ring hold as many decisions as docs/record.md says.
func TestRingHolds(t *testing.T) {
	const promised = 4000
	r := seeded(t)
	s := newStage(t, nil, start)
	s.pass(t, 0)
	for range 40 {
		for range promised / 20 {
			s.clock.SetTime(s.clock.Now().Add(time.Duration(r.IntN(60)) * time.Second))
			s.decide(r, 1+r.IntN(3))
		}
		s.pass(t, leastBetween)
	}
	if rec, _ := s.read(t); len(rec.Decisions) < promised {
		t.Errorf("%d decisions in %d bytes", len(rec.Decisions), rec.Bytes)
	}
}

// TestLeaderContinues has another process take over, and the first find out.
func TestLeaderContinues(t *testing.T) {
	r := seeded(t)
	one := newStage(t, nil, start)
	one.pass(t, 0)
	one.decide(r, 1)
	one.pass(t, leastBetween)
	one.decide(r, 1) // not written when the lease is lost
	two := newStage(t, one.api, one.clock.Now())
	two.pass(t, time.Second)
	two.decide(r, 1)
	name := two.open[len(two.open)-1].Removed[0]
	two.pass(t, leastBetween)
	one.pass(t, leastBetween) // it must not write
	rec, _ := two.read(t)
	if len(rec.Decisions) != 2 || rec.Decisions[1].Removed[0] != name {
		t.Errorf("got %+v", rec.Decisions)
	}
	if !rec.Meter.Since.Equal(start) {
		t.Errorf("costs count from %s", rec.Meter.Since)
	}
	two.decide(r, 1)
	two.pass(t, leastBetween)
	if rec, _ = two.read(t); len(rec.Decisions) != 3 || rec.Decisions[2].ID != 3 {
		t.Errorf("got %+v", rec.Decisions)
	}
}

// TestRingSurvives lets requests and answers be lost, processes die, and old ones go on.
// What was once in the ring stays until it is the oldest, and can always be read.
func TestRingSurvives(t *testing.T) {
	r := seeded(t)
	api := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme.Scheme).Build(), interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			switch r.IntN(8) {
			case 0:
				return errors.New("the request is lost")
			case 1:
				return errors.Join(c.Update(ctx, o, options...), errors.New("the answer is lost"))
			}
			return c.Update(ctx, o, options...)
		},
	})
	now := start
	all := []*stage{newStage(t, api, now)}
	seen := map[int64]string{} // the first claim of each decision
	least, rotated := int64(1), false
	for range 250 {
		now = now.Add(time.Duration(5+r.IntN(40)) * time.Second)
		switch r.IntN(12) {
		case 0:
			all = append(all, newStage(t, api, now)) // the one before does not know yet
		case 1:
			all = all[len(all)-1:]
		}
		s := all[r.IntN(len(all))]
		s.clock.SetTime(now)
		for range r.IntN(12) {
			s.decide(r, mostClaims)
		}
		_, _ = s.Reconcile(t.Context(), reconcile.Request{}) // the next one tries again
		rec, _ := s.read(t)
		for i, d := range rec.Decisions {
			if i > 0 && d.ID != rec.Decisions[i-1].ID+1 {
				t.Fatalf("decision %d follows %d", d.ID, rec.Decisions[i-1].ID)
			}
			if was, known := seen[d.ID]; known && was != d.Removed[0] {
				t.Fatalf("decision %d is another than before", d.ID)
			}
			seen[d.ID] = d.Removed[0]
		}
		if len(rec.Decisions) > 0 {
			first, last := rec.Decisions[0].ID, rec.Decisions[len(rec.Decisions)-1].ID
			if first < least || last < int64(len(seen)) {
				t.Fatalf("decisions %d to %d are left of %d, the first was %d", first, last, len(seen), least)
			}
			least, rotated = first, rotated || first > 1
		}
	}
	if !rotated {
		t.Errorf("the ring was never full with %d decisions", len(seen))
	}
}

// TestUnreadableSegment has what can be read be read, and the rest written over.
func TestUnreadableSegment(t *testing.T) {
	r := seeded(t)
	s := newStage(t, nil, start)
	s.pass(t, 0)
	s.decide(r, 1)
	s.pass(t, leastBetween)
	broken := &corev1.ConfigMap{}
	if err := s.api.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: Name(1)}, broken); err != nil {
		t.Fatal(err)
	}
	broken.BinaryData[linesKey] = []byte("no zstd")
	if _, err := Read([]*corev1.ConfigMap{broken}); err == nil || !strings.Contains(err.Error(), "karpenter-record-1") {
		t.Errorf("got %v", err)
	}
	if err := s.api.Update(t.Context(), broken); err != nil {
		t.Fatal(err)
	}
	next := newStage(t, s.api, s.clock.Now())
	next.pass(t, time.Second)
	next.decide(r, 1)
	next.pass(t, leastBetween)
	if rec, _ := next.read(t); len(rec.Decisions) != 1 {
		t.Errorf("got %+v", rec.Decisions)
	}
}

// TestRecordGoesOn deletes and edits what is in the ring, and sets the clock: decisions are kept soon after.
func TestRecordGoesOn(t *testing.T) {
	edit := func(t *testing.T, s *stage, change func(*corev1.ConfigMap)) {
		m := &corev1.ConfigMap{}
		if err := s.api.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: Name(1)}, m); err != nil {
			t.Fatal(err)
		}
		change(m)
		if err := s.api.Update(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	head := func(change func(map[string]any)) func(*testing.T, *stage) {
		return func(t *testing.T, s *stage) {
			edit(t, s, func(m *corev1.ConfigMap) {
				top := map[string]any{}
				if err := json.Unmarshal([]byte(m.Data[headKey]), &top); err != nil {
					t.Fatal(err)
				}
				change(top)
				text, err := json.Marshal(top)
				if err != nil {
					t.Fatal(err)
				}
				m.Data[headKey] = string(text)
			})
		}
	}
	for _, x := range []struct {
		name   string
		happen func(*testing.T, *stage)
		kept   int // of two decisions before and one after
	}{
		{"nothing", func(*testing.T, *stage) {}, 3},
		{"deleted", func(t *testing.T, s *stage) {
			if err := s.api.DeleteAllOf(t.Context(), &corev1.ConfigMap{}, client.InNamespace("kube-system")); err != nil {
				t.Fatal(err)
			}
		}, 1},
		{"emptied", func(t *testing.T, s *stage) {
			edit(t, s, func(m *corev1.ConfigMap) { m.Data, m.BinaryData = nil, nil })
		}, 1},
		{"of another version", head(func(top map[string]any) { top["version"] = 99 }), 1},
		{"with a head that is no JSON", func(t *testing.T, s *stage) {
			edit(t, s, func(m *corev1.ConfigMap) { m.Data[headKey] = "{" })
		}, 1},
		{"written in the future", head(func(top map[string]any) { top["written"] = start.AddDate(100, 0, 0) }), 3},
		{"counted in the future", head(func(top map[string]any) { top["meter"].(map[string]any)["until"] = start.AddDate(100, 0, 0) }), 3},
		{"with a line that is no JSON", func(t *testing.T, s *stage) {
			edit(t, s, func(m *corev1.ConfigMap) {
				p, err := unpack(m)
				if err != nil {
					t.Fatal(err)
				}
				p.text = append([]byte("no JSON\n"), p.text...)
				packed, _, err := p.configMap(m.Namespace)
				if err != nil {
					t.Fatal(err)
				}
				m.BinaryData = packed.BinaryData
			})
		}, 3},
		{"with more than fits into the memory", func(t *testing.T, s *stage) {
			edit(t, s, func(m *corev1.ConfigMap) {
				zip, err := zstd.NewWriter(nil)
				if err != nil {
					t.Fatal(err)
				}
				m.BinaryData[linesKey] = zip.EncodeAll(make([]byte, 2*mostText), nil)
			})
		}, 1},
		{"the clock is set back", func(_ *testing.T, s *stage) { s.clock.SetTime(s.clock.Now().Add(-6 * time.Hour)) }, 3},
		{"the clock is set forward", func(_ *testing.T, s *stage) { s.clock.SetTime(s.clock.Now().Add(6 * time.Hour)) }, 3},
	} {
		for _, restarts := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restart %v", x.name, restarts), func(t *testing.T) {
				r := seeded(t)
				s := newStage(t, nil, start)
				s.pass(t, 0)
				s.decide(r, 1)
				s.decide(r, 1)
				s.pass(t, leastBetween)
				s.pass(t, leastBetween)
				x.happen(t, s)
				if restarts {
					s = newStage(t, s.api, s.clock.Now())
				}
				if x.name == "written in the future" {
					s.pass(t, mostBetween) // it looks as if another leader wrote: what was decided before that is found out is lost
				}
				s.decide(r, 1)
				for range 3 { // it finds out, claims the record and writes
					s.pass(t, leastBetween)
				}
				maps := &corev1.ConfigMapList{}
				if err := s.api.List(t.Context(), maps); err != nil {
					t.Fatal(err)
				}
				var all []*corev1.ConfigMap
				for i := range maps.Items {
					all = append(all, &maps.Items[i])
				}
				rec, _ := Read(all)
				if len(rec.Decisions) != x.kept {
					t.Errorf("%d decisions, want %d", len(rec.Decisions), x.kept)
				}
				if d := s.clock.Now().Sub(rec.Meter.Until); x.name != "the clock is set back" && (d < 0 || d > settles+2*leastBetween) {
					t.Errorf("costs count up to %s ago", d)
				}
				if rec.Meter.Unseen.dollars().Sign() < 0 {
					t.Errorf("%+v is unseen", rec.Meter.Unseen)
				}
			})
		}
	}
}

// pass1000 is a Snapshot of 1,000 nodes with pods pending, and the plan for it.
func pass1000(b testing.TB) (*model.Snapshot, *model.Plan, time.Duration) {
	b.Helper()
	var text strings.Builder
	for i, size := range []int{2, 4, 8, 16, 32} {
		for j, family := range []string{"c", "m", "r"} {
			fmt.Fprintf(&text, "type %s%d cpu=%d mem=%dGi zones=a,b,c on-demand=%.4f spot=%.4f\n", family, size, size, size*(2<<j), float64(size)*0.045+float64(j)*0.01, float64(size)*0.015+float64(i)*0.001)
		}
	}
	text.WriteString("pool general\n")
	for i := range 1000 {
		fmt.Fprintf(&text, "node n%04d pool=general type=m8 zone=%c ct=spot used=cpu:7500m,memory:20Gi,pods:9\n", i, 'a'+i%3)
	}
	for i := range 30 {
		fmt.Fprintf(&text, "pods w%02d-1..%d cpu=%dm mem=%dMi labels=app=w%02d\n", i, 40, 300+i*70, 500+i*200, i)
	}
	s, err := scenario.Parse(strings.NewReader(text.String()))
	if err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	return s, solve.Decide(s, model.DefaultPolicy()), time.Since(began)
}

// TestRecordCostsLittle: what a pass of 1,000 nodes pays for the record is less than 1 % of the time of its plan.
// The fastest of some tries counts.
func TestRecordCostsLittle(t *testing.T) {
	snapshot, plan, took := pass1000(t)
	if len(plan.Launches) < 10 {
		t.Fatalf("the plan has %d launches", len(plan.Launches))
	}
	s := newStage(t, nil, start)
	claims := make([]string, len(plan.Launches))
	fastest := took
	for range 20 {
		began := time.Now()
		s.Launched(snapshot, plan, plan.Launches, claims)
		fastest = min(fastest, time.Since(began))
	}
	share := 100 * float64(fastest) / float64(took)
	t.Logf("%s of %s: %.3f %%", fastest, took, share)
	if share > 1 {
		t.Errorf("the record takes %.2f %% of a pass, want 1 at most", share)
	}
}

// BenchmarkRecord measures what the record adds to a pass, and to the process besides.
func BenchmarkRecord(b *testing.B) {
	snapshot, plan, took := pass1000(b)
	s := newStage(b, nil, start)
	s.Snapshot = func(now time.Time) *model.Snapshot {
		out := *snapshot
		out.Now = now
		return &out
	}
	for i := range snapshot.Nodes {
		n := &snapshot.Nodes[i]
		s.instances[n.Claim] = &instance{start: start, until: start}
	}
	s.pass(b, 0)
	b.Run("pass", func(b *testing.B) {
		for b.Loop() {
			s.Launched(snapshot, plan, plan.Launches, make([]string, len(plan.Launches)))
		}
		s.pending, s.open = nil, nil
		b.ReportMetric(float64(took.Nanoseconds()), "ns/plan")
		b.ReportMetric(100*float64(b.Elapsed())/float64(b.N)/float64(took), "%/plan")
	})
	b.Run("look", func(b *testing.B) {
		for b.Loop() {
			s.clock.SetTime(s.clock.Now().Add(glance))
			s.look(s.Snapshot(s.clock.Now()))
		}
	})
	b.Run("flush", func(b *testing.B) {
		r := rand.New(rand.NewPCG(1, 1))
		for range 100 {
			s.decide(r, 20)
		}
		for b.Loop() {
			s.decide(r, 2)
			s.pass(b, leastBetween)
		}
	})
}
