package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
)

// arrive has calls of the names arrive at the gate, all at once.
func arrive(ctx context.Context, g *gate, done *[]string, names ...string) {
	for _, name := range names {
		go func() {
			err := g.pass(ctx, request{
				Call: Call{Target: API, Verb: "create", Name: name}, detail: func() string { return "" },
				carry: func(float64) error { *done = append(*done, name); return nil },
			})
			if err != nil {
				*done = append(*done, fmt.Sprintf("%s: %v", name, err))
			}
		}()
	}
	synctest.Wait()
}

func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var done []string
		g := &gate{}
		ctx, cancel := context.WithCancel(t.Context())
		arrive(ctx, g, &done, "c", "a", "d", "b", "e")
		arrive(t.Context(), g, &done, "f")
		release := func(i int, f Fault) {
			g.release(g.list()[i], f)
			synctest.Wait()
		}
		if len(done) != 0 {
			t.Fatalf("carried out before their turn: %v", done)
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
		slices.Sort(done[4:6])
		want := []string{"b", "a: no", "c", "c: lost", "d: context canceled", "e: context canceled", "f: " + errEnded.Error(), "g: " + errEnded.Error()}
		if !slices.Equal(done, want) {
			t.Errorf("got  %q\nwant %q", done, want)
		}
	})
}
