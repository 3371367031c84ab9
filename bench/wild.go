package main

import (
	"context"
	"encoding/json"
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

// runWild draws problems and measures the engines on them.
func runWild(args []string) error {
	s := survey.Settings{Limits: survey.Limits{Memory: 8 << 30}}
	flags := flag.NewFlagSet("bench wild", flag.ContinueOnError)
	families := flags.String("families", strings.Join(wild.Families(), ","), "families to draw problems of")
	sizes := flags.String("sizes", "50,200", "numbers of Deployments")
	nodes := flags.String("nodes", "0,1000", "numbers of existing nodes; without any, half-empty clusters have as many as their pods need")
	flags.IntVar(&s.Draws, "draws", 1, "problems of each family and size")
	flags.Uint64Var(&s.Seed, "seed", 0, "seed of all problems; 0 draws one")
	limit := flags.Float64("limit", 20, "CPU seconds one decision can take")
	flags.BoolVar(&s.All, "all", false, "measure problems although a smaller one of the family has reached the limit")
	oursOnly := flags.Bool("ours-only", false, "leave out upstream")
	file := flags.String("json", "", "file to write the measurements to")
	if err := flags.Parse(args); err != nil {
		return err
	}
	for name := range strings.SplitSeq(*families, ",") {
		some := wild.Matching(name)
		if len(some) == 0 {
			return fmt.Errorf("-families: unknown family %q, want some of %s", name, strings.Join(wild.Families(), ","))
		}
		for _, f := range some {
			if !slices.Contains(s.Families, f) {
				s.Families = append(s.Families, f)
			}
		}
	}
	var err error
	if s.Sizes, err = numbers(*sizes); err != nil {
		return fmt.Errorf("-sizes: %w", err)
	}
	if s.Nodes, err = numbers(*nodes); err != nil {
		return fmt.Errorf("-nodes: %w", err)
	}
	s.Limits.CPU = time.Duration(*limit * float64(time.Second))
	if s.Seed == 0 {
		s.Seed = uint64(rand.Uint32())
	}
	s.Engines = []string{survey.Ours}
	if !*oursOnly {
		s.Engines = append(s.Engines, survey.Upstream)
	}
	fmt.Printf("seed %d (repeat this run with -seed %d)\n", s.Seed, s.Seed)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var all []*survey.Measurement
	err = s.Run(ctx, func(m *survey.Measurement) error {
		all = append(all, m)
		fmt.Println(m)
		return writeJSON(*file, all)
	})
	return err
}

func writeJSON(file string, all []*survey.Measurement) error {
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
