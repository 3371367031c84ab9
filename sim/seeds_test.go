// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"karpenter/sim/script"
	"karpenter/sim/store"
	"karpenter/sim/trial"
)

var (
	seeds     = flag.Int("seeds", 20, "how many seeds to draw scripts from")
	firstSeed = flag.Uint64("first", 0, "the first of the seeds")
	file      = flag.String("script", "", "a script to run")
	shrink    = flag.Int("shrink", 150, "how many runs to spend on shrinking a script that fails")
)

// judge holds a trial of the script, with a transcript if one is asked for.
func judge(t *testing.T, server *store.Server, s *script.Script) trial.Verdict {
	t.Helper()
	c := trial.Trial{Server: server, Script: s}
	if *verbose {
		c.Transcript = os.Stdout
	}
	return c.Hold(t)
}

// tally counts how the seeds of a test run went.
type tally struct {
	mu            sync.Mutex
	began         time.Time
	passed, steps int
	hits          map[script.Kind]int
}

func (c *tally) add(v trial.Verdict) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.steps += v.Steps
	if v.Err == nil {
		c.passed++
	}
	for k, n := range v.Faults {
		c.hits[k] += n
	}
}

// seen is printed last of all, so that the last line says how many passed.
var seen tally

func TestMain(m *testing.M) {
	code := m.Run()
	if !seen.began.IsZero() {
		took := time.Since(seen.began)
		fmt.Printf("faults that hit: %v\n%d steps in %s, %.1f seeds a second\n%d of %d seeds passed\n",
			seen.hits, seen.steps, took.Round(time.Second), float64(*seeds)/took.Seconds(), seen.passed, *seeds)
	}
	os.Exit(code)
}

// TestSeeds holds trials of scripts drawn from seeds. A seed that fails leaves
// a script that is as short as it could be made.
func TestSeeds(t *testing.T) {
	server, err := trial.NewServer()
	if err != nil {
		t.Fatal(err)
	}
	seen.began, seen.hits = time.Now(), map[script.Kind]int{}
	for i := range *seeds {
		seed := *firstSeed + uint64(i)
		t.Run(fmt.Sprintf("seed-%d", seed), func(t *testing.T) {
			t.Parallel()
			s := script.Draw(seed)
			v := judge(t, server, s)
			seen.add(v)
			if v.Err != nil {
				fail(t, server, s, v.Err)
			}
		})
	}
}

// TestSameSeedSameTrial makes whole trials twice.
func TestSameSeedSameTrial(t *testing.T) {
	server, err := trial.NewServer()
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(6) {
		first, second := judge(t, server, script.Draw(seed)), judge(t, server, script.Draw(seed))
		if first.Hash != second.Hash {
			t.Errorf("seed %d: %+v, then %+v", seed, first.Result, second.Result)
		}
	}
}

// fail shrinks the script, writes it down and says how to run it.
func fail(t *testing.T, server *store.Server, s *script.Script, why error) {
	t.Helper()
	small := script.Shrink(s, func(trial *script.Script) bool { return quietly(t, server, trial) != nil }, *shrink)
	path := filepath.Join(os.TempDir(), fmt.Sprintf("sim-seed-%d.script", s.Seed))
	if err := os.WriteFile(path, []byte(small.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Errorf("seed %d: %v\n\n%s\nshrunk to %s, which fails with: %v\nto run it: go test ./sim -run TestScript -v -script=%s\nto run the seed: go test ./sim -run TestSeeds -seeds=1 -first=%d",
		s.Seed, why, small, path, quietly(t, server, small), path, s.Seed)
}

// quietly returns the law that the script breaks.
func quietly(t *testing.T, server *store.Server, s *script.Script) error {
	t.Helper()
	return trial.Trial{Server: server, Script: s, Transcript: io.Discard}.Hold(t).Err
}

// TestScript holds a trial of the script in the file.
func TestScript(t *testing.T) {
	if *file == "" {
		t.Skip("no -script")
	}
	text, err := os.ReadFile(*file)
	if err != nil {
		t.Fatal(err)
	}
	s, err := script.Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	server, err := trial.NewServer()
	if err != nil {
		t.Fatal(err)
	}
	v := judge(t, server, s)
	if v.Err != nil {
		t.Error(v.Err)
	}
	t.Logf("%d steps, %d calls, %d restarts in %s; faults that hit: %v", v.Steps, v.Calls, v.Restarts, v.Lasted, v.Faults)
}
