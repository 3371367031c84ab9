// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"karpenter/cmd/karpenter/plan"
	"karpenter/cmd/karpenter/recording"
	"karpenter/cmd/karpenter/replay"
	"karpenter/sim/script"
	"karpenter/sim/trial"
)

// recorded runs the script of replays and returns the recording of it.
func recorded(t *testing.T, s *script.Script) *recording.Recording {
	t.Helper()
	server, err := trial.NewServer()
	if err != nil {
		t.Fatal(err)
	}
	recorder := trial.NewRecorder("kube-system")
	v := trial.Trial{
		Server: server, Script: s, Witness: recorder, PublishIn: "kube-system", Steps: 5_000_000, Calm: true, Free: true, Lawless: true,
	}.Hold(t)
	if v.Err != nil {
		t.Fatalf("seed %d: %v", s.Seed, v.Err)
	}
	var file bytes.Buffer
	if err := recorder.Write(&file, fmt.Sprintf("simulation, seed %d", s.Seed)); err != nil {
		t.Fatal(err)
	}
	scheme, err := trial.RecordingScheme()
	if err != nil {
		t.Fatal(err)
	}
	r, err := recording.Read(&file, scheme)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestReplay replays simulated recordings, of seeds drawn now.
func TestReplay(t *testing.T) {
	text, err := os.ReadFile("testdata/replay.script")
	if err != nil {
		t.Fatal(err)
	}
	s, err := script.Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	s.Seed = rand.Uint64N(1 << 16)
	began := time.Now()
	r := recorded(t, s)
	t.Logf("seed %d, simulated in %s", s.Seed, time.Since(began))
	began = time.Now()
	report, err := replay.Replay(r, &plan.Manifests{})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("replayed in %s\n%s", time.Since(began), report.Text())
	_, _ = math.Abs, strings.Join
}
