// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"maps"
	"strings"
	"testing"
	"time"
)

func TestSince(t *testing.T) {
	before, now := map[string]float64{"GET": 13, "POST": 1}, map[string]float64{"GET": 13, "POST": 300}
	if more := since(before, now); !maps.Equal(more, map[string]float64{"POST": 299}) {
		t.Errorf("more requests %v", more)
	}
}

// TestSamplesOfAPhase are those after its begin.
func TestSamplesOfAPhase(t *testing.T) {
	s := &samples{all: []int64{9, 9, 1}}
	n := s.len()
	s.add(3)
	if got := s.from(n).percentile(100); got != 3 {
		t.Errorf("most is %d, want 3", got)
	}
}

func TestPodsOfAllDeployments(t *testing.T) {
	s := DefaultSizing()
	z := &sizing{Sizing: &s}
	for percent, want := range map[int]int{20: 2000, 80: 8000, 100: s.Pods} {
		if got := z.pods(percent); got != want {
			t.Errorf("%d %% are %d pods, want %d", percent, got, want)
		}
	}
}

func TestLoads(t *testing.T) {
	var out bytes.Buffer
	err := writeLoads(&out, []*load{{
		Phase: "idle", Seconds: 120, Nodes: 3, NodesAfter: 3, Pods: 30, PodsAfter: 30, MemoryP95: 90 << 20, MemoryMost: 99 << 20, CPUSeconds: 5,
		Requests: map[string]float64{"GET": 3, "PUT": 60}, Series: 7, Machine1: 0.25, Machine2: 2,
	}})
	want := "| idle  | 120 s | 3 → 3 | 30 → 30 | 90, 99 MiB       | 2.5 s        | 32                    | 0                  | 7      | 0.2, 2.0 | 0        |"
	if err != nil || !strings.Contains(out.String(), want) {
		t.Errorf("%v\n%s\nwant the line\n%s", err, out.String(), want)
	}
}

// TestMistakesOfSizing are found before a cluster is started.
func TestMistakesOfSizing(t *testing.T) {
	for _, c := range []struct {
		change func(*Sizing)
		want   string
	}{
		{func(s *Sizing) { s.Cores = 0 }, "must be at least 1"},
		{func(s *Sizing) { s.Bare = true }, "nodes cannot be grown without a scheduler"},
		{func(s *Sizing) { s.Left = 101 }, "of 100 pods 101 cannot be left"},
		{func(s *Sizing) { s.Within = time.Minute }, "make no sense"},
	} {
		s := DefaultSizing()
		c.change(&s)
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// TestOneSize: the instances of the pool have so many cores.
func TestOneSize(t *testing.T) {
	pool := oneSize("aws", 8, 10)[1]
	text, err := pool.MarshalJSON()
	if want := `{"key":"karpenter.k8s.aws/instance-cpu","operator":"In","values":["8"]}`; err != nil || !strings.Contains(string(text), want) {
		t.Errorf("%v; the pool does not ask for %s:\n%s", err, want, text)
	}
}
