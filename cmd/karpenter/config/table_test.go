// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"cmp"
	_ "embed"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/settings.md anew")

//go:embed testdata/upstream.txt
var upstreams string

// known returns the settings of upstream by flag, or by variable where there is
// no flag.
func known(t *testing.T) map[string]setting {
	t.Helper()
	all := map[string]setting{}
	for line := range strings.Lines(upstreams) {
		fields := strings.Fields(line)
		if line[0] == '#' {
			continue
		}
		if len(fields) != 3 {
			t.Fatalf("upstream.txt: %q", line)
		}
		for i := range fields {
			if fields[i] == "-" {
				fields[i] = ""
			}
		}
		s := setting{flag: fields[0], env: fields[1], preset: fields[2]}
		all[s.name()] = s
	}
	return all
}

// TestUpstreamsSettings: every setting of upstream's is there, with its
// variable and its default, but for those that are different on purpose. spec 50/1, spec 65/153.
func TestUpstreamsSettings(t *testing.T) {
	have := map[string]setting{}
	for _, s := range settings() {
		have[s.name()] = s
	}
	ours := map[string]string{
		"--ignore-dra-requests": "false", // and the gates of both drivers
		"--aws-feature-gates":   "NodeClassCEL=false,DRANVIDIAGPU=true,DRAEFA=true,RebootForRepair=false",
	}
	for name, want := range known(t) {
		want.preset = cmp.Or(ours[name], want.preset)
		got, ok := have[name]
		if !ok {
			t.Errorf("%s is missing", name)
		} else if got.env != want.env || got.preset != want.preset {
			t.Errorf("%s: variable %q and default %q, want %q and %q", name, got.env, got.preset, want.env, want.preset)
		}
	}
}

// TestSettingsTable writes the tables of docs/settings.md from the settings, and
// the rejections in it from what Parse says.
func TestSettingsTable(t *testing.T) {
	path := filepath.Join("..", "..", "..", "docs", "settings.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got := string(text)
	for mark, content := range map[string]string{
		"settings": settingsTable(known(t)), "gates": gateTable(features()), "aws gates": gateTable(amazonFeatures()), "refusal": refusal(t),
	} {
		if got, err = between(got, mark, content); err != nil {
			t.Fatal(err)
		}
	}
	if got == string(text) {
		return
	}
	if !*update {
		t.Fatal("docs/settings.md is not what the program takes: make generate")
	}
	if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
		t.Fatal(err)
	}
}

// between returns the text with the content in place of what is between the
// marks.
func between(text, mark, content string) (string, error) {
	begin, end := "<!-- "+mark+" -->\n", "<!-- end -->\n"
	head, rest, found := strings.Cut(text, begin)
	_, tail, ended := strings.Cut(rest, end)
	if !found || !ended {
		return "", fmt.Errorf("docs/settings.md has no lines %s and %s", begin, end)
	}
	return head + begin + content + end + tail, nil
}

func settingsTable(upstream map[string]setting) string {
	var out strings.Builder
	out.WriteString("| value of the chart | flag, variable | values | default | meaning |\n|---|---|---|---|---|\n")
	for _, g := range groups() {
		fmt.Fprintf(&out, "| **%s** | | | | |\n", g.title)
		for _, s := range g.members {
			var names []string
			for _, name := range []string{"--" + s.flag, s.env} {
				if strings.Trim(name, "-") != "" {
					names = append(names, "`"+name+"`")
				}
			}
			whose := ""
			if _, ok := upstream[s.name()]; !ok {
				whose = " *Ours.*"
			}
			fmt.Fprintf(&out, "| %s | %s | %s | %s | %s.%s |\n",
				inChart(s.chart), strings.Join(names, "<br>"), s.values, quotedUnlessEmpty(s.preset), sentence(s.meaning), whose)
		}
	}
	return out.String()
}

func gateTable(gates []gate) string {
	var out strings.Builder
	out.WriteString("| value of the chart | gate | default | what it does |\n|---|---|---|---|\n")
	for _, g := range gates {
		fmt.Fprintf(&out, "| %s | `%s` | `%t` | %s. |\n", inChart(g.chart), g.name, g.preset, sentence(g.meaning))
	}
	return out.String()
}

// sentence begins with a capital, unless it begins with a name.
func sentence(meaning string) string {
	if first, _, _ := strings.Cut(meaning, " "); strings.ContainsAny(first, "._") {
		return meaning
	}
	return strings.ToUpper(meaning[:1]) + meaning[1:]
}

func quotedUnlessEmpty(value string) string {
	if value == "" {
		return "none"
	}
	return "`" + strings.ReplaceAll(value, ",", "`, `") + "`"
}

// inChart quotes values of the chart; what else the chart takes is prose.
func inChart(value string) string {
	if value == "" || strings.Contains(value, " ") {
		return value
	}
	return "`" + value + "`"
}

// refusal returns the error for invalid settings.
func refusal(t *testing.T) string {
	t.Helper()
	_, err := Parse([]string{"--log-level=loud"}, func(name string) (string, bool) {
		value, ok := map[string]string{"METRICS_PORT": "http", "AMI_REFRESH_INTERVAL": "10s"}[name]
		return value, ok
	})
	if err == nil {
		t.Fatal("nothing is refused")
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "```\n$ METRICS_PORT=http AMI_REFRESH_INTERVAL=10s karpenter --log-level=loud\nkarpenter: %v\nRun 'karpenter controller --help' for the settings there are.\n```\n", err)
	return out.String()
}
