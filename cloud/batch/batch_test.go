// SPDX-License-Identifier: Apache-2.0

package batch

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// recorded is a Batcher of words, joined by their first letter, and the batches
// it made.
type recorded struct {
	*Batcher[string, string]
	metrics *Metrics

	mu      sync.Mutex
	batches []string
}

func newRecorded(items int) *recorded {
	r := &recorded{metrics: NewMetrics(prometheus.NewRegistry(), prometheus.DefBuckets)}
	r.Batcher = New(Config[string, string]{
		Name: "words", Idle: 10 * time.Millisecond, Most: 25 * time.Millisecond, Items: items, Metrics: r.metrics,
		Key: func(word string) string { return word[:1] },
		Call: func(_ context.Context, words []string) []Answer[string] {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.batches = append(r.batches, strings.Join(slices.Sorted(slices.Values(words)), " "))
			var out []Answer[string]
			for _, word := range words {
				a := Answer[string]{Value: strings.ToUpper(word)}
				if strings.Contains(word, "x") {
					a = Answer[string]{Err: errors.New(word)}
				}
				out = append(out, a)
			}
			return out
		},
	})
	return r
}

func (r *recorded) made() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.batches)
}

func TestAnswersGoToTheirCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorded(100)
		for _, word := range []string{"ab", "ac", "bb", "ax"} {
			go func() {
				got, err := r.Do(t.Context(), word)
				if failed := err != nil; failed != (word == "ax") || !failed && got != strings.ToUpper(word) {
					t.Errorf("%s: %q, %v", word, got, err)
				}
			}()
		}
		time.Sleep(time.Second)
		if diff := cmp.Diff([]string{"ab ac ax", "bb"}, slices.Sorted(slices.Values(r.made()))); diff != "" {
			t.Error(diff)
		}
		if n := testutil.CollectAndCount(r.metrics.size); n != 1 {
			t.Errorf("%d series", n)
		}
	})
}

// An item every 8 ms keeps a batch open until its first has waited for 25 ms.
func TestWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorded(100)
		for _, word := range []string{"a1", "a2", "a3", "a4", "a5", "a6"} {
			go func() { _, _ = r.Do(t.Context(), word) }()
			time.Sleep(8 * time.Millisecond)
		}
		time.Sleep(10 * time.Millisecond)
		if diff := cmp.Diff([]string{"a1 a2 a3 a4", "a5 a6"}, r.made()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestFullBatchGoesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorded(2)
		for range 4 {
			go func() { _, _ = r.Do(t.Context(), "a") }()
		}
		synctest.Wait()
		if diff := cmp.Diff([]string{"a a", "a a"}, r.made()); diff != "" {
			t.Error(diff)
		}
	})
}

// A caller that goes away does not take the call of others with it.
func TestCallerGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorded(100)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := r.Do(ctx, "ab"); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		if got, err := r.Do(t.Context(), "ac"); got != "AC" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		if diff := cmp.Diff([]string{"ab ac"}, r.made()); diff != "" {
			t.Error(diff)
		}
	})
}
