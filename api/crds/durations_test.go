// SPDX-License-Identifier: Apache-2.0

package crds_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"karpenter/api/crds"
)

// TestDurationsThatTheSchemaAdmits draws text from the patterns of durations in
// the CRDs: whatever they admit within 20 characters, Go can represent.
func TestDurationsThatTheSchemaAdmits(t *testing.T) {
	const longest = 20
	files, err := crds.Manifests()
	if err != nil {
		t.Fatal(err)
	}
	patterns := map[string]bool{}
	for _, manifest := range files {
		for _, m := range regexp.MustCompile(`maxLength: (\d+)\n +pattern: (\S*\{1,6\}h\S*)`).FindAllStringSubmatch(string(manifest), -1) {
			patterns[m[2]] = m[1] == fmt.Sprint(longest)
		}
	}
	if len(patterns) != 3 {
		t.Fatalf("patterns %v, want those of budgets, of grace periods, and of durations that may be Never", patterns)
	}
	draw := rand.New(rand.NewPCG(1, 2))
	for pattern, bounded := range patterns {
		if !bounded {
			t.Errorf("%s admits text of any length", pattern)
		}
		admits, admitted := regexp.MustCompile(pattern), 0
		for range 200_000 {
			text := ""
			for range 1 + draw.IntN(3) {
				for range 1 + draw.IntN(10) {
					text += string("0123456789999999"[draw.IntN(16)])
				}
				text += string("smh"[draw.IntN(3)])
			}
			if len(text) > longest || !admits.MatchString(text) {
				continue
			}
			admitted++
			d, err := time.ParseDuration(text)
			if err != nil {
				t.Fatalf("%s admits %s: %v", pattern, text, err)
			}
			// As Go writes it on a NodeClaim. Budgets are not copied anywhere.
			if again := d.String(); !admits.MatchString(again) && strings.Contains(pattern, "9}s") {
				t.Fatalf("%s admits %s, and not %s", pattern, text, again)
			}
		}
		if admitted < 1000 {
			t.Errorf("%s admits only %d of the texts drawn", pattern, admitted)
		}
	}
}
