// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// names are what users get to see of the program, as its code has it.
type names struct {
	events     map[string]bool // reasons of events
	conditions map[string]bool // types of conditions
	texts      map[string]bool // all strings
	metrics    map[string]bool
	alerts     map[string]bool
}

func has(all ...string) map[string]bool {
	out := map[string]bool{}
	for _, s := range all {
		out[s] = true
	}
	return out
}

// codeNames reads the code, the table of metrics, and the alerts.
func codeNames(t *testing.T) names {
	t.Helper()
	out := names{events: has(), conditions: has(), texts: has(), metrics: has("leader_election_master_status"), alerts: has()}
	files := sources(t)
	constants := map[string]string{}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool { readStrings(n, constants, out.texts); return true })
	}
	for name, value := range constants {
		if strings.HasSuffix(name, "Condition") {
			out.conditions[value] = true
		}
	}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool { readEvents(n, constants, out.events); return true })
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z0-9_]+)` \\|").FindAllStringSubmatch(read(t, "docs/metrics.md"), -1) {
		out.metrics[m[1]] = true
	}
	for _, m := range regexp.MustCompile(`(?m)^ +- alert: (\w+)$`).FindAllStringSubmatch(read(t, "deploy/observability/alerts.yaml"), -1) {
		out.alerts[m[1]] = true
	}
	if len(out.events) < 35 || len(out.conditions) < 20 || len(out.metrics) < 90 || len(out.alerts) < 10 {
		t.Fatalf("the code is not understood: %d events, %d conditions, %d metrics, %d alerts",
			len(out.events), len(out.conditions), len(out.metrics), len(out.alerts))
	}
	return out
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// sources parses the code of the program, without tests and simulations.
func sources(t *testing.T) []*ast.File {
	t.Helper()
	var out []*ast.File
	fset := token.NewFileSet()
	for _, room := range []string{"api", "cloud", "cmd/karpenter", "control", "kube", "model", "solve"} {
		err := filepath.WalkDir(filepath.Join(root, room), func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() && strings.HasSuffix(entry.Name(), "fake") {
				return filepath.SkipDir
			}
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			f, err := parser.ParseFile(fset, path, nil, 0)
			out = append(out, f)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// readStrings adds the constants and strings of a node.
func readStrings(n ast.Node, constants map[string]string, texts map[string]bool) {
	switch n := n.(type) {
	case *ast.ValueSpec:
		for i, value := range n.Values {
			if text, ok := literal(value); ok && i < len(n.Names) {
				constants[n.Names[i].Name] = text
			}
		}
	case *ast.BasicLit:
		if text, ok := literal(n); ok {
			texts[text] = true
		}
	}
}

func literal(e ast.Expr) (string, bool) {
	l, ok := e.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(l.Value)
	return text, err == nil
}

// valueOf returns the string of a literal or of a constant.
func valueOf(e ast.Expr, constants map[string]string) string {
	switch e := e.(type) {
	case *ast.Ident:
		return constants[e.Name]
	case *ast.SelectorExpr:
		return constants[e.Sel.Name]
	}
	text, _ := literal(e)
	return text
}

// readEvents adds the reasons of the events that a node makes: a literal with a
// Reason that is no condition's, an assignment to the Reason of a variable e, or
// a call in which the reason follows the type of the event.
func readEvents(n ast.Node, constants map[string]string, events map[string]bool) {
	add := func(e ast.Expr) {
		if text := valueOf(e, constants); regexp.MustCompile(`^[A-Z]\w+$`).MatchString(text) {
			events[text] = true
		}
	}
	switch n := n.(type) {
	case *ast.CompositeLit:
		fields := map[string]ast.Expr{}
		for _, e := range n.Elts {
			if pair, ok := e.(*ast.KeyValueExpr); ok {
				if key, ok := pair.Key.(*ast.Ident); ok {
					fields[key.Name] = pair.Value
				}
			}
		}
		if fields["Reason"] != nil && fields["Status"] == nil && (fields["Type"] != nil || fields["Object"] != nil) {
			add(fields["Reason"])
		}
	case *ast.AssignStmt:
		for i, to := range n.Lhs {
			if field, ok := to.(*ast.SelectorExpr); ok && field.Sel.Name == "Reason" && len(n.Rhs) == len(n.Lhs) {
				if variable, ok := field.X.(*ast.Ident); ok && variable.Name == "e" {
					add(n.Rhs[i])
				}
			}
		}
	case *ast.CallExpr:
		for i, argument := range n.Args[:max(len(n.Args)-1, 0)] {
			if isEventType(argument) {
				add(n.Args[i+1])
			}
		}
	}
}

// isEventType recognizes corev1.EventTypeNormal and the like, and shorter names
// of them.
func isEventType(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.SelectorExpr:
		return strings.HasPrefix(e.Sel.Name, "EventType")
	case *ast.Ident:
		return e.Name == "normal" || e.Name == "warning"
	}
	return false
}

const troubleshooting = "docs/troubleshooting.md"

// TestTroubleshootingNamesWhatThereIs looks up everything that
// docs/troubleshooting.md names: each word in CamelCase, metric and log line.
func TestTroubleshootingNamesWhatThereIs(t *testing.T) {
	have := codeNames(t)
	page := read(t, troubleshooting)
	others := has("Custom", "ReadWriteOncePod")
	for _, of := range []string{"UnauthorizedOperation", "AccessDenied", "RequestLimitExceeded", "Throttling"} {
		others[of] = true // codes of AWS's
	}
	checked := 0
	for _, m := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(page, -1) {
		word := m[1]
		switch {
		case regexp.MustCompile(`^(karpenter|operator|aws_sdk_go|leader)_[a-z_]+$`).MatchString(word):
			if !have.metrics[word] {
				t.Errorf("there is no metric %s", word)
			}
		case regexp.MustCompile(`^Karpenter[A-Z]\w+$`).MatchString(word):
			if !have.alerts[word] {
				t.Errorf("there is no alert %s", word)
			}
		case regexp.MustCompile(`^[A-Z][A-Za-z0-9]+$`).MatchString(word):
			if !have.texts[word] && !others[word] {
				t.Errorf("nothing in the code is called %s", word)
			}
		default:
			continue
		}
		checked++
	}
	for _, m := range regexp.MustCompile(`(?i)\b(event|condition)s? `+"`([A-Z]\\w+)`").FindAllStringSubmatch(page, -1) {
		kinds := map[string]map[string]bool{"event": have.events, "condition": have.conditions}
		if !kinds[strings.ToLower(m[1])][m[2]] {
			t.Errorf("there is no %s %s", strings.ToLower(m[1]), m[2])
		}
	}
	lines := strings.Join(slices.Sorted(maps.Keys(have.texts)), "\n")
	for _, m := range regexp.MustCompile(`(?i)\blog(?: line| says)? *\n?"([^"]+)"`).FindAllStringSubmatch(page, -1) {
		checked++
		if text := strings.Join(strings.Fields(m[1]), " "); !strings.Contains(lines, text) {
			t.Errorf("no log line says %q", text)
		}
	}
	if checked < 150 {
		t.Errorf("only %d names", checked)
	}
}

// TestTroubleshootingIsWhole has the page name every event, condition and alert.
func TestTroubleshootingIsWhole(t *testing.T) {
	have := codeNames(t)
	page := read(t, troubleshooting)
	_, table, _ := strings.Cut(page, "\n## All events\n")
	delete(have.conditions, "Ready")
	delete(have.conditions, "LimitedByQuotas") // never written
	for what, all := range map[string]map[string]bool{"event": have.events, "condition": have.conditions} {
		for name := range all {
			if !strings.Contains(table, "`"+name+"`") {
				t.Errorf("the tables at the end of %s lack the %s %s", troubleshooting, what, name)
			}
		}
	}
	for name := range have.alerts {
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("%s does not say what to do about the alert %s", troubleshooting, name)
		}
	}
}

// TestRunbooks follows the link of each alert to the heading under which the
// alert is named.
func TestRunbooks(t *testing.T) {
	page := pages(t)[troubleshooting]
	have := anchors(page)
	alerts := strings.Split(read(t, "deploy/observability/alerts.yaml"), "- alert: ")[1:]
	for _, alert := range alerts {
		name, rest, _ := strings.Cut(alert, "\n")
		m := regexp.MustCompile(`(?m)^ +runbook_url: ` + troubleshooting + `#(\S+)$`).FindStringSubmatch(rest)
		if m == nil || !have[m[1]] {
			t.Errorf("alert %s: no runbook_url that leads to a heading of %s: %v", name, troubleshooting, m)
			continue
		}
		for _, section := range strings.Split(page.Text, "\n## ")[1:] {
			heading, _, _ := strings.Cut(section, "\n")
			if strings.ReplaceAll(strings.ToLower(heading), " ", "-") == m[1] && !strings.Contains(section, "`"+name+"`") {
				t.Errorf("alert %s leads to %q, which does not speak of it", name, heading)
			}
		}
	}
}
