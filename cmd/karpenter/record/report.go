// SPDX-License-Identifier: Apache-2.0

package record

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Report is the record for people and programs. Prices are in dollars.
type Report struct {
	Written   time.Time       `json:"written,omitzero"` // zero = there is no record
	Bytes     int             `json:"bytes"`            // of compressed lines
	MostBytes int             `json:"mostBytes"`
	Costs     *Costs          `json:"costs,omitempty"`
	Savings   *SavingsReport  `json:"savings,omitempty"` // nil = there is no baseline
	Decisions []DecisionEntry `json:"decisions"`         // newest first
	Trouble   []string        `json:"trouble,omitempty"` // what could not be read

	Meter Meter `json:"-"`
}

// Costs are what instances have cost since the record began.
type Costs struct {
	Since       time.Time `json:"since"`
	Until       time.Time `json:"until"`
	Cost        float64   `json:"cost"`   // in whole cents
	Unseen      float64   `json:"unseen"` // at most what Cost lacks
	CostPerHour float64   `json:"costPerHour"`
	Instances   int       `json:"instances"`
	Unpriced    int       `json:"unpriced"`
}

// SavingsReport has the Savings in dollars.
type SavingsReport struct {
	From     time.Time     `json:"from"`
	Until    time.Time     `json:"until"`
	Baseline float64       `json:"baseline"`
	Actual   float64       `json:"actual"`
	Saved    float64       `json:"saved"`
	Unseen   float64       `json:"unseen"`
	Causes   []CauseReport `json:"causes"` // they add up to Saved to the cent
}

// CauseReport is a Cause in dollars.
type CauseReport struct {
	Name  string  `json:"name"`
	Means string  `json:"means"`
	Saved float64 `json:"saved"`
}

// DecisionEntry is a Decision with what was predicted and what happened.
type DecisionEntry struct {
	ID        int64        `json:"id"`
	Time      time.Time    `json:"time"`
	Kind      string       `json:"kind"`
	Words     string       `json:"words"`
	Nodes     int          `json:"nodes"`       // of NodePools, when it was decided
	Cost      float64      `json:"costPerHour"` // of those
	Pods      int          `json:"pods"`
	NoPlace   int          `json:"noPlacePods"`
	Reasons   []Reason     `json:"reasons"`
	Launches  []GroupEntry `json:"launches"`
	Removes   []GroupEntry `json:"removes"`
	Moves     int          `json:"moves"`
	Predicted Figure       `json:"predicted"`
	Bound     float64      `json:"boundPerHour"`     // no plan launches for less; 0 = not known
	Actual    *Actual      `json:"actual,omitempty"` // nil = under way
}

// Figure is what a decision launches and saves, per hour.
type Figure struct {
	Launched float64 `json:"launchedPerHour"`
	Savings  float64 `json:"savingsPerHour"` // of removed nodes, less Launched; 0 of decisions about pending pods
}

// Actual is an Outcome.
type Actual struct {
	Figure
	Time      time.Time    `json:"time"`
	Ready     int          `json:"ready"`
	Failed    int          `json:"failed"`
	Removed   int          `json:"removed"`
	Kept      int          `json:"kept"`
	Evictions int          `json:"evictions"`
	Wait      float64      `json:"waitSeconds"`
	Late      bool         `json:"late"`
	Became    []GroupEntry `json:"became"`
}

// GroupEntry is a Group in dollars.
type GroupEntry struct {
	Count        int             `json:"count"`
	Pool         string          `json:"nodePool"`
	Type         string          `json:"instanceType"`
	Zone         string          `json:"zone"`
	CapacityType string          `json:"capacityType"`
	Price        float64         `json:"pricePerHour"` // of each
	Pods         int             `json:"pods"`
	Alternatives []OfferingEntry `json:"alternatives"`
}

// OfferingEntry is an Offering in dollars.
type OfferingEntry struct {
	Type         string  `json:"instanceType"`
	Zone         string  `json:"zone"`
	CapacityType string  `json:"capacityType"`
	Price        float64 `json:"pricePerHour"`
}

// Load reads the record in the namespace, and what was saved since the baseline until
// now. Parts that the user may not read, or that cannot be read, are named in Trouble.
func Load(ctx context.Context, from client.Reader, namespace string, now time.Time) (Report, error) {
	get := func(name string) (*corev1.ConfigMap, error) {
		m := &corev1.ConfigMap{}
		err := from.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, m)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return m, err
	}
	var maps []*corev1.ConfigMap
	var failures []error
	for slot := range Slots {
		m, err := get(Name(slot))
		if err != nil && !apierrors.IsForbidden(err) {
			return Report{}, fmt.Errorf("read the record: %w", err)
		}
		if failures = append(failures, err); m != nil && err == nil {
			maps = append(maps, m)
		}
	}
	rec, err := Read(maps)
	failures = append(failures, err)
	out := rec.report(now)
	m, err := get(BaselineName)
	if err == nil && m != nil && !rec.Written.IsZero() {
		err = out.since(m)
	}
	for _, err := range append(failures, err) {
		if err != nil {
			out.Trouble = append(out.Trouble, err.Error())
		}
	}
	return out, nil
}

// since enters what was saved since the baseline in the ConfigMap.
func (r *Report) since(m *corev1.ConfigMap) error {
	b, err := ParseBaseline(m)
	if err != nil {
		return err
	}
	s, err := Since(b, r.Meter)
	if err != nil {
		return err
	}
	r.Savings = &SavingsReport{From: s.From.UTC(), Until: s.Until.UTC(), Baseline: inDollars(s.Baseline), Actual: inDollars(s.Actual), Saved: inDollars(s.Saved), Unseen: inDollars(s.Unseen)}
	for _, c := range s.Causes {
		r.Savings.Causes = append(r.Savings.Causes, CauseReport{c.Name, c.Means, inDollars(c.Cents)})
	}
	return nil
}

func inDollars(cents int64) float64 { return float64(cents) / 100 }

func (r *Record) report(now time.Time) Report {
	out := Report{Written: r.Written, Bytes: r.Bytes, MostBytes: Slots * MostBytes, Decisions: []DecisionEntry{}}
	if r.Written.IsZero() {
		return out
	}
	m := r.Meter.At(now)
	out.Meter = m
	out.Costs = &Costs{
		Since: m.Since.UTC(), Until: m.Until.UTC(), Cost: inDollars(m.Cents()), Unseen: inDollars(cents(m.Unseen.dollars())),
		CostPerHour: m.Rates.Cost.Dollars(), Instances: m.Instances, Unpriced: m.Unpriced,
	}
	for i := range r.Decisions {
		out.Decisions = append(out.Decisions, r.Decisions[i].entry())
	}
	slices.SortFunc(out.Decisions, func(a, b DecisionEntry) int { return cmp.Compare(b.ID, a.ID) })
	return out
}

func (d *Decision) entry() DecisionEntry {
	out := DecisionEntry{
		ID: d.ID, Time: d.At.UTC(), Kind: d.Kind, Words: d.words(), Nodes: d.Nodes, Cost: d.Cost.Dollars(), Pods: d.Pods, NoPlace: d.NoPlace,
		Reasons: append([]Reason{}, d.Reasons...), Launches: entries(d.Launches), Removes: entries(d.Removes), Moves: d.Moves,
		Predicted: Figure{d.Price.Dollars(), d.Savings.Dollars()}, Bound: d.Bound.Dollars(),
	}
	if o := d.Outcome; o != nil {
		out.Actual = &Actual{
			Figure: Figure{Launched: o.Price.Dollars()}, Time: o.At.UTC(), Ready: o.Ready, Failed: o.Failed, Removed: o.Removed, Kept: o.Kept,
			Evictions: o.Evictions, Wait: o.Wait.Seconds(), Late: o.Late, Became: entries(o.Became),
		}
		if len(d.Removes) > 0 {
			out.Actual.Savings = (o.Freed - o.Price).Dollars()
		}
	}
	return out
}

func entries(all []Group) []GroupEntry {
	out := []GroupEntry{}
	for _, g := range all {
		e := GroupEntry{g.Count, g.Pool, g.Type, g.Zone, g.CapacityType, g.Price.Dollars(), g.Pods, []OfferingEntry{}}
		for _, a := range g.Alternatives {
			e.Alternatives = append(e.Alternatives, OfferingEntry{a.Type, a.Zone, a.CapacityType, a.Price.Dollars()})
		}
		out = append(out, e)
	}
	return out
}

// words describes the decision without its kind, which is in the column beside
// it.
func (d *Decision) words() string {
	if d.Kind == Provision {
		return fmt.Sprintf("Launched %s for %s", named(d.Launches), counted(d.Pods-d.NoPlace-d.Moves, "pending pod"))
	}
	text := "Removed " + named(d.Removes)
	if len(d.Launches) > 0 {
		text += ", replaced by " + named(d.Launches)
	}
	return text
}

// named counts nodes by what they are.
func named(all []Group) string {
	const most = 3
	var parts []string
	for _, g := range all[:min(len(all), most)] {
		parts = append(parts, fmt.Sprintf("%d × %s", g.Count, strings.Join(strings.Fields(g.Type+" "+g.CapacityType+" "+g.Zone), " ")))
	}
	if rest := len(all) - most; rest > 0 {
		return fmt.Sprintf("%s and %s", strings.Join(parts, ", "), counted(rest, "other kind"))
	}
	return strings.Join(parts, ", ")
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// ErrNone is that there is no record.
var ErrNone = errors.New("found no record: the leader of Karpenter writes it within a minute after its start. Run 'karpenter status' to see whether Karpenter runs")

// Text prints the costs, the savings and the latest decisions.
func (r *Report) Text(most int) string {
	var b strings.Builder
	for _, t := range r.Trouble {
		fmt.Fprintf(&b, "Cannot read a part of the record: %s\n", t)
	}
	day := func(t time.Time) string { return t.Format("2006-01-02 15:04 UTC") }
	if c := r.Costs; c != nil {
		fmt.Fprintf(&b, "Nodes have cost $%.2f since %s, and cost $%.4f/h now.\n", c.Cost, day(c.Since), c.CostPerHour)
		if c.Unseen > 0 {
			fmt.Fprintf(&b, "At most $%.2f are missing, because no controller ran.\n", c.Unseen)
		}
	}
	if s := r.Savings; s != nil {
		fmt.Fprintf(&b, "\nSaved since the baseline of %s: $%.2f ($%.2f at the cost of the baseline, less $%.2f).\n\n", day(s.From), s.Saved, s.Baseline, s.Actual)
		fmt.Fprintf(&b, "%-14s  %12s  %s\n", "CAUSE", "SAVED $", "MEANING")
		for _, c := range s.Causes {
			fmt.Fprintf(&b, "%-14s  %12.2f  %s\n", c.Name, c.Saved, c.Means)
		}
	}
	if len(r.Decisions) == 0 {
		fmt.Fprint(&b, "\nKarpenter has launched and removed nothing yet.\n")
		return b.String()
	}
	const row = "%-16s  %-13s  %13s  %10s  %9s  %7s"
	line := func(cells ...any) { fmt.Fprintln(&b, strings.TrimRight(fmt.Sprintf(row, cells...), " ")) }
	fmt.Fprintln(&b)
	line("TIME", "REASON", "PREDICTED $/H", "ACTUAL $/H", "EVICTIONS", "WAIT")
	for _, d := range r.Decisions[:min(len(r.Decisions), most)] {
		actual, evictions, wait := "under way", "", ""
		if a := d.Actual; a != nil {
			actual, evictions = fmt.Sprintf("%+.4f", a.change(d.Kind)), fmt.Sprint(a.Evictions)
			if a.Wait > 0 {
				wait = (time.Duration(a.Wait) * time.Second).String()
			}
		}
		line(d.Time.Format("2006-01-02 15:04"), d.Kind, fmt.Sprintf("%+.4f", d.Predicted.change(d.Kind)), actual, evictions, wait)
		fmt.Fprintf(&b, "    %s\n", d.Words)
	}
	if rest := len(r.Decisions) - most; rest > 0 {
		fmt.Fprintf(&b, "%d older decisions are not shown: use --limit.\n", rest)
	}
	return b.String()
}

// change is by how much the cost changes.
func (f Figure) change(kind string) float64 {
	if kind == Provision {
		return f.Launched
	}
	return -f.Savings
}
