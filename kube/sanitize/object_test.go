// SPDX-License-Identifier: Apache-2.0

package sanitize

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"karpenter/api/scheme"
	"karpenter/api/unreadable"
)

func reading(t testing.TB) *reader {
	t.Helper()
	objects := runtime.NewScheme()
	if err := scheme.AddToScheme(objects); err != nil {
		t.Fatal(err)
	}
	return newReader(objects)
}

const healthy = `{"apiVersion":"karpenter.sh/v1","kind":"NodePool","metadata":{"name":"p","uid":"1e9a0b1e-1e12-4e34-9e56-0123456789ab","annotations":{"a":"1e-999999999 apples"}},` +
	`"spec":{"limits":{"cpu":"1e3","memory":4},"unknown":"1e9","disruption":{"consolidateAfter":"72h"}}}`

// TestHealthyObjectsPassUnchanged covers what must not be touched.
func TestHealthyObjectsPassUnchanged(t *testing.T) {
	r := reading(t)
	for _, text := range []string{
		healthy,
		`{"apiVersion":"karpenter.sh/v1","kind":"NodePoolList","metadata":{"resourceVersion":"7"},"items":[` + healthy + `]}`,
		`{"apiVersion":"v1","kind":"Status","status":"Failure","message":"1e-999999999"}`,
		`{"apiVersion":"autoscaling/v1","kind":"Scale","spec":{"replicas":3}}`,
		`{"apiVersion":"karpenter.sh/v1","kind":"NodePool"`,
		`[]`, `null`, ``, `no JSON`,
	} {
		if got := string(r.sanitize([]byte(text))); got != text {
			t.Errorf("%s became %s", text, got)
		}
	}
}

// TestListKeepsItsMetadata covers a list of which one item is at fault.
func TestListKeepsItsMetadata(t *testing.T) {
	bad := strings.Replace(healthy, `"72h"`, `"99999999h"`, 1)
	out := reading(t).sanitize([]byte(`{"apiVersion":"karpenter.sh/v1","kind":"NodePoolList","metadata":{"resourceVersion":"7","continue":"c"},"items":[` + bad + `,` + healthy + `]}`))
	var list struct {
		Metadata struct{ ResourceVersion, Continue string }
		Items    []json.RawMessage
	}
	if err := json.Unmarshal(out, &list); err != nil {
		t.Fatal(err)
	}
	if list.Metadata.ResourceVersion != "7" || list.Metadata.Continue != "c" || len(list.Items) != 2 || string(list.Items[1]) != healthy {
		t.Errorf("the list became %s", out)
	}
	if got := string(list.Items[0]); strings.Contains(got, `"99999999h"`) || !strings.Contains(got, unreadable.AnnotationKey) || !strings.Contains(got, `"unknown":"1e9"`) {
		t.Errorf("the item became %s", got)
	}
}

// TestForgedMark covers a user who sets the annotation.
func TestForgedMark(t *testing.T) {
	forged := strings.Replace(healthy, `"a":`, `"`+unreadable.AnnotationKey+`":"spec: x","a":`, 1)
	if got := string(reading(t).sanitize([]byte(forged))); strings.Contains(got, unreadable.AnnotationKey) {
		t.Errorf("the mark stays: %s", got)
	}
}

// TestUnreadableStatusIsDropped covers a status that cannot be decoded: it is written by
// the program, and says nothing about what the user wants.
func TestUnreadableStatusIsDropped(t *testing.T) {
	text := strings.TrimSuffix(healthy, "}") + `,"status":{"nodes":"many","resources":{"cpu":"1e-999999999","memory":"1"}}}`
	got := string(reading(t).sanitize([]byte(text)))
	if strings.Contains(got, unreadable.AnnotationKey) || !strings.Contains(got, `"status":{"resources":{"memory":"1"}}`) {
		t.Errorf("became %s", got)
	}
}

// TestManyProblems covers an object that would not fit an annotation.
func TestManyProblems(t *testing.T) {
	var limits []string
	for i := range 1000 {
		limits = append(limits, `"example.com/`+strings.Repeat("x", 500)+strings.Repeat("y", i)+`":"1e-999999999"`)
	}
	text := strings.Replace(healthy, `"memory":4`, strings.Join(limits, ","), 1)
	var o struct {
		Metadata struct{ Annotations map[string]string }
	}
	if err := json.Unmarshal(reading(t).sanitize([]byte(text)), &o); err != nil {
		t.Fatal(err)
	}
	mark := o.Metadata.Annotations[unreadable.AnnotationKey]
	if len(mark) > 4096 || !strings.HasSuffix(mark, "\nand 990 more") {
		t.Errorf("the mark has %d bytes and ends %q", len(mark), mark[max(0, len(mark)-40):])
	}
}

func BenchmarkHealthy(b *testing.B) {
	r, raw := reading(b), []byte(`{"type":"MODIFIED","object":`+healthy+`}`)
	for b.Loop() {
		r.event(raw)
	}
}
