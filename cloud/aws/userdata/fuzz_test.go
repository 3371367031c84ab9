// SPDX-License-Identifier: Apache-2.0

package userdata

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
	corev1 "k8s.io/api/core/v1"

	awsv1 "karpenter/api/aws/v1"
)

// FuzzMIME: the parts of a message are those that went into it, whatever is in
// them, and Karpenter's is the last.
func FuzzMIME(f *testing.F) {
	for _, seed := range []string{
		"", "#!/bin/bash\necho hi", "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"b\"\n\n--b\nContent-Type: text/plain\n\nhi\n--b--",
		"Content-Type: text/x-shellscript\n\n#!/bin/bash", "Content-Type: multipart/mixed; boundary=b\n\n--b\nA: 1\nA: 2\n\n--//\n--//1\n--b--\n",
		"--//\n", "a: b\n--//--", "Content-Type: multipart/mixed\n\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m := (&situation{UserData: text, MaxPods: 5}).machine("AL2023")
		data, err := Render(m)
		if err != nil {
			return // the user gets the error
		}
		if strings.Contains(data.Text, "\r") {
			t.Fatal("carriage return")
		}
		got, err := split(data.Text)
		if err != nil {
			t.Fatalf("cannot be read again: %v\n%s", err, data.Text)
		}
		want, err := customParts(m.customPart(), func(text string) string { return got[0].header.Get("Content-Type") })
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != len(want)+1 || !strings.HasPrefix(got[len(want)].body, "# Karpenter Generated NodeConfig\n") {
			t.Fatalf("%d parts, of them %d of the user's:\n%s", len(got), len(want), data.Text)
		}
		for i := range want {
			if got[i].body != want[i].body || len(got[i].header)+len(want[i].header) > 0 && !reflect.DeepEqual(got[i].header, want[i].header) {
				t.Errorf("part %d became %q, was %q", i, got[i], want[i])
			}
		}
	})
}

// FuzzTOML: whatever settings a user writes, they stay TOML, what Karpenter
// decides is as it says, and tables that are none of its business are kept.
func FuzzTOML(f *testing.F) {
	for _, seed := range []string{
		"", "[settings.kubernetes]\nmax-pods = 20\nnews = 1", "[settings.network]\nhostname = 'a'\n[settings.kubernetes.node-labels]\n'a/b' = 'c'",
		"settings = 1", "settings.kubernetes = []", "a = 1979-05-27T07:32:00Z\nb = [1.5, nan, 'x']", "[[settings.kubernetes]]",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		data, err := Render((&situation{UserData: text, MaxPods: 5}).machine("Bottlerocket"))
		if err != nil {
			return
		}
		var before, after map[string]any
		if err := toml.Unmarshal([]byte(data.Text), &after); err != nil {
			t.Fatalf("is not TOML: %v\n%s", err, data.Text)
		}
		kubernetes := after["settings"].(map[string]any)["kubernetes"].(map[string]any)
		if kubernetes["max-pods"] != int64(5) || kubernetes["cluster-name"] != "prod" {
			t.Errorf("settings.kubernetes: %v", kubernetes)
		}
		if err := toml.Unmarshal([]byte(text), &before); err != nil {
			t.Fatal(err)
		}
		settings, _ := before["settings"].(map[string]any)
		for name := range settings {
			if _, ok := after["settings"].(map[string]any)[name]; !ok {
				t.Errorf("settings.%s is gone", name)
			}
		}
	})
}

// FuzzQuotes: no text of an object ends the quotes it is put between, so a
// script has as many as Karpenter wrote.
func FuzzQuotes(f *testing.F) {
	for _, seed := range []string{"", "a", "a'; reboot; '", "$(reboot)", "`reboot`", "a\nb", `a"b`, `\`} {
		f.Add(seed, seed)
	}
	usual, err := Render(quoting("a", "a"))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, value, threshold string) {
		data, err := Render(quoting(value, threshold))
		if err != nil {
			return
		}
		for _, special := range []string{"'", `"`, "$", "`", "\\", "\n"} {
			if strings.Count(data.Text, special) != strings.Count(usual.Text, special) {
				t.Errorf("%q changes the script:\n%s", special, data.Text)
			}
		}
	})
}

func quoting(value, threshold string) *Machine {
	m := (&situation{Labels: map[string]string{"a": value}}).machine("AL2")
	m.Taints = []corev1.Taint{{Key: "b", Value: value, Effect: corev1.TaintEffectNoSchedule}}
	text, err := json.Marshal(map[string]string{"memory.available": threshold})
	if err != nil {
		panic(err) // strings always can be
	}
	m.Kubelet = awsv1.KubeletConfiguration{"evictionHard": {Raw: text}}
	return m
}
