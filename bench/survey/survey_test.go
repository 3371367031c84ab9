// SPDX-License-Identifier: Apache-2.0

package survey_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"karpenter/bench/survey"
	"karpenter/bench/wild"
	"karpenter/scenario"
)

// childVariable makes this test binary a child process.
const childVariable = "SURVEY_CHILD"

func TestMain(m *testing.M) {
	if text := os.Getenv(childVariable); text != "" {
		var a survey.ChildArguments
		err := json.Unmarshal([]byte(text), &a)
		if err == nil {
			err = survey.Child(a.Case, a.Engine, a.Limits, os.Stdout)
		}
		if err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

// child measures in a process of its own.
func child(t *testing.T, c wild.Case, engine string, limits survey.Limits) *survey.Measurement {
	t.Helper()
	text, err := json.Marshal(survey.ChildArguments{Case: c, Engine: engine, Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+string(text))
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	m := &survey.Measurement{}
	if err := json.Unmarshal(out, m); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return m
}

func patient() survey.Limits { return survey.Limits{CPU: time.Minute, Memory: 4 << 30} }

func TestBothEnginesPlanTheSameProblem(t *testing.T) {
	c := wild.Case{Family: "hard", Deployments: 5, Nodes: 5, Draw: 1, Seed: 2}
	a, b := child(t, c, survey.Ours, patient()), child(t, c, survey.Upstream, patient())
	for _, m := range []*survey.Measurement{a, b} {
		if m.Status != survey.OK || m.FirstCPU <= 0 || (m.WarmCPU > 0) != (m.Engine == survey.Ours) || m.PeakBytes == 0 || m.Scheduled != m.Pods || m.Pods == 0 {
			t.Errorf("%s", m)
		}
	}
	if a.Pods != b.Pods {
		t.Errorf("ours has %d pods, upstream %d", a.Pods, b.Pods)
	}
}

func TestBothEnginesComeToRest(t *testing.T) {
	c := wild.Case{Family: "half-empty-plain", Deployments: 10, Draw: 1, Seed: 2}
	for _, engine := range []string{survey.Ours, survey.Upstream} {
		m := child(t, c, engine, patient())
		if m.Status != survey.OK || m.Decisions < 2 || m.NewNodes == 0 || m.Price <= 0 {
			t.Errorf("%s", m)
		}
		if gap, ok := m.Gap(); engine == survey.Ours && (!ok || gap < 0) {
			t.Errorf("the bound $%.3f/h is not below the price $%.3f/h", m.Bound, m.Price)
		}
	}
}

func TestLimitsEndADecision(t *testing.T) {
	c := wild.Case{Family: "mix", Deployments: 300, Draw: 1, Seed: 2}
	if m := child(t, c, survey.Upstream, survey.Limits{CPU: 100 * time.Millisecond, Memory: 4 << 30}); m.Status != survey.Late || m.Planned() {
		t.Errorf("limit of CPU time: %s", m)
	}
	if m := child(t, c, survey.Upstream, survey.Limits{CPU: time.Minute, Memory: 20 << 20}); m.Status != survey.Large || m.Planned() {
		t.Errorf("limit of memory: %s", m)
	}
}

// made returns a measurement without measuring.
func made(engine string, deployments int, cpu, price float64) *survey.Measurement {
	return &survey.Measurement{
		Case: wild.Case{Family: "plain", Deployments: deployments, Draw: 1, Seed: 1}, Engine: engine, Limit: 60,
		FirstCPU: cpu, WarmCPU: cpu / 2, Pods: 9, Scheduled: 9, NewNodes: 3, Price: price, Bound: 1, Status: survey.OK,
	}
}

func late(engine string, deployments int) *survey.Measurement {
	m := made(engine, deployments, 0, 0)
	m.Status, m.Note, m.Bound = survey.Late, "stopped", 0
	return m
}

func TestReportHasMedianAndWorst(t *testing.T) {
	var out bytes.Buffer
	survey.Report(&out, []*survey.Measurement{
		made(survey.Ours, 50, 1, 1.1), made(survey.Upstream, 50, 10, 2), // 10 times less CPU, price 0.55
		made(survey.Ours, 100, 3, 1.5), made(survey.Upstream, 100, 12, 1), // 4 times less CPU, price 1.5, growth 3
		late(survey.Ours, 200), made(survey.Upstream, 200, 30, 1), // no plan: infinitely slow, growth at least 20
	})
	row := ""
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "| plain |") {
			row = strings.TrimSpace(line)
		}
	}
	want := "| plain | 3 | 3.00 | none | none | 0.50 | 1.50 | 12 | 30 | 30 | 4.0 | 0.0 | 20 | 0.550 | 1.500 | 10.0% | 50.0% | 50.0% | 3 | 3 | – | – | no plan in time: 1 |"
	if row != want {
		t.Errorf("got  %s\nwant %s", row, want)
	}
}

func TestPriceIsComparedForTheSamePodsOnly(t *testing.T) {
	a, b := made(survey.Ours, 50, 1, 2), made(survey.Upstream, 50, 1, 1)
	if price, ok := (survey.Pair{Ours: a, Theirs: b}).Price(); !ok || price != 2 {
		t.Errorf("got %v, %t", price, ok)
	}
	b.Scheduled--
	if _, ok := (survey.Pair{Ours: a, Theirs: b}).Price(); ok {
		t.Error("plans for different pods are compared")
	}
	b.Scheduled, b.Status = a.Scheduled, survey.Invalid
	if _, ok := (survey.Pair{Ours: a, Theirs: b}).Price(); ok {
		t.Error("an invalid plan is compared")
	}
	a.Price, b.Price, b.Status = 0, 0, survey.OK
	if price, ok := (survey.Pair{Ours: a, Theirs: b}).Price(); !ok || price != 1 {
		t.Errorf("free machines: got %v, %t", price, ok)
	}
}

func TestPictureIsWellFormed(t *testing.T) {
	var out bytes.Buffer
	all := []*survey.Measurement{made(survey.Ours, 50, 0.02, 1), made(survey.Ours, 100, 3, 1), late(survey.Ours, 200), made(survey.Upstream, 50, 10, 1)}
	if err := survey.Picture(&out, all, "seed <1>"); err != nil {
		t.Fatal(err)
	}
	elements := map[string]int{}
	decoder := xml.NewDecoder(&out)
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if start, ok := token.(xml.StartElement); ok {
			elements[start.Name.Local]++
		}
	}
	if elements["circle"] != 3 || elements["svg"] != 1 {
		t.Errorf("elements %v, want a circle for each size with a plan", elements)
	}
}

func TestWorstProblemsAreScenarios(t *testing.T) {
	folder := t.TempDir()
	a, b := made(survey.Ours, 5, 9, 2), made(survey.Upstream, 5, 1, 1)
	if err := survey.WriteWorst(folder, []*survey.Measurement{a, b}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(folder, "README"))
	if err != nil {
		t.Fatal(err)
	}
	for _, reason := range []string{"slowest:", "more-expensive:", "slow-beside-upstream:", "gap:", "-seed 1 -families plain -sizes 5"} {
		if !strings.Contains(string(text), reason) {
			t.Errorf("README does not have %q:\n%s", reason, text)
		}
	}
	f, err := os.Open(filepath.Join(folder, a.Name()+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, err := scenario.Read(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	pods := 0
	for _, p := range s.Snapshot.Pending {
		pods += len(p.Pods)
	}
	if pods == 0 || len(s.Snapshot.Pools) != 3 {
		t.Errorf("the scenario has %d pods and %d pools", pods, len(s.Snapshot.Pools))
	}
}
