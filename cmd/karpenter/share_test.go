// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/klauspost/compress/zstd"
	corev1 "k8s.io/api/core/v1"

	v1 "karpenter/api/v1"
	"karpenter/cmd/karpenter/record"
	"karpenter/cmd/karpenter/recording"
	"karpenter/cmd/karpenter/redact"
)

// TestRedactedFiles: a redacted snapshot and a redacted recording have no names of the
// recording, and plans cost what they cost with the names.
func TestRedactedFiles(t *testing.T) {
	t.Chdir(root)
	for _, file := range []string{shop, "docs/recorded/simulated.recording"} {
		objects, err := objectScheme()
		if err != nil {
			t.Fatal(err)
		}
		r, err := readRecording(file, objects)
		if err != nil {
			t.Fatal(err)
		}
		snapshot := filepath.Join(t.TempDir(), "situation.txt")
		text := runAs(t, nil, nil, "snapshot", "--redact", "--recording", file).stdout
		if err := os.WriteFile(snapshot, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		shared := filepath.Join(t.TempDir(), "shared.recording")
		lines, names := redacted(t, r, shared), namesIn(r)
		for where, all := range map[string]string{"snapshot": text, "recording": lines} {
			for _, word := range strings.FieldsFunc(all, func(c rune) bool { return c != '-' && !unicode.IsLetter(c) && !unicode.IsDigit(c) }) {
				if names[word] {
					t.Errorf("%s: the %s has the name %s", file, where, word)
				}
			}
		}
		was := costsOf(t, "--recording", file)
		if is := costsOf(t, "--snapshot", snapshot); is != was {
			t.Errorf("%s: a plan of the redacted snapshot costs %+v, and of the recording %+v", file, is, was)
		}
		if is := costsOf(t, "--recording", shared); is != was {
			t.Errorf("%s: a plan of the redacted recording costs %+v, and of the recording %+v", file, is, was)
		}
	}
}

// TestRedactedRecord: the redacted record of decisions names no NodePool and no reason.
func TestRedactedRecord(t *testing.T) {
	t.Chdir(root)
	ask := func(args ...string) string {
		return runAs(t, nil, nil, append([]string{"record", "--recording", "docs/recorded/simulated.recording", "-o", "json"}, args...)...).stdout
	}
	named, shared := ask(), ask("--redact")
	if !strings.Contains(named, `"nodePool": "general"`) || !strings.Contains(named, `"text": `) {
		t.Errorf("the record names nothing: %s", named)
	}
	if strings.Contains(shared, "general") || strings.Contains(shared, `"text": `) || strings.Count(shared, `"nodePool": "n`) != strings.Count(named, `"nodePool": "`) {
		t.Errorf("the redacted record is %s", shared)
	}
}

// TestRedactedRecordings: a redacted recording has the record of decisions and the baseline, with the same
// amounts, and with the pseudonyms of its other objects.
func TestRedactedRecordings(t *testing.T) {
	t.Chdir(root)
	file, shared := "docs/recorded/simulated.recording", filepath.Join(t.TempDir(), "shared.recording")
	objects, err := objectScheme()
	if err != nil {
		t.Fatal(err)
	}
	r, err := readRecording(file, objects)
	if err != nil {
		t.Fatal(err)
	}
	redacted(t, r, shared)
	ask := func(file string) (out struct{ Decisions, Costs, Savings any }, text string) {
		got := runAs(t, nil, nil, "record", "--recording", file, "-o", "json", "--redact")
		if err := json.Unmarshal([]byte(got.stdout), &out); err != nil {
			t.Fatalf("%v: %s%s", err, got.stdout, got.stderr)
		}
		return out, regexp.MustCompile(`"n\d+"|"bytes": \d+`).ReplaceAllString(got.stdout, "…")
	}
	was, before := ask(file)
	is, after := ask(shared)
	if was.Savings == nil || is.Savings == nil || before != after {
		t.Errorf("the record of the redacted recording is %s, and of the recording %s", after, before)
	}
	again, err := readRecording(shared, objects)
	if err != nil {
		t.Fatal(err)
	}
	claims, followed := map[string]bool{}, 0
	for _, c := range again.Changes {
		switch o := c.Object.(type) {
		case *v1.NodeClaim:
			claims[o.Name] = true
		case *corev1.ConfigMap:
			if _, err := record.Rewritten(o, func(d *record.Decision) *record.Decision {
				for _, name := range slices.Concat(d.Launched, d.Removed) {
					if followed++; !claims[name] {
						t.Errorf("the record follows %s, which is no NodeClaim of the redacted recording", name)
					}
				}
				if len(d.Reasons) > 0 {
					t.Errorf("the record has the reasons %v", d.Reasons)
				}
				return d
			}, func(o *record.Outcome) *record.Outcome { return o }); err != nil {
				t.Error(err)
			}
		}
	}
	if followed == 0 {
		t.Error("the record follows no NodeClaims")
	}
}

// redacted writes the recording as top --record --redact does, and returns what it has.
func redacted(t *testing.T, r *recording.Recording, file string) string {
	t.Helper()
	objects, err := objectScheme()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w, err := recording.NewWriter(&out, recording.Header{Title: "redacted", Started: r.Started}, objects)
	if err != nil {
		t.Fatal(err)
	}
	w.Rewrite = (&redact.Redactor{}).Object
	for _, c := range r.Changes {
		if err := w.Write(c); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	zip, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := zip.DecodeAll(out.Bytes(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(lines)
}

// namesIn returns the names of what is in the recording. The name default says nothing: it is
// also a value of labels that stay.
func namesIn(r *recording.Recording) map[string]bool {
	out := map[string]bool{}
	for _, c := range r.Changes {
		kind := c.Object.GetObjectKind().GroupVersionKind().Kind
		m, isMap := c.Object.(*corev1.ConfigMap)
		if kind == "CustomResourceDefinition" || kind == "Lease" || isMap && strings.HasPrefix(m.Name, "karpenter-") {
			continue
		}
		for _, name := range []string{c.Object.GetName(), c.Object.GetNamespace(), c.Object.GetLabels()["app"]} {
			if len(name) > 2 && name != "default" {
				out[name] = true
			}
		}
	}
	return out
}

type costs struct{ Before, After struct{ CostPerHour float64 } }

func costsOf(t *testing.T, args ...string) costs {
	t.Helper()
	got := runAs(t, nil, nil, append([]string{"plan", "-o", "json"}, args...)...)
	var out costs
	if err := json.Unmarshal([]byte(got.stdout), &out); err != nil || out.Before.CostPerHour == 0 {
		t.Fatalf("%v: %s%s", err, got.stdout, got.stderr)
	}
	return out
}

// TestDamagedRecordings: the error about a recording that cannot be read says what to do.
func TestDamagedRecordings(t *testing.T) {
	t.Chdir(root)
	whole, err := os.ReadFile(shop)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/2] ^= 0xff
	for name, text := range map[string][]byte{"cut": whole[:len(whole)/2], "flipped": flipped, "empty": nil, "other": []byte("hello")} {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"replay", file}, {"plan", "--recording", file}} {
			got := runAs(t, nil, nil, args...)
			if got.code != 1 || !strings.Contains(got.stderr, file) || !strings.Contains(got.stderr, "record again") {
				t.Errorf("%s of a file that is %s: exit code %d: %s", args[0], name, got.code, got.stderr)
			}
		}
	}
}

// TestForeignFiles: the error about a file of another kind says what the file is, and prints nothing of what
// is not text.
func TestForeignFiles(t *testing.T) {
	t.Chdir(root)
	recorded, err := os.ReadFile(shop)
	if err != nil {
		t.Fatal(err)
	}
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	if _, err := w.Write(recorded); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	text := runAs(t, nil, nil, "snapshot", "--recording", shop).stdout
	for _, x := range []struct {
		name, text              string
		asSnapshot, asRecording string
	}{
		{"recording", string(recorded), "use --recording FILE", ""},
		{"snapshot", text, "", "'karpenter plan --snapshot FILE'"},
		{"gzip", zipped.String(), "gunzip", "gunzip"},
		{"yaml", "---\napiVersion: v1\nkind: List\nitems: []\n", "karpenter savings -f FILE", "karpenter savings -f FILE"},
		{"json", "\ufeff{\"kind\": \"List\"", "karpenter savings -f FILE", "karpenter savings -f FILE"},
		{"utf16", "\xff\xfep\x00o\x00o\x00l\x00", "it is not text", "is not a recording"},
		{"zeros", strings.Repeat("\x00", 2000), "it is not text", "is not a recording"},
		{"cut rune", strings.Repeat("x", 511) + "é", "begins no line", "is not a recording"},
	} {
		file := filepath.Join(t.TempDir(), x.name)
		if err := os.WriteFile(file, []byte(x.text), 0o600); err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{x.asSnapshot, x.asRecording} {
			commands := [][][]string{
				{{"plan", "--snapshot", file}, {"ui", "--snapshot", file}, {"explain", "cluster", "--snapshot", file}},
				{{"replay", file}, {"record", "--recording", file}, {"ui", "--recording", file}},
			}[i]
			if want == "" {
				continue
			}
			for _, args := range commands {
				got := runAs(t, nil, nil, args...)
				if got.code != 1 || !strings.Contains(got.stderr, file) || !strings.Contains(got.stderr, want) || strings.ContainsFunc(got.stderr, func(c rune) bool { return c != '\n' && !unicode.IsPrint(c) }) {
					t.Errorf("%s of %s: exit code %d: %q, want %s", args[0], x.name, got.code, got.stderr, want)
				}
			}
		}
	}
}
