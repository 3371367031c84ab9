// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"encoding/json"
	"testing"
	"time"

	v1 "karpenter/api/v1"
)

func TestNillableDurationJSON(t *testing.T) {
	for _, c := range []struct {
		in, out string
		want    time.Duration
		never   bool
	}{
		{in: `"72h"`, out: `"72h"`, want: 72 * time.Hour}, // spec 10/8
		{in: `"72h0m0s"`, out: `"72h0m0s"`, want: 72 * time.Hour},
		{in: `"1h30m5s"`, out: `"1h30m5s"`, want: time.Hour + 30*time.Minute + 5*time.Second}, // spec 10/4
		{in: `"0s"`, out: `"0s"`},
		{in: `"Never"`, out: `"Never"`, never: true}, // spec 10/4
	} {
		var d v1.NillableDuration
		if err := json.Unmarshal([]byte(c.in), &d); err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if (d.Duration == nil) != c.never || !c.never && *d.Duration != c.want {
			t.Errorf("%s: got %v", c.in, d.Duration)
		}
		if out, err := json.Marshal(d); err != nil || string(out) != c.out {
			t.Errorf("%s: encoded as %s, %v", c.in, out, err)
		}
		if out, _ := json.Marshal(d.ToUnstructured()); string(out) != c.out {
			t.Errorf("%s: unstructured %s", c.in, out)
		}
	}
}

// TestNillableDurationRejects covers the client's side of spec 10/4.
func TestNillableDurationRejects(t *testing.T) {
	for _, in := range []string{`"1hr"`, `"FooNever"`, `"never"`, `""`, `72`, `{}`, `"`} {
		var d v1.NillableDuration
		if err := json.Unmarshal([]byte(in), &d); err == nil {
			t.Errorf("%s: accepted as %v", in, d.Duration)
		}
	}
}

func TestNillableDurationInMemory(t *testing.T) {
	hour := time.Hour
	for _, c := range []struct {
		d    v1.NillableDuration
		want string
	}{
		{v1.NillableDuration{Duration: &hour}, `"1h0m0s"`},
		{v1.NillableDuration{}, `"Never"`},
	} {
		if got, err := json.Marshal(c.d); err != nil || string(got) != c.want {
			t.Errorf("got %s, %v; want %s", got, err, c.want)
		}
	}
}

// FuzzParseNillableDuration holds the law: what is accepted is written back
// unchanged and means the same when read again.
func FuzzParseNillableDuration(f *testing.F) {
	for _, seed := range []string{"Never", "72h", "1h30m5s", "-1s", "1hr", "", "\"", "1µs"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := v1.ParseNillableDuration(text)
		if err != nil {
			return
		}
		encoded, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		var again v1.NillableDuration
		if err := json.Unmarshal(encoded, &again); err != nil {
			t.Fatal(err)
		}
		if (d.Duration == nil) != (again.Duration == nil) || d.Duration != nil && *d.Duration != *again.Duration {
			t.Errorf("%q: %v became %v", text, d.Duration, again.Duration)
		}
		if d.ToUnstructured() != any(text) {
			t.Errorf("%q: written back as %q", text, d.ToUnstructured())
		}
	})
}
