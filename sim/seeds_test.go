package sim_test

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

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

// TestSeeds holds trials of scripts drawn from seeds. A seed that fails leaves
// a script that is as short as it could be made.
func TestSeeds(t *testing.T) {
	server, err := trial.NewServer()
	if err != nil {
		t.Fatal(err)
	}
	var passed, steps atomic.Int64
	var mu sync.Mutex
	hits := map[script.Kind]int{}
	t.Run("all", func(t *testing.T) {
		for i := range *seeds {
			seed := *firstSeed + uint64(i)
			t.Run(fmt.Sprintf("seed-%d", seed), func(t *testing.T) {
				t.Parallel()
				s := script.Draw(seed)
				v := judge(t, server, s)
				steps.Add(int64(v.Steps))
				mu.Lock()
				for k, n := range v.Faults {
					hits[k] += n
				}
				mu.Unlock()
				if v.Err == nil {
					passed.Add(1)
					return
				}
				fail(t, server, s, v.Err)
			})
		}
	})
	fmt.Printf("%d of %d seeds passed; %d steps, faults that hit: %v\n", passed.Load(), *seeds, steps.Load(), hits)
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
