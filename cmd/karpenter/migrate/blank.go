// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// blankMark is a comment that marks the place of a blank line while a tree is
// written.
const blankMark = "# migrate: a blank line is to stand here"

// spaced returns a copy of the tree. It adds a mark above each node that has a
// blank line above it in the body, even if the node has moved.
func (d *document) spaced(tree *yaml.Node) *yaml.Node {
	out := copied(tree)
	s := spacer{lines: strings.Split(strings.ReplaceAll(d.body, "\r", ""), "\n"), read: d.read}
	if tree.Kind == yaml.DocumentNode {
		s.walk(tree.Content[0], out.Content[0], true)
	} else {
		s.walk(tree, out, true)
	}
	return out
}

// unmarked replaces the marks with blank lines.
func unmarked(text string) string {
	var out strings.Builder
	blank := true // nothing is written yet
	for line := range strings.Lines(text) {
		switch {
		case strings.TrimSpace(line) != blankMark:
			out.WriteString(line)
			blank = strings.TrimSpace(line) == ""
		case !blank:
			out.WriteString("\n")
			blank = true
		}
	}
	return out.String()
}

// spacer knows which nodes were read from the lines of the body.
type spacer struct {
	lines []string
	read  map[*yaml.Node]bool
}

// walk adds marks to the fields and items below marked, a copy of n. With dash,
// the first of them will be on the same line as a dash, so it has no blank line
// above it.
func (s *spacer) walk(n, marked *yaml.Node, dash bool) {
	if n.Style&yaml.FlowStyle != 0 {
		return
	}
	step := 1
	if n.Kind == yaml.MappingNode {
		step = 2
	}
	for i := 0; i < len(n.Content); i += step {
		first := n.Content[i]
		sameLine := i == 0 && dash || i > 0 && n.Content[i-1].Line == first.Line
		if !sameLine && s.read[first] && s.blankAbove(first.Line) {
			marked.Content[i].HeadComment = strings.TrimSuffix(blankMark+"\n"+first.HeadComment, "\n")
		}
		last := i + step - 1
		s.walk(n.Content[last], marked.Content[last], n.Kind == yaml.SequenceNode || n.Content[last].Kind == yaml.SequenceNode)
	}
}

// nodes adds all nodes of a tree to the set.
func nodes(n *yaml.Node, into map[*yaml.Node]bool) map[*yaml.Node]bool {
	into[n] = true
	for _, child := range n.Content {
		nodes(child, into)
	}
	return into
}

// blankAbove reports whether a blank line stands above the line and its comments.
func (s *spacer) blankAbove(line int) bool {
	at := func(i int) string { return strings.TrimSpace(s.lines[i-1]) }
	for line--; line >= 1 && strings.HasPrefix(at(line), "#"); line-- {
	}
	return line >= 1 && at(line) == ""
}
