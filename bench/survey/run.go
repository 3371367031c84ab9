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
	"os"
	"os/exec"
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
	Scenario string // folder for the worst situations; "" = they are not written
	Command  []string
}

// Run measures every problem with every engine and hands each measurement to
// each.
func (s *Settings) Run(ctx context.Context, each func(*Measurement) error) error {
	for _, family := range s.Families {
		for _, nodes := range s.Nodes {
			for _, size := range s.Sizes {
				for draw := range s.Draws {
					c := wild.Case{Family: family, Deployments: size, Nodes: nodes, Draw: draw + 1, Seed: s.Seed}
					for _, engine := range s.Engines {
						m, err := s.measure(ctx, c, engine)
						if err != nil {
							return err
						}
						if err := each(m); err != nil {
							return err
						}
					}
				}
			}
		}
	}
	return nil
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
	m := &Measurement{Case: c, Engine: engine}
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
	Engine   string
	Limits   Limits
	Scenario string // file to write the situation into; "" = none
}

// lastLine returns the first line of what a crash says, which names its cause.
func lastLine(text []byte) string {
	line, _, _ := bytes.Cut(bytes.TrimSpace(text), []byte("\n"))
	return string(line)
}
