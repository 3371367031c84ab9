// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// token is one word of a line: a name, or an option when hasKey.
type token struct {
	key, value string
	hasKey     bool
}

// tokenize splits a line into its words, up to a comment.
func tokenize(line string) ([]token, error) {
	var out []token
	for {
		line = strings.TrimLeft(line, " \t\r")
		if line == "" || line[0] == '#' {
			return out, nil
		}
		var t token
		end := strings.IndexAny(line, " \t\r=\"")
		if end > 0 && line[end] == '=' {
			t.key, t.hasKey, line = line[:end], true, line[end+1:]
		}
		value, rest, err := word(line)
		if err != nil {
			return nil, err
		}
		t.value, line = value, rest
		out = append(out, t)
	}
}

// word reads a quoted string or a run without blanks.
func word(line string) (value, rest string, err error) {
	if strings.HasPrefix(line, `"`) {
		quoted, err := strconv.QuotedPrefix(line)
		if err != nil {
			return "", "", fmt.Errorf("the quote in %s is not closed", line)
		}
		rest = line[len(quoted):]
		if rest != "" && !strings.ContainsRune(" \t\r", rune(rest[0])) {
			return "", "", fmt.Errorf("%s is followed by %s: put the quotes around the whole value", quoted, rest)
		}
		value, err = strconv.Unquote(quoted)
		return value, rest, err
	}
	end := strings.IndexAny(line, " \t\r")
	if end < 0 {
		end = len(line)
	}
	if value = line[:end]; strings.Contains(value, `"`) {
		return "", "", fmt.Errorf("a quote in the middle of %s: put the quotes around the whole value", value)
	}
	return value, line[end:], nil
}

// outer writes s as a value of an option or as a name of a line.
func outer(s string) string {
	if s != "" && s[0] != '#' && onlyHas(s, "._-/:,*!~+@%()[]|;<>=") {
		return s
	}
	return strconv.Quote(s)
}

// outerName writes s as a name of a line, where an equals sign would make it
// an option.
func outerName(s string) string {
	if strings.Contains(s, "=") {
		return strconv.Quote(s)
	}
	return outer(s)
}

// onlyHas reports whether s consists of ASCII letters, digits and more.
func onlyHas(s, more string) bool {
	for _, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case strings.IndexByte(more, c) >= 0:
		default:
			return false
		}
	}
	return true
}

// atom is one element of a value: text, or a sign of the inner grammar.
type atom struct {
	text    string
	sign    byte // 0 for text
	literal bool // was quoted: never an alias, a keyword or a pattern
}

const signs = ",;|=:[]!~"

// atomize splits a value into atoms.
func atomize(s string) ([]atom, error) {
	var out []atom
	for s != "" {
		switch {
		case s[0] == ' ' || s[0] == '\t':
			s = s[1:]
		case strings.IndexByte(signs, s[0]) >= 0:
			out = append(out, atom{sign: s[0]})
			s = s[1:]
		case s[0] == '"':
			quoted, err := strconv.QuotedPrefix(s)
			if err != nil {
				return nil, fmt.Errorf("the quote in %s is not closed", s)
			}
			text, err := strconv.Unquote(quoted)
			if err != nil {
				return nil, err
			}
			out = append(out, atom{text: text, literal: true})
			s = s[len(quoted):]
		default:
			end := strings.IndexAny(s, signs+" \t\"")
			if end < 0 {
				end = len(s)
			}
			out = append(out, atom{text: s[:end]})
			s = s[end:]
		}
	}
	return out, nil
}

// inner writes s as one atom of a value.
func inner(s string) string {
	switch s {
	case "", keywordNone, keywordAny, wordOf, wordIn, wordWhere, wordNothing, wordAnti:
		return strconv.Quote(s)
	}
	if onlyHas(s, "._-/") && !strings.Contains(s, "..") {
		return s
	}
	return strconv.Quote(s)
}

// Keywords of values: an empty list, and a term that demands nothing.
const (
	keywordNone = "none"
	keywordAny  = "any"
)

// split cuts atoms at a sign, leaving brackets whole. No atoms are no parts.
func split(atoms []atom, at string) [][]atom {
	if len(atoms) == 0 {
		return nil
	}
	var out [][]atom
	depth, from := 0, 0
	for i, a := range atoms {
		switch {
		case a.sign == '[':
			depth++
		case a.sign == ']':
			depth--
		case a.sign != 0 && depth == 0 && strings.IndexByte(at, a.sign) >= 0:
			out = append(out, atoms[from:i])
			from = i + 1
		}
	}
	return append(out, atoms[from:])
}

// list splits a value at commas; the keyword none is the empty list.
func list(value string) ([][]atom, error) {
	atoms, err := atomize(value)
	if err != nil || isKeyword(atoms, keywordNone) {
		return nil, err
	}
	return split(atoms, ","), nil
}

func isKeyword(atoms []atom, word string) bool {
	return len(atoms) == 1 && atoms[0].text == word && !atoms[0].literal && atoms[0].sign == 0
}

// names reads a list of names; a name may be several words.
func names(value string) ([]string, error) {
	parts, err := list(value)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, p := range parts {
		words := make([]string, len(p))
		for i, a := range p {
			if words[i] = a.text; a.sign != 0 {
				words = nil
				break
			}
		}
		if len(words) == 0 {
			return nil, fmt.Errorf("%q is not a list such as a,b,c", value)
		}
		out = append(out, strings.Join(words, " "))
	}
	return out, nil
}

// show writes atoms back for an error message.
func show(atoms []atom) string {
	var b strings.Builder
	for i, a := range atoms {
		if i > 0 && a.sign == 0 && atoms[i-1].sign == 0 {
			b.WriteByte(' ')
		}
		if a.sign != 0 {
			b.WriteByte(a.sign)
		} else {
			b.WriteString(a.text)
		}
	}
	return b.String()
}

// innerList writes names as a comma-separated list, none when there are none.
func innerList(ss []string) string { return joined(ss, inner) }

// phraseList writes names that may be several words; such a name needs quotes
// on the outer layer only.
func phraseList(ss []string) string {
	return joined(ss, func(s string) string {
		words := strings.Split(s, " ")
		if len(words) > 1 && !slices.ContainsFunc(words, func(w string) bool { return inner(w) != w }) {
			return s
		}
		return inner(s)
	})
}

func joined(ss []string, write func(string) string) string {
	if len(ss) == 0 {
		return keywordNone
	}
	parts := make([]string, len(ss))
	for i, s := range ss {
		parts[i] = write(s)
	}
	return strings.Join(parts, ",")
}
