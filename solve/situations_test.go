// SPDX-License-Identifier: Apache-2.0

package solve_test

import (
	"cmp"
	"flag"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"

	"karpenter/model"
	"karpenter/scenario"
	"karpenter/solve"
	"karpenter/solve/solvetest"
)

var (
	seeds = flag.Uint64("seeds", 1, "multiply the number of random situations by this")
	first = flag.Uint64("first", 0, "seed of the first random situation; 0 = draw one")
)

// drawn is the first seed of this run, where none is given.
var drawn = sync.OnceValue(func() uint64 { return 1 + rand.Uint64N(1<<40) })

// Shares of situations in which a law about how good a plan is may fail. See
// docs/differences.md for what is measured.
const (
	mayForget = 0.0001 // a pod that could run stays pending
	mayStay   = 0.0005 // a node stays that could go or be replaced
)

// mostShown is how many failing situations of a kind are shrunk and shown.
const mostShown = 3

// situations runs f on n random situations of a kind, times the -seeds flag: others
// on every run. f returns what is wrong with the plans for a situation. Of the first
// situations that fail, the test shows the smallest part that still fails.
func situations(t *testing.T, draw solvetest.Draw, n uint64, f func(s *model.Snapshot) []string) {
	t.Helper()
	mostSituations(t, draw, n, 0, f)
}

// fewFailing is how many failing situations of a kind say nothing about the share of those
// that fail: of fifty situations of everything together, in which every law is hardest to
// keep, two fail once in 200 runs.
const fewFailing = 2

// mostSituations is situations for a law about how good a plan is, not whether it
// may be carried out: it may fail in a share of them, or in few. More do by chance, at most
// four standard deviations.
func mostSituations(t *testing.T, draw solvetest.Draw, n uint64, share float64, f func(s *model.Snapshot) []string) {
	t.Helper()
	from := cmp.Or(*first, drawn())
	t.Logf("situations from seed %d", from)
	n *= *seeds
	failing := map[uint64]*model.Snapshot{}
	for seed := from; seed < from+n; seed++ {
		if s := draw.Situation(rand.New(rand.NewPCG(seed, stream(t.Name())))); len(wrongWith(s, f)) > 0 {
			failing[seed] = s
		}
	}
	expected, most := share*float64(n), 0.0
	if share > 0 {
		most = max(fewFailing, math.Floor(expected+4*math.Sqrt(expected)))
	}
	if float64(len(failing)) <= most {
		for seed, s := range failing {
			t.Logf("seed %d, which is let pass: %s", seed, strings.Join(wrongWith(s, f), "\n"))
		}
		return
	}
	shown := slices.Sorted(maps.Keys(failing))
	for _, seed := range shown[:min(len(shown), mostShown)] {
		show(t, seed, failing[seed], f)
	}
	t.Errorf("%d of %d situations fail; to repeat: go test ./solve -run '%s' -args -first=%d -seeds=%d", len(failing), n, t.Name(), from, *seeds)
}

// stream tells the situations of a test apart from those that other kinds and laws have
// for the same seeds, so that what is hard for one of them is not counted for all.
func stream(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return h.Sum64()
}

// show reports the smallest part of a situation that still fails.
func show(t *testing.T, seed uint64, s *model.Snapshot, f func(s *model.Snapshot) []string) {
	t.Helper()
	s = solvetest.Shrink(s, func(s *model.Snapshot) bool { return len(wrongWith(s, f)) > 0 })
	t.Errorf("seed %d: %s", seed, strings.Join(wrongWith(s, f), "\n"))
	var b strings.Builder
	if err := scenario.Print(&b, s); err != nil {
		t.Errorf("seed %d: the situation cannot be printed: %v", seed, err)
		return
	}
	t.Logf("the situation:\n%s", b.String())
	wrongWith(s, func(s *model.Snapshot) []string {
		t.Logf("its plan:\n%s", scenario.Text(s, solve.Decide(s, model.DefaultPolicy())))
		return nil
	})
}

// wrongWith returns what f finds wrong with a situation. A panic is wrong, too.
func wrongWith(s *model.Snapshot, f func(s *model.Snapshot) []string) (wrong []string) {
	defer func() {
		if r := recover(); r != nil {
			wrong = []string{fmt.Sprintf("panic: %v\n%s", r, debug.Stack())}
		}
	}()
	return f(s)
}
