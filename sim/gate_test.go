// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

// account is what became of calls, in order.
type account struct {
	mu    sync.Mutex
	lines []string
}

func (a *account) add(line string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lines = append(a.lines, line)
}

// arrive has calls of the names arrive at the gate, all at once.
func arrive(ctx context.Context, g *gate, done *account, names ...string) {
	for _, name := range names {
		go func() {
			err := g.pass(ctx, request{
				Call: Call{Target: API, Verb: "create", Name: name}, detail: func() string { return "" },
				carry: func(float64) error { done.add(name); return nil },
			})
			if err != nil {
				done.add(fmt.Sprintf("%s: %v", name, err))
			}
		}()
	}
	synctest.Wait()
}

func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var done account
		g := &gate{}
		ctx, cancel := context.WithCancel(t.Context())
		arrive(ctx, g, &done, "c", "a", "d", "b", "e")
		arrive(t.Context(), g, &done, "f")
		release := func(i int, f Fault) {
			g.release(g.list()[i], f)
			synctest.Wait()
		}
		if len(done.lines) != 0 {
			t.Fatalf("carried out before their turn: %v", done.lines)
		}
		release(1, Fault{})
		release(0, Fault{Refuse: errors.New("no")})
		release(0, Fault{Lose: errors.New("lost")})
		cancel()
		synctest.Wait()
		if len(g.list()) != 1 {
			t.Errorf("%d calls wait that have been given up", len(g.list())-1)
		}
		g.end()
		synctest.Wait()
		arrive(t.Context(), g, &done, "g")
		slices.Sort(done.lines[4:6])
		want := []string{"b", "a: no", "c", "c: lost", "d: context canceled", "e: context canceled", "f: " + errEnded.Error(), "g: " + errEnded.Error()}
		if !slices.Equal(done.lines, want) {
			t.Errorf("got  %q\nwant %q", done.lines, want)
		}
	})
}
