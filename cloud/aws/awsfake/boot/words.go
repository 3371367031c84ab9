// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"bufio"
	"fmt"
	"strings"
)

// words splits a command line as a shell does that expands nothing: by blanks,
// less quotes of both kinds and backslashes.
func words(line string) ([]string, error) {
	var all []string
	var word strings.Builder
	inWord, quote := false, rune(0)
	escaped := false
	for _, r := range line {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped, inWord = true, true
		case quote != 0:
			if r == quote {
				quote = 0
			} else {
				word.WriteRune(r)
			}
		case r == '\'' || r == '"':
			quote, inWord = r, true
		case r == ' ' || r == '\t' || r == '\n' || r == '\r':
			if inWord {
				all = append(all, word.String())
				word.Reset()
				inWord = false
			}
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if quote != 0 || escaped {
		return nil, fmt.Errorf("%q: a quote is not closed", line)
	}
	if inWord {
		all = append(all, word.String())
	}
	return all, nil
}

func newLineReader(text string) *bufio.Reader { return bufio.NewReader(strings.NewReader(text)) }
