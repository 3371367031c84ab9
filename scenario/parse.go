// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"karpenter/model"
)

// Error is a mistake in a scenario: where it is and how to write it.
type Error struct {
	File string // "" = the text given to Parse or Read
	Line int
	Msg  string
}

// Error prints "file:line: message".
func (e *Error) Error() string {
	if e.File == "" {
		return fmt.Sprintf("line %d: %s", e.Line, e.Msg)
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg)
}

// Situation is what a decision is made of.
type Situation struct {
	Snapshot *model.Snapshot
	Policy   model.Policy
}

// Parse reads the situation of a text without include lines and drops the
// policy.
func Parse(r io.Reader) (*model.Snapshot, error) {
	s, err := Read(r, nil)
	if err != nil {
		return nil, err
	}
	return s.Snapshot, nil
}

// Read reads a situation. Files named by include lines are looked up in
// files; nil means that there are none.
func Read(r io.Reader, files fs.FS) (Situation, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return Situation{}, fmt.Errorf("read scenario: %w", err)
	}
	p := &reader{files: files}
	if err := p.read("", string(text)); err != nil {
		return Situation{}, err
	}
	return p.build()
}

// maxDepth is how deep files may include each other.
const maxDepth = 8

// reader collects the directives of a text.
type reader struct {
	files    fs.FS
	depth    int
	lines    []*directive
	previous *directive
}

// directives are the words a line may begin with.
func directives() []string {
	return []string{"include", "resources", "well-known", "kind", "devices", "selector", "type", "offer", "pool", "node", "daemonset", "pods", "pod", "group", "intent", "decide"}
}

func (p *reader) read(file, text string) error {
	p.previous = nil
	n := 0
	for line := range strings.SplitSeq(text, "\n") {
		n++
		tokens, err := tokenize(line)
		if err != nil {
			return &Error{file, n, err.Error()}
		}
		if len(tokens) == 0 {
			continue
		}
		if err := p.line(file, n, tokens, line); err != nil {
			return err
		}
	}
	return nil
}

func (p *reader) line(file string, n int, tokens []token, line string) error {
	word := tokens[0].value
	if tokens[0].hasKey || !slices.Contains(directives(), word) {
		if indented := line[0] == ' ' || line[0] == '\t'; indented && p.previous != nil {
			p.previous.add(tokens)
			return nil
		}
		return &Error{file, n, fmt.Sprintf("%.40q begins no line; a line begins with %s, or is indented to continue the one above",
			show([]atom{{text: firstWord(tokens[0])}}), strings.Join(directives(), ", "))}
	}
	d := &directive{file: file, line: n, word: word}
	d.add(tokens[1:])
	p.previous = d
	if word == "include" {
		return p.include(d)
	}
	p.lines = append(p.lines, d)
	return nil
}

func firstWord(t token) string {
	if t.hasKey {
		return t.key + "="
	}
	return t.value
}

func (p *reader) include(d *directive) error {
	name := d.name("the name of a file, as in include small.txt")
	if err := d.done("include"); err != nil {
		return err
	}
	if p.files == nil {
		return d.errorf("there are no files to include here")
	}
	if p.depth == maxDepth {
		return d.errorf("files include each other more than %d deep", maxDepth)
	}
	text, err := fs.ReadFile(p.files, name)
	if err != nil {
		return d.errorf("%v", err)
	}
	p.depth++
	err = p.read(name, string(text))
	p.depth--
	p.previous = nil
	return err
}

// directive is one line (with its continuations) being read. Its readers
// remember the first mistake; done reports it.
type directive struct {
	file    string
	line    int
	word    string
	words   []string
	options []token
	err     error
}

func (d *directive) add(tokens []token) {
	for _, t := range tokens {
		if t.hasKey {
			d.options = append(d.options, t)
		} else {
			d.words = append(d.words, t.value)
		}
	}
}

func (d *directive) errorf(format string, args ...any) error {
	return &Error{d.file, d.line, d.word + ": " + fmt.Sprintf(format, args...)}
}

func (d *directive) fail(err error) {
	var located *Error
	if d.err == nil && err != nil {
		if d.err = err; !errors.As(err, &located) {
			d.err = d.errorf("%v", err)
		}
	}
}

// done reports the first mistake, or a leftover that nothing has read; takes
// says in words what the directive understands.
func (d *directive) done(takes string) error {
	switch {
	case d.err != nil:
		return d.err
	case len(d.options) > 0:
		return d.errorf("unknown option %s=; it takes %s", d.options[0].key, takes)
	case len(d.words) > 0:
		return d.errorf("unknown word %q; it takes %s", d.words[0], takes)
	}
	return nil
}

// name takes the first word.
func (d *directive) name(what string) string {
	if len(d.words) == 0 {
		d.fail(fmt.Errorf("wants %s", what))
		return ""
	}
	w := d.words[0]
	d.words = d.words[1:]
	return w
}

// flag takes a word that stands alone.
func (d *directive) flag(word string) bool {
	i := slices.Index(d.words, word)
	if i < 0 {
		return false
	}
	d.words = slices.Delete(d.words, i, i+1)
	return true
}

// take takes the option key; writing it twice is a mistake.
func (d *directive) take(key string) (string, bool) {
	value, found := "", false
	d.options = slices.DeleteFunc(d.options, func(t token) bool {
		if t.key != key {
			return false
		}
		if found {
			d.fail(fmt.Errorf("%s= is written twice", key))
		}
		value, found = t.value, true
		return true
	})
	return value, found
}

// has reports whether the option key is still to be read.
func (d *directive) has(key string) bool {
	return slices.ContainsFunc(d.options, func(t token) bool { return t.key == key })
}

// text takes a plain option, or fallback when it is not there.
func (d *directive) text(key, fallback string) string {
	if v, ok := d.take(key); ok {
		return v
	}
	return fallback
}

// read takes an option through a parser, or fallback when it is not there.
func read[T any](d *directive, key string, fallback T, parse func(string) (T, error)) T {
	value, ok := d.take(key)
	if !ok {
		return fallback
	}
	v, err := parse(value)
	if err != nil {
		d.fail(fmt.Errorf("%s=: %w", key, err))
	}
	return v
}

func parseWhole(value string) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil {
		return 0, fmt.Errorf("invalid whole number %q", value)
	}
	return n, nil
}

func parseWhole32(value string) (int32, error) {
	n, err := strconv.ParseInt(value, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("invalid 32-bit whole number %q", value)
	}
	return int32(n), nil
}

func parseReal(value string) (float64, error) {
	f, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return 0, fmt.Errorf("invalid number %q", value)
	}
	return f, nil
}

func parseTime(value string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, value)
	if err != nil {
		return t, fmt.Errorf("invalid time %q; write one like 2026-01-01T12:00:00Z", value)
	}
	return t.UTC(), nil
}

// quantities takes the options that are resources, over base.
func (d *directive) quantities(x axis, base model.Resources) model.Resources {
	d.options = slices.DeleteFunc(d.options, func(t token) bool {
		name := resourceAlias(t.key)
		if !standing(name) {
			return false
		}
		i := x.Index(name)
		v, err := ParseQuantity(i, t.value)
		if err != nil {
			d.fail(fmt.Errorf("%s=: %w", t.key, err))
		}
		base = base.With(i, v)
		return true
	})
	return read(d, "resources", base, func(v string) (model.Resources, error) { return x.parse(base, v) })
}
