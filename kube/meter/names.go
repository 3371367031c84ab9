// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"strings"
	"unicode"
)

// Snake returns a CamelCase word as label values spell it: in lower case, with
// an underscore before each word but the first. PIDPressure is pid_pressure.
func Snake(camel string) string {
	var b strings.Builder
	letters := []rune(camel)
	for i, r := range letters {
		starts := i > 0 && unicode.IsUpper(r) &&
			(!unicode.IsUpper(letters[i-1]) || i+1 < len(letters) && unicode.IsLower(letters[i+1]))
		if starts {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
