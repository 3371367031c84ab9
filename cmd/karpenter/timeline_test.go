// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "karpenter/api/v1"
	"karpenter/cmd/karpenter/recording"
)

// TestRecordedScaleUp draws the first scale-up of the recorded run as a timeline, and
// compares it with the one in docs/concepts.md.
func TestRecordedScaleUp(t *testing.T) {
	t.Chdir(root)
	c := connection{recording: shop}
	from, err := c.source(surroundings{stderr: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.play(from.Scheme)
	if err != nil {
		t.Fatal(err)
	}
	const path, begin, end = "docs/concepts.md", "```mermaid\ngantt\n", "```\n"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(page), begin)
	_, after, found := strings.Cut(rest, end)
	if !found {
		t.Fatalf("%s has no timeline", path)
	}
	compare(t, path, before+begin+scaleUp(t, r)+end+after)
}

// scaleUp returns what happens to the pods that are there when the first NodeClaims
// are created, and to these NodeClaims, as bars of a Gantt chart of Mermaid.
func scaleUp(t *testing.T, r *recording.Recording) string {
	t.Helper()
	var pending, created, launched, joined, registered, ready, running time.Time
	pods, ran := map[string]bool{}, map[string]bool{}
	claims, nodes := map[string]bool{}, map[string]bool{}
	seen := map[string]bool{}
	// last keeps when something has happened to the last of all.
	last := func(at *time.Time, change recording.Change, what string) {
		key := what + " " + change.Object.GetName()
		if !seen[key] {
			seen[key], *at = true, change.At
		}
	}
	for _, change := range r.Changes {
		name := change.Object.GetName()
		switch o := change.Object.(type) {
		case *corev1.Pod:
			if o.Namespace == "kube-system" {
				continue
			}
			if created.IsZero() {
				pods[name] = true
			}
			if pending.IsZero() {
				pending = change.At
			}
			if pods[name] && nodes[o.Spec.NodeName] && o.Status.Phase == corev1.PodRunning {
				last(&running, change, "running")
				ran[name] = true
			}
		case *v1.NodeClaim:
			if launched.IsZero() {
				claims[name] = true
			}
			if !claims[name] {
				continue
			}
			last(&created, change, "created")
			nodes[o.Status.NodeName] = o.Status.NodeName != ""
			for _, condition := range o.Status.Conditions {
				at := map[string]*time.Time{"Launched": &launched, "Registered": &registered, "Initialized": &ready}[condition.Type]
				if at != nil && condition.Status == "True" {
					last(at, change, condition.Type)
				}
			}
		case *corev1.Node:
			if len(seen) > 0 && registered.IsZero() {
				last(&joined, change, "joined")
			}
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "    title %d pods, %d nodes: seconds since the first pod\n    dateFormat x\n    axisFormat %%S\n", len(ran), len(claims))
	for _, bar := range []struct {
		text     string
		from, to time.Time
	}{
		{"pods are batched and planned,", pending, created},
		{"instances are launched,", created, launched},
		{"instances boot,", launched, joined},
		{"Nodes are registered,", joined, registered},
		{"Nodes are initialized,", registered, ready},
		{"pods start,", registered, running},
	} {
		if bar.from.IsZero() || !bar.to.After(bar.from) {
			t.Fatalf("%s: from %s to %s", bar.text, bar.from, bar.to)
		}
		fmt.Fprintf(&b, "    %s %.1f s :%d, %d\n", bar.text, bar.to.Sub(bar.from).Seconds(),
			bar.from.Sub(pending).Milliseconds(), bar.to.Sub(pending).Milliseconds())
	}
	return b.String()
}
