// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// document is one YAML document of a file.
type document struct {
	file  string
	line  int    // lines of the file before the body
	mark  string // the line with "---" before it, or ""
	body  string
	tree  *yaml.Node          // the document node; nil when Karpenter is not mentioned
	read  map[*yaml.Node]bool // the nodes of tree that were read from the body
	style style
	// rewritten means that the tree was changed, so that the body has to be
	// written from it.
	rewritten bool
	expanded  bool         // the aliases of the body are written out in the tree
	added     []*yaml.Node // objects that follow this document
	renames   []rename     // in the body, when the tree is not rewritten
}

// split cuts a file at its "---" and "..." lines, which no scalar can contain.
func split(file, content string) []*document {
	d := &document{file: file}
	docs := []*document{d}
	if rest, marked := strings.CutPrefix(content, "\ufeff"); marked {
		d.mark, content = "\ufeff", rest
	}
	n := 0
	for line := range strings.Lines(content) {
		n++
		if !strings.HasPrefix(line, "---") && !strings.HasPrefix(line, "...") || strings.TrimLeft(line[3:], " \t\r\n") == line[3:] && line[3:] != "" {
			d.body += line
			continue
		}
		d = &document{file: file, line: n, mark: line}
		if trimmed := strings.TrimSpace(line[3:]); trimmed != "" && !strings.HasPrefix(trimmed, "#") {
			d.mark, d.body, d.line = line[:3], line[3:], n-1
		}
		docs = append(docs, d)
	}
	return docs
}

var (
	errorLine = regexp.MustCompile(`line (\d+):? ?`)
	template  = regexp.MustCompile(`\{\{.*?\}\}|\{%.*?%\}`)
	marker    = regexp.MustCompile(`^\s*# ` + regexp.QuoteMeta(byHandMark) + `(.*)`)
)

// mentioned reports whether the document can be about Karpenter.
func (d *document) mentioned() bool {
	for line := range strings.Lines(d.body) {
		if trimmed := strings.TrimSpace(line); !strings.HasPrefix(trimmed, "#") && !strings.HasPrefix(trimmed, "%") && strings.Contains(strings.ToLower(line), "karpenter") {
			return true
		}
	}
	return false
}

// values matches the top-level keys of values files for older charts. Such
// files need not mention Karpenter.
var values = regexp.MustCompile(`(?m)^(settings|aws|clusterName|clusterEndpoint|provisioners|awsNodeTemplates):`)

// suspect parses the body if it may be a values file of Karpenter's chart. A
// body that cannot be parsed is ignored.
func (d *document) suspect() {
	var tree yaml.Node
	if !values.MatchString(d.body) || yaml.Unmarshal([]byte(d.body), &tree) != nil || len(tree.Content) == 0 || inKeys(&tree) {
		return
	}
	root := tree.Content[0]
	aws := at(root, "aws")
	if text(root, "kind") == "" && (at(root, "settings", "aws") != nil || at(root, "settings", "interruptionQueueName") != nil || has(aws, "defaultInstanceProfile") ||
		at(root, "clusterName") != nil && at(root, "clusterEndpoint") != nil || has(root, "awsNodeTemplates")) {
		d.tree, d.style, d.read = &tree, styleOf(root), nodes(&tree, map[*yaml.Node]bool{})
	}
}

// parse reads the body. Its errors name the file and the line.
func (d *document) parse() error {
	if !d.mentioned() {
		d.suspect()
		return nil
	}
	if !utf8.ValidString(d.body) {
		return fmt.Errorf("%s:%d: not UTF-8; save it as UTF-8", d.file, d.line+1)
	}
	var tree yaml.Node
	err := yaml.Unmarshal([]byte(d.body), &tree)
	if where := template.FindStringIndex(d.body); where != nil && (err != nil || inKeys(&tree)) {
		line := d.line + 1 + strings.Count(d.body[:where[0]], "\n")
		return fmt.Errorf("%s:%d: %s is a template, not YAML; render it first, as in: helm template CHART | karpenter migrate -",
			d.file, line, d.body[where[0]:where[1]])
	}
	if err != nil {
		return d.located(err)
	}
	if len(tree.Content) == 0 {
		return nil
	}
	d.tree, d.style, d.read = &tree, styleOf(tree.Content[0]), nodes(&tree, map[*yaml.Node]bool{})
	return nil
}

// inKeys reports whether a mapping has keys that are not scalars. YAML reads an
// unquoted {{ … }} as one.
func inKeys(n *yaml.Node) bool {
	for i := 0; n.Kind == yaml.MappingNode && i < len(n.Content); i += 2 {
		if n.Content[i].Kind != yaml.ScalarNode {
			return true
		}
	}
	return slices.ContainsFunc(n.Content, inKeys)
}

// located adds the name of the file, and the line in it, to an error of the
// YAML library.
func (d *document) located(err error) error {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 1
	if m := errorLine.FindStringSubmatch(message); m != nil {
		line, _ = strconv.Atoi(m[1]) // the pattern matches only digits
		message = strings.Replace(message, m[0], "", 1)
	}
	return fmt.Errorf("%s:%d: not YAML: %s", d.file, d.line+line, message)
}

// text returns the migrated document, with its "---".
func (d *document) text() (string, error) {
	body := d.body
	switch {
	case d.rewritten:
		for _, r := range d.renames {
			r.apply()
		}
		var err error
		if body, err = d.rendered(d.tree); err != nil {
			return "", err
		}
	case len(d.renames) > 0:
		var err error
		if body, err = d.spliced(); err != nil {
			return "", err
		}
	}
	out := d.mark
	if d.rewritten && d.mark == "---" {
		out += "\n"
	}
	out += body
	for _, object := range d.added {
		body, err := d.rendered(object)
		if err != nil {
			return "", err
		}
		if !strings.HasSuffix(out, "\n") {
			out += "\n"
		}
		out += d.newline("---\n") + body
	}
	return out, nil
}

// newline returns the text with the line endings of the document.
func (d *document) newline(text string) string {
	if strings.Contains(d.body, "\r\n") {
		return strings.ReplaceAll(text, "\n", "\r\n")
	}
	return text
}

// rendered writes a tree with its blank lines, or without them if they would
// change the meaning.
func (d *document) rendered(tree *yaml.Node) (string, error) {
	if out, err := render(d.spaced(tree), d.style); err == nil {
		if out = unmarked(out); means(out, tree) == nil {
			return d.newline(out), nil
		}
	}
	out, err := render(tree, d.style)
	if err == nil {
		if err = means(out, tree); err == nil {
			return d.newline(out), nil
		}
	}
	return "", fmt.Errorf("%s:%d: cannot be rewritten with its comments: %w; move comments out of lists and braces", d.file, d.line+1, err)
}

// means returns an error unless the text parses as the tree: with some
// comments, the YAML library writes text that has another meaning.
func means(text string, tree *yaml.Node) error {
	var back yaml.Node
	if err := yaml.Unmarshal([]byte(text), &back); err != nil {
		return err
	}
	if tree.Kind != yaml.DocumentNode {
		tree = &yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{tree}}
	}
	if !same(tree, &back) {
		return errors.New("it would mean something else")
	}
	return nil
}

// rename replaces a scalar.
type rename struct {
	node *yaml.Node
	to   string
}

// spliced returns the body with the scalars of d.renames replaced. All other
// bytes are unchanged.
func (d *document) spliced() (string, error) {
	lines := strings.SplitAfter(d.body, "\n")
	slices.SortFunc(d.renames, func(a, b rename) int {
		return (b.node.Line-a.node.Line)*1_000_000 + b.node.Column - a.node.Column
	})
	for _, r := range d.renames {
		old := r.node.Value
		line := lines[r.node.Line-1]
		start := 0
		for range r.node.Column - 1 {
			_, size := utf8.DecodeRuneInString(line[start:])
			start += size
		}
		to := r.to
		if r.node.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 && to != `""` {
			start++
		} else if to == `""` && r.node.Style != 0 {
			start, to = start+1, ""
		}
		if !strings.HasPrefix(line[start:], old) {
			return "", fmt.Errorf("%s:%d: cannot find %s where it should be; write it without tags and escapes", d.file, d.line+r.node.Line, old)
		}
		lines[r.node.Line-1] = line[:start] + to + line[start+len(old):]
	}
	body := strings.Join(lines, "")
	for _, r := range d.renames {
		r.apply()
	}
	var back yaml.Node
	if err := yaml.Unmarshal([]byte(body), &back); err != nil || !same(d.tree, &back) {
		return "", fmt.Errorf("%s:%d: labels cannot be renamed in place; write the document in block style", d.file, d.line+1)
	}
	return body, nil
}
