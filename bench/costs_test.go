// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"io"
	"strings"
	"testing"
)

// TestCostTable charges both engines for each node and counts the rows in which
// ours costs more.
func TestCostTable(t *testing.T) {
	ours := []Cost{
		{Workload: "a", Scheduled: 5, Nodes: 10, Price: 1},
		{Workload: "a", NodePrice: 0.5, Scheduled: 5, Nodes: 10, Price: 1},
		{Workload: "a", Frontier: true, Nodes: 10, Price: 1},
		{Workload: "b", NodePrice: 9, Scheduled: 4, Nodes: 10, Price: 1},
	}
	theirs := []*Result{
		{Workload: "a", Engine: engineUpstream, Scheduled: 5, Nodes: 2, PricePerHour: 2, Runs: 1},
		{Workload: "b", Engine: engineUpstream, Scheduled: 5, Nodes: 2, PricePerHour: 2, Runs: 1},
	}
	var out strings.Builder
	if n := costTable(&out, ours, theirs); n != 1 {
		t.Errorf("%d rows cost more, want 1", n)
	}
	for _, want := range []string{
		"| a | 0 | 10 | 1.000 | 2 | 2.000 | 2.000 |", "| a | 0.5 | 10 | 6.000 | 2 | 3.000 | **0.500** |", "| b | 9 | 10 | 91.000 | 2 | 20.000 | 5 pods, ours 4 |",
	} {
		if !strings.Contains(out.String(), want+"\n") {
			t.Errorf("no row %s in\n%s", want, out.String())
		}
	}
}

// TestFrontierPicture draws one panel for each workload, as XML that can be read.
func TestFrontierPicture(t *testing.T) {
	var out strings.Builder
	all := []Cost{
		{Workload: "a<b", Frontier: true, Nodes: 10, Price: 1}, {Workload: "a<b", Frontier: true, Premium: 0.01, Nodes: 5, Price: 1.01},
		{Workload: "c", Nodes: 3}, {Workload: "c", Frontier: true},
	}
	if err := frontierPicture(&out, all); err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(strings.NewReader(out.String()))
	circles := 0
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "circle" {
			circles++
		}
	}
	if circles != 3 {
		t.Errorf("%d points, want 3", circles)
	}
}
