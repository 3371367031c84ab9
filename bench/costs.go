// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"

	"karpenter/bench/judge"
	"karpenter/bench/ours"
	"karpenter/bench/workload"
	"karpenter/model"
)

// nodePrices are the amounts per node and hour, in dollars, that plans are compared
// at: none, a small volume with an address, an agent at $22 a month, and one at $200.
func nodePrices() []float64 { return []float64{0, 0.0055, 0.03, 0.274} }

// premiums are how much more than the cheapest plan found the points of the
// frontier may cost, as fractions.
func premiums() []float64 { return []float64{0, 0.005, 0.01, 0.02} }

// Cost is our plan for one workload at one price per node, or with one premium.
type Cost struct {
	Workload  string  `json:"workload"`
	NodePrice float64 `json:"nodePrice"` // dollars per hour
	Premium   float64 `json:"premium"`
	Frontier  bool    `json:"frontier"` // a point of the frontier
	Scheduled int     `json:"scheduled"`
	Nodes     int     `json:"nodes"`
	Price     float64 `json:"pricePerHour"` // of the instances alone
	Faults    int     `json:"faults"`
}

// total returns what the nodes cost with the amount for each.
func (c *Cost) total() float64 { return c.Price + c.NodePrice*float64(c.Nodes) }

// runCosts plans every workload asked for at all prices and premiums, and writes
// tables and a picture. Upstream's plans do not depend on prices per node: they are
// read from the results of the benchmark and charged the same amount for each node.
func runCosts(args []string) error {
	flags := flag.NewFlagSet("bench costs", flag.ContinueOnError)
	only := flags.String("only", "", "only workloads whose name matches this expression")
	short := flags.Bool("short", false, "only the workloads that take little time")
	results := flags.String("results", "results.json", "file with upstream's plans")
	out := flags.String("out", "costs.json", "file that the plans are written to; those of other workloads stay")
	picture := flags.String("picture", "", "file that the frontier is drawn into, as SVG")
	table := flags.Bool("table", false, "print the file, plan nothing")
	if err := flags.Parse(args); err != nil {
		return err
	}
	match, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	var all []Cost
	var theirs []*Result
	for file, into := range map[string]any{*out: &all, *results: &theirs} {
		if err := readJSON(file, into); err != nil {
			return err
		}
	}
	for _, name := range names() {
		if *table || !match.MatchString(name) || *short && !workload.Short(name) {
			continue
		}
		now, err := costsOf(name)
		if err != nil {
			return err
		}
		all = slices.DeleteFunc(all, func(c Cost) bool { return c.Workload == name })
		all = append(all, now...)
		if err := writeJSON(*out, all); err != nil {
			return err
		}
	}
	slices.SortStableFunc(all, func(a, b Cost) int { return slices.Index(names(), a.Workload) - slices.Index(names(), b.Workload) })
	dearer := costTable(os.Stdout, all, theirs)
	frontierTable(os.Stdout, all)
	if *picture != "" {
		f, err := os.Create(*picture)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := frontierPicture(f, all); err != nil {
			return err
		}
	}
	if dearer > 0 {
		return fmt.Errorf("in %d rows our nodes cost more than upstream's", dearer)
	}
	return nil
}

// costsOf plans one workload at all prices and premiums.
func costsOf(name string) ([]Cost, error) {
	w, err := load(name)
	if err != nil {
		return nil, err
	}
	var out []Cost
	plan := func(c Cost) error {
		fmt.Fprintf(os.Stderr, "%s: $%g per node, %g%% more for fewer\n", name, c.NodePrice, 100*c.Premium)
		e, err := ours.NewAt(w, ours.Terms{NodePrice: model.Price(c.NodePrice * float64(model.Dollar)), NodeCountPremium: c.Premium})
		if err != nil {
			return err
		}
		e.News(w)
		if err := e.Decide(); err != nil {
			return err
		}
		v := judge.New(w).Judge(e.Plan())
		c.Workload, c.Scheduled, c.Nodes, c.Price, c.Faults = name, v.Scheduled, v.Nodes, v.Price, v.Count
		out = append(out, c)
		return nil
	}
	for _, price := range nodePrices() {
		if err := plan(Cost{NodePrice: price, Premium: ours.DefaultTerms().NodeCountPremium}); err != nil {
			return nil, err
		}
	}
	for _, premium := range premiums() {
		if err := plan(Cost{Premium: premium, Frontier: true}); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// costTable prints our plans beside upstream's and returns in how many rows ours
// cost more.
func costTable(out io.Writer, all []Cost, results []*Result) (dearer int) {
	fmt.Fprintln(out, "| workload | $ per node and hour | our nodes | our $/h | upstream's nodes | upstream's $/h | upstream's / ours |")
	fmt.Fprintln(out, "|---|--:|--:|--:|--:|--:|--:|")
	for i := range all {
		c := &all[i]
		if c.Frontier {
			continue
		}
		at := slices.IndexFunc(results, func(r *Result) bool { return r.Workload == c.Workload && r.Engine == engineUpstream && r.Runs > 0 })
		if at < 0 || c.Faults > 0 {
			remark := "not measured"
			if c.Faults > 0 {
				remark = fmt.Sprintf("%d faults in ours", c.Faults)
			}
			fmt.Fprintf(out, "| %s | %g | %d | %.3f | | | %s |\n", c.Workload, c.NodePrice, c.Nodes, c.total(), remark)
			continue
		}
		r := results[at]
		theirs := r.PricePerHour + c.NodePrice*float64(r.Nodes)
		ratio := fmt.Sprintf("%.3f", theirs/c.total())
		switch {
		case r.Scheduled != c.Scheduled:
			ratio = fmt.Sprintf("%d pods, ours %d", r.Scheduled, c.Scheduled)
		case c.total() > theirs*(1+1e-9):
			dearer++
			ratio = "**" + ratio + "**"
		case theirs == 0:
			ratio = ""
		}
		fmt.Fprintf(out, "| %s | %g | %d | %.3f | %d | %.3f | %s |\n", c.Workload, c.NodePrice, c.Nodes, c.total(), r.Nodes, theirs, ratio)
	}
	return dearer
}

// frontierTable prints nodes and cost by premium.
func frontierTable(out io.Writer, all []Cost) {
	fmt.Fprintf(out, "\n| workload |")
	for _, p := range premiums() {
		fmt.Fprintf(out, " nodes at +%g%% | $/h |", 100*p)
	}
	fmt.Fprintf(out, "\n|---|")
	for range premiums() {
		fmt.Fprint(out, "--:|--:|")
	}
	fmt.Fprintln(out)
	for _, points := range frontiers(all) {
		fmt.Fprintf(out, "| %s |", points[0].Workload)
		for _, c := range points {
			fmt.Fprintf(out, " %d | %.3f |", c.Nodes, c.Price)
		}
		fmt.Fprintln(out)
	}
}

// frontiers returns the points of each workload in the order of premiums.
func frontiers(all []Cost) [][]Cost {
	var out [][]Cost
	for _, c := range all {
		switch n := len(out); {
		case !c.Frontier:
		case n > 0 && out[n-1][0].Workload == c.Workload:
			out[n-1] = append(out[n-1], c)
		default:
			out = append(out, []Cost{c})
		}
	}
	return out
}

// readJSON reads a file that need not be there.
func readJSON(file string, into any) error {
	text, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}
