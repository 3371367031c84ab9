// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"time"

	"karpenter/bench/survey"
	"karpenter/bench/wild"
)

// wildChild measures one engine on one drawn problem, for a parent process.
func wildChild(text string) error {
	var a survey.ChildArguments
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return err
	}
	return survey.Child(a.Case, a.Engine, a.Limits, os.Stdout)
}

// wildSettings are what "bench wild" is asked for.
type wildSettings struct {
	survey.Settings
	json, from, out, picture string
}

func parseWild(args []string) (*wildSettings, error) {
	s := &wildSettings{}
	flags := flag.NewFlagSet("bench wild", flag.ContinueOnError)
	families := flags.String("families", strings.Join(wild.Families(), ","), "families to draw problems of, by name or by what the name begins with")
	sizes := flags.String("sizes", "50,200", "numbers of Deployments")
	nodes := flags.String("nodes", "0,1000", "numbers of existing nodes; half-empty clusters have as many as their pods need instead of 0")
	flags.IntVar(&s.Draws, "draws", 1, "problems of each family and size")
	flags.Uint64Var(&s.Seed, "seed", 0, "seed of all problems; 0 draws one")
	limit := flags.Float64("limit", 10, "CPU `seconds` one decision can take")
	memory := flags.Uint64("memory", 8192, "resident memory one decision can take, in `MiB`")
	flags.BoolVar(&s.All, "all", false, "measure problems although a smaller one of the family has reached a limit")
	oursOnly := flags.Bool("ours-only", false, "leave out upstream")
	flags.StringVar(&s.json, "json", "", "`file` to write the measurements to")
	flags.StringVar(&s.from, "from", "", "`file` of measurements to report on instead of measuring")
	flags.StringVar(&s.out, "out", "worst", "`folder` to write the worst problems to, as scenarios for karpenter plan --snapshot; none are written when empty")
	flags.StringVar(&s.picture, "picture", "", "`file` to draw CPU time against Deployments in, as SVG")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	for name := range strings.SplitSeq(*families, ",") {
		some := wild.Matching(name)
		if len(some) == 0 {
			return nil, fmt.Errorf("-families: unknown family %q, want some of %s", name, strings.Join(wild.Families(), ","))
		}
		for _, f := range some {
			if !slices.Contains(s.Families, f) {
				s.Families = append(s.Families, f)
			}
		}
	}
	var err error
	if s.Sizes, err = numbers(*sizes); err != nil {
		return nil, fmt.Errorf("-sizes: %w", err)
	}
	if s.Settings.Nodes, err = numbers(*nodes); err != nil {
		return nil, fmt.Errorf("-nodes: %w", err)
	}
	s.Limits = survey.Limits{CPU: time.Duration(*limit * float64(time.Second)), Memory: *memory << 20}
	if s.Seed == 0 {
		s.Seed = uint64(rand.Uint32())
	}
	s.Engines = []string{survey.Ours}
	if !*oursOnly {
		s.Engines = append(s.Engines, survey.Upstream)
	}
	return s, nil
}

// runWild draws problems, measures the engines on them and reports.
func runWild(args []string) error {
	s, err := parseWild(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	all, err := s.measurements()
	if err != nil {
		return err
	}
	fmt.Println()
	survey.Report(os.Stdout, all)
	if s.picture != "" {
		if err := writePicture(s.picture, all); err != nil {
			return err
		}
	}
	if s.out != "" {
		if err := survey.WriteWorst(s.out, all); err != nil {
			return err
		}
	}
	if n := survey.Faulty(all); n > 0 {
		return fmt.Errorf("%d invalid plans", n)
	}
	return nil
}

// measurements measures, or reads what was measured before.
func (s *wildSettings) measurements() ([]*survey.Measurement, error) {
	var all []*survey.Measurement
	if s.from != "" {
		text, err := os.ReadFile(s.from)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, &all); err != nil {
			return nil, fmt.Errorf("%s: %w", s.from, err)
		}
		return all, nil
	}
	fmt.Printf("seed %d; -seed %d draws the same problems again\n", s.Seed, s.Seed)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := s.Run(ctx, func(m *survey.Measurement) error {
		all = append(all, m)
		fmt.Println(m)
		return writeJSON(s.json, all)
	})
	if errors.Is(err, context.Canceled) {
		fmt.Println("interrupted")
		err = nil
	}
	fmt.Printf("load average: %s\n", loadAverage())
	return all, err
}

// loadAverage returns how busy the machine has been for 1, 5 and 15 minutes.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(text))[:3], ", ")
}

func writePicture(file string, all []*survey.Measurement) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	if err := survey.Picture(f, all, fmt.Sprintf("seed %d", all[0].Seed)); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

func writeJSON(file string, all any) error {
	if file == "" {
		return nil
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

func numbers(list string) ([]int, error) {
	var out []int
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("invalid number %q", text)
		}
		out = append(out, n)
	}
	return out, nil
}
