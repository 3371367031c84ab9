// SPDX-License-Identifier: Apache-2.0

// Package survey runs drawn problems through the engines and reports on them.
//
// Every measurement runs in a process of its own, so that one that does not end,
// or that needs too much memory, costs only itself.
package survey

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"slices"
	"time"

	"karpenter/bench/wild"
)

// Settings are what a run is asked for.
type Settings struct {
	Families []string
	Sizes    []int // numbers of Deployments
	Nodes    []int // numbers of existing nodes
	Draws    int   // problems of each family and size
	Seed     uint64
	Limits   Limits
	Engines  []string
	All      bool // also problems that are larger than one that reached a limit
}

// Run measures every problem with every engine and hands each measurement to
// each. Small problems come first. After an engine has reached a limit, larger
// problems of that family on as many nodes are skipped unless All is set.
func (s *Settings) Run(ctx context.Context, each func(*Measurement) error) error {
	over := map[string]string{}
	for c := range s.cases() {
		for _, engine := range s.Engines {
			key := fmt.Sprint(engine, c.Family, c.Nodes)
			m := &Measurement{Case: c, Engine: engine, Limit: s.Limits.CPU.Seconds(), Status: Skipped, Note: over[key]}
			if over[key] == "" {
				var err error
				if m, err = s.measure(ctx, c, engine); err != nil {
					return err
				}
				if (m.Status == Late || m.Status == Large) && !s.All {
					over[key] = fmt.Sprintf("%s with %d Deployments: %s", m.Status, c.Deployments, m.Note)
				}
			}
			if err := each(m); err != nil {
				return err
			}
		}
	}
	return nil
}

// cases yields the problems, those with few Deployments first.
func (s *Settings) cases() iter.Seq[wild.Case] {
	return func(yield func(wild.Case) bool) {
		for _, size := range slices.Sorted(slices.Values(s.Sizes)) {
			for _, nodes := range s.Nodes {
				for _, family := range s.Families {
					for draw := range s.Draws {
						if !yield(wild.Case{Family: family, Deployments: size, Nodes: nodes, Draw: draw + 1, Seed: s.Seed}) {
							return
						}
					}
				}
			}
		}
	}
}

// measure starts a child process. One that dies is a measurement, too.
func (s *Settings) measure(ctx context.Context, c wild.Case, engine string) (*Measurement, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(ChildArguments{Case: c, Engine: engine, Limits: s.Limits})
	if err != nil {
		return nil, err
	}
	// Busy machines give a process less than one core, and making the problem
	// takes time, too.
	patience := 10*s.Limits.CPU + 5*time.Minute
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, self, "wild-child", string(text))
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	m := &Measurement{Case: c, Engine: engine, Limit: s.Limits.CPU.Seconds()}
	switch {
	case ctx.Err() == context.DeadlineExceeded:
		m.Status, m.Note = Late, fmt.Sprintf("killed after %v", patience)
		return m, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		m.Status, m.Note = Crashed, fmt.Sprintf("%v: %s", err, lastLine(errs.Bytes()))
		return m, nil
	}
	if err := json.Unmarshal(out.Bytes(), m); err != nil {
		return nil, fmt.Errorf("%s with %s: %w", c.Name(), engine, err)
	}
	return m, nil
}

// ChildArguments are what a child process is told.
type ChildArguments struct {
	wild.Case
	Engine string
	Limits Limits
}

// lastLine returns the first line of what a crash says, which names its cause.
func lastLine(text []byte) string {
	line, _, _ := bytes.Cut(bytes.TrimSpace(text), []byte("\n"))
	return string(line)
}
