// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
)

// entries logs something and returns what was written, line by line.
func entries(t *testing.T, o LogOptions, log func(logr.Logger)) []map[string]any {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log")
	o.Outputs, o.ErrorOutputs = []string{path}, []string{"stderr"}
	l, err := NewLog(o)
	if err != nil {
		t.Fatal(err)
	}
	log(l)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string]any
	for line := range strings.Lines(string(text)) {
		entry := map[string]any{}
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		out = append(out, entry)
	}
	return out
}

func TestLogEntry(t *testing.T) {
	got := entries(t, LogOptions{Level: "info", Commit: "abcdef1"}, func(l logr.Logger) {
		l.V(1).Info("not seen")
		l.Info("launched", "took", 1500*time.Millisecond)
		l.Error(errors.New("no"), "launch")
	})
	for _, e := range got {
		when, _ := e["time"].(string)
		if !regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(Z|[+-]\d{4})$`).MatchString(when) {
			t.Errorf("time %q is not ISO 8601", when)
		}
		delete(e, "time")
	}
	want := []map[string]any{
		{"level": "INFO", "logger": "controller", "message": "launched", "took": "1.5s", "commit": "abcdef1"},
		{"level": "ERROR", "logger": "controller", "message": "launch", "error": "no", "commit": "abcdef1"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestLogAtDebugHasCallersAndNoRepeatedEvents(t *testing.T) {
	got := entries(t, LogOptions{Level: "debug", Commit: "a"}, func(l logr.Logger) {
		l.WithName("events").V(1).Info("an event")
		l.WithName("events").WithValues("a", 1).V(1).Info("an event")
		l.WithName("events").Info("trouble")
		l.V(1).Info("detail")
	})
	var messages []string
	for _, e := range got {
		messages = append(messages, e["message"].(string))
		if caller, _ := e["caller"].(string); !strings.HasPrefix(caller, "manager/log_test.go:") {
			t.Errorf("%s: caller %q", e["message"], caller)
		}
	}
	if diff := cmp.Diff([]string{"trouble", "detail"}, messages); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestLogAtErrorIsQuiet(t *testing.T) {
	if got := entries(t, LogOptions{Level: "error", Commit: "a"}, func(l logr.Logger) { l.Info("seen by nobody") }); len(got) != 0 {
		t.Errorf("entries %v", got)
	}
}

func TestUnknownCommitIsLoggedOnce(t *testing.T) {
	got := entries(t, LogOptions{Level: "info"}, func(l logr.Logger) { l.Info("next") })
	if len(got) != 2 || !strings.HasPrefix(got[0]["message"].(string), "commit is not known") || got[1]["commit"] != nil {
		t.Errorf("entries %v", got)
	}
}

func TestLogSamples(t *testing.T) {
	got := entries(t, LogOptions{Level: "info", Commit: "a"}, func(l logr.Logger) {
		for range 1000 {
			l.Info("again")
		}
	})
	// A second may pass in between, which starts the count from scratch.
	if len(got) < 109 || len(got) > 300 {
		t.Errorf("%d of 1000 equal entries, want 109", len(got))
	}
}

func TestLogRejectsUnknownLevels(t *testing.T) {
	if _, err := NewLog(LogOptions{Level: "hello"}); err == nil {
		t.Error("no error for level hello")
	}
}
