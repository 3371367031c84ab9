// SPDX-License-Identifier: Apache-2.0

package try

import (
	"bytes"
	_ "embed"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"karpenter/cmd/karpenter/record"
	"karpenter/cmd/karpenter/recording"
	"karpenter/cmd/karpenter/situation"
	"karpenter/cmd/karpenter/top"
	"karpenter/sim/amazon"
	"karpenter/sim/script"
	"karpenter/sim/trial"
)

var (
	file = flag.String("recording", "", "file to write the recording to; empty checks what is recorded")
	seed = flag.Uint64("seed", 0, "seed of the order in which things happen; 0 is that of the script")
)

//go:embed shop.script
var shop string

// namespace is that of Karpenter.
const namespace = "kube-system"

// peak is when the most pods run.
const peak = 3*time.Minute + 20*time.Second

// play runs the script and returns the recording.
func play(t *testing.T, seed uint64) []byte {
	t.Helper()
	s, err := script.Parse(shop)
	if err != nil {
		t.Fatal(err)
	}
	if seed != 0 {
		s.Seed = seed
	}
	server, err := trial.NewServer()
	if err != nil {
		t.Fatal(err)
	}
	account := &amazon.Config{Zones: s.Types[0].Zones}
	for _, sold := range s.Types {
		account.Types = append(account.Types, sold.Name)
	}
	recorder := trial.NewRecorder(namespace)
	v := trial.Trial{
		Server: server, Script: s, Amazon: account, Witness: recorder, PublishIn: namespace,
		Free: true, Lawless: true, // trials that look for faults are in package sim
	}.Hold(t)
	if v.Err != nil {
		t.Fatalf("seed %d: %v", s.Seed, v.Err)
	}
	var out bytes.Buffer
	if err := recorder.Write(&out, fmt.Sprintf("simulation, seed %d", s.Seed)); err != nil {
		t.Fatal(err)
	}
	return frozen(t, out.Bytes())
}

// frozen returns the recording with a baseline that a user has frozen at the peak.
func frozen(t *testing.T, text []byte) []byte {
	t.Helper()
	scheme, err := trial.RecordingScheme()
	if err != nil {
		t.Fatal(err)
	}
	r, err := recording.Read(bytes.NewReader(text), scheme)
	if err != nil {
		t.Fatal(err)
	}
	at := r.Started.Add(peak)
	kept, err := record.Load(t.Context(), r.At(at), namespace, at)
	if err != nil {
		t.Fatal(err)
	}
	b, err := record.Freeze(kept.Meter)
	if err != nil {
		t.Fatal(err)
	}
	baseline, err := b.ConfigMap(namespace)
	if err != nil {
		t.Fatal(err)
	}
	next := slices.IndexFunc(r.Changes, func(c recording.Change) bool { return c.At.After(at) })
	var out bytes.Buffer
	w, err := recording.NewWriter(&out, r.Header, scheme)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range slices.Insert(r.Changes, next, recording.Change{At: at, Object: baseline}) {
		if err := w.Write(c); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestTry plays the shop. With -recording, it writes what make try shows; else it
// checks that a recording shows what make try promises, also of seeds drawn now.
func TestTry(t *testing.T) {
	if *file != "" {
		if err := os.WriteFile(*file, play(t, *seed), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, seed := range []uint64{*seed, rand.Uint64N(1 << 16), rand.Uint64N(1 << 16)} {
		t.Run(fmt.Sprint("seed-", seed), func(t *testing.T) { promised(t, play(t, seed)) })
	}
}

// promised checks that the commands find in the recording what makes it worth
// looking at.
func promised(t *testing.T, text []byte) {
	t.Helper()
	scheme, err := trial.RecordingScheme()
	if err != nil {
		t.Fatal(err)
	}
	r, err := recording.Read(bytes.NewReader(text), scheme)
	if err != nil {
		t.Fatal(err)
	}
	end := r.Ended()
	answers, err := top.Ask(t.Context(), &situation.Reader{Client: r.At(end), Scheme: scheme}, end)
	if err != nil {
		t.Fatal(err)
	}
	if b := answers.Bound; b.Missing != "" || b.Least <= 0 || b.Cost < b.Least {
		t.Errorf("the bound is %+v", b)
	}
	kept, err := record.Load(t.Context(), r.At(end), namespace, end)
	if err != nil || len(kept.Trouble) > 0 {
		t.Fatalf("%v, %v", kept.Trouble, err)
	}
	if len(kept.Decisions) < 6 || kept.Savings == nil || kept.Savings.Saved <= 0 {
		t.Errorf("the record has %d decisions, and savings %+v", len(kept.Decisions), kept.Savings)
	}
	launches, removals := 0, 0
	state := r.At(r.Started)
	var before *top.View
	for _, c := range r.Changes {
		if !state.Advance(c.At) {
			continue
		}
		objects, err := top.Read(t.Context(), state)
		if err != nil {
			t.Fatal(err)
		}
		view := top.Of(objects, answers.Prices, c.At)
		if before != nil {
			for _, e := range top.Between(before, &view) {
				switch e.Kind {
				case top.Launched:
					launches++
				case top.Gone:
					removals++
				}
			}
		}
		before = &view
	}
	if launches < 3 || removals < 3 {
		t.Errorf("nodes were launched %d times and removed %d times, want 3 at least", launches, removals)
	}
	waiting := 0
	for _, w := range before.Workloads {
		if waiting += w.Waiting; w.Waiting > 0 && w.Name != "report" {
			t.Errorf("pods of %s wait", w.Name)
		}
	}
	if waiting != 2 {
		t.Errorf("%d pods wait in the end, want the 2 reports beyond the limit: %+v on %+v", waiting, before.Workloads, before.Nodes)
	}
}
