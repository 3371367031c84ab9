// SPDX-License-Identifier: Apache-2.0

package script

import (
	"slices"
	"strconv"
	"strings"
)

// Shrink returns the smallest script it finds that still fails: lines are left
// out, then keys, then numbers are made smaller, as long as that helps or until
// fails was asked so many times. It returns s itself when nothing can go.
func Shrink(s *Script, fails func(*Script) bool, asks int) *Script {
	k := &shrinker{fails: fails, left: asks}
	lines := strings.Split(strings.TrimSuffix(s.String(), "\n"), "\n")
	for {
		before := strings.Join(lines, "\n")
		lines = k.lines(lines)
		lines = k.keys(lines)
		lines = k.numbers(lines)
		if strings.Join(lines, "\n") == before || k.left <= 0 {
			break
		}
	}
	if out, err := Parse(strings.Join(lines, "\n")); err == nil {
		return out
	}
	return s // not reached: every step was parsed
}

type shrinker struct {
	fails func(*Script) bool
	left  int
}

// still reports whether the lines are a script that fails.
func (k *shrinker) still(lines []string) bool {
	if k.left <= 0 {
		return false
	}
	s, err := Parse(strings.Join(lines, "\n"))
	if err != nil {
		return false
	}
	k.left--
	return k.fails(s)
}

// lines leaves out chunks of lines, from halves down to single ones.
func (k *shrinker) lines(lines []string) []string {
	for size := max(len(lines)/2, 1); size > 0; size /= 2 {
		for at := 0; at < len(lines); {
			shorter := slices.Delete(slices.Clone(lines), at, min(at+size, len(lines)))
			if k.still(shorter) {
				lines = shorter
			} else {
				at += size
			}
		}
	}
	return lines
}

// keys leaves out key=value pairs.
func (k *shrinker) keys(lines []string) []string {
	for i := range lines {
		words := strings.Fields(lines[i])
		for at := len(words) - 1; at > 0; at-- {
			if !strings.Contains(words[at], "=") {
				continue
			}
			shorter := slices.Delete(slices.Clone(words), at, at+1)
			if next := replaced(lines, i, shorter); k.still(next) {
				lines, words = next, shorter
			}
		}
	}
	return lines
}

// numbers halves counts.
func (k *shrinker) numbers(lines []string) []string {
	for i := range lines {
		words := strings.Fields(lines[i])
		for at, w := range words {
			for {
				smaller, ok := halved(w)
				if !ok {
					break
				}
				trial := slices.Clone(words)
				trial[at] = smaller
				next := replaced(lines, i, trial)
				if !k.still(next) {
					break
				}
				lines, words, w = next, trial, smaller
			}
		}
	}
	return lines
}

// halved returns a bare number, or that of count=, halved.
func halved(word string) (string, bool) {
	digits, isCount := strings.CutPrefix(word, "count=")
	n, err := strconv.Atoi(digits)
	if err != nil || n < 2 || !isCount && digits != word {
		return "", false
	}
	return strings.TrimSuffix(word, digits) + strconv.Itoa(n/2), true
}

func replaced(lines []string, i int, words []string) []string {
	out := slices.Clone(lines)
	out[i] = strings.Join(words, " ")
	return out
}
