// SPDX-License-Identifier: Apache-2.0

package quantity_test

import (
	"strings"
	"testing"

	"karpenter/api/quantity"
)

func TestParseBoundsWhatItComputes(t *testing.T) {
	for _, text := range []string{"0", "1", "-5", "100m", "1.5", "4Gi", "1E", "1Ei", "1e3", "1E3", "1e-3", "1e100", "1e999", "9223372036854775807"} {
		if _, err := quantity.Parse(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{"", "1e-999999999", "1e999999999", "1E+1000", "1e-0000000001", "1e5.5", "x", strings.Repeat("1", 129)} {
		if q, err := quantity.Parse(text); err == nil {
			t.Errorf("%.40q: parsed as %s", text, q.String())
		}
	}
}

// FuzzParse finds text that is expensive to parse: the fuzzer reports an input
// that takes longer than a second.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"1", "-1.5Gi", "1e-999999999", "1E999", "1e5.5", "0.0000000001n", "9e999"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		q, err := quantity.Parse(text)
		if err != nil {
			return
		}
		if _, err := quantity.Parse(q.String()); err != nil && len(q.String()) <= quantity.MaxLength {
			t.Errorf("%q became %q, which is not parsed: %v", text, q.String(), err)
		}
	})
}
