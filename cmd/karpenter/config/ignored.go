// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"
)

// ineffective records the settings that were accepted and have no effect.
func (c *Config) ineffective() {
	switch repair := c.Gates.NodeRepair; {
	case c.LegacyNodeRepair && !repair:
		c.ignore("legacy-node-repair has no effect without the feature gate NodeRepair")
	case c.Gates.TerminateFirstRepair && !repair:
		c.ignore("feature gate TerminateFirstRepair has no effect without NodeRepair")
	case c.Gates.TerminateFirstRepair && c.LegacyNodeRepair:
		c.ignore("feature gate TerminateFirstRepair has no effect with legacy-node-repair")
	}
	if c.AWS.RebootForRepair && (!c.Gates.NodeRepair || c.LegacyNodeRepair) {
		c.ignore("feature gate RebootForRepair has no effect without NodeRepair, or with legacy-node-repair")
	}
}

// undefined adds the most similar flag to the error about an unknown flag.
func undefined(err error, all []setting) error {
	_, name, found := strings.Cut(err.Error(), "flag provided but not defined: -")
	if !found {
		return err
	}
	flags := make([]string, 0, len(all))
	for _, s := range all {
		if s.flag != "" {
			flags = append(flags, s.flag)
		}
	}
	hint := meant(name, flags)
	if hint == "" {
		return err
	}
	return fmt.Errorf("%w%s", err, hint)
}

// meant returns "; did you mean x?" for the known name that differs from the
// given one in the fewest letters, and "" if none is similar.
func meant(given string, known []string) string {
	best, least := "", max(2, len(given)/4)+1
	for _, name := range known {
		if d := distance(strings.ToLower(given), strings.ToLower(name)); d < least {
			best, least = name, d
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// distance counts the letters to insert, delete or replace to get from a to b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j]+1, row[j+1]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
