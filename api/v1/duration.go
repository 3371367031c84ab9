// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"encoding/json"
	"fmt"
	"time"
)

// Never is the text of a NillableDuration that is switched off.
const Never = "Never"

// NillableDuration is a duration that may be switched off. In JSON it is a
// string: "Never", or a Go duration such as "72h".
//
// The text the user wrote survives a round trip, so "72h" is not rewritten to
// "72h0m0s" under the eyes of a GitOps tool.
//
// +kubebuilder:validation:Type=string
// +kubebuilder:validation:Pattern=`^((([0-9]{1,6}h|[0-9]{1,7}m|[0-9]{1,9}s)+|(1[0-9]{6}|2[0-4][0-9]{5})h([0-9]{1,2}m)?([0-9]{1,2}s)?|[0-9]{8}m|[1-8][0-9]{9}s)|Never)$`
// +kubebuilder:validation:MaxLength=20
type NillableDuration struct {
	// Duration is nil for Never.
	*time.Duration

	// Raw is the JSON that was decoded, or nil for a value made in memory
	// and for Never. It
	// wins over Duration when encoding, so clear it when changing Duration.
	Raw []byte `hash:"ignore"`
}

// MustParseNillableDuration parses "Never" or a Go duration and panics when
// the text is neither. It is meant for constants and tests.
func MustParseNillableDuration(text string) NillableDuration {
	d, err := ParseNillableDuration(text)
	if err != nil {
		panic(err)
	}
	return d
}

// ParseNillableDuration parses "Never" or a Go duration. It accepts every Go
// duration; the stricter syntax users must keep to is a rule of the CRDs.
func ParseNillableDuration(text string) (NillableDuration, error) {
	if text == Never {
		// No raw text: the drift hash must see the zero value.
		return NillableDuration{}, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return NillableDuration{}, fmt.Errorf("parse duration %q: want %q or a duration such as 720h: %w", text, Never, err)
	}
	raw, err := json.Marshal(text)
	if err != nil {
		return NillableDuration{}, fmt.Errorf("encode duration %q: %w", text, err)
	}
	return NillableDuration{Duration: &d, Raw: raw}, nil
}

// UnmarshalJSON decodes a JSON string holding "Never" or a Go duration.
func (d *NillableDuration) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return fmt.Errorf("decode duration %s: want a JSON string: %w", b, err)
	}
	parsed, err := ParseNillableDuration(text)
	if err != nil {
		return err
	}
	*d = parsed
	return nil
}

// MarshalJSON returns the text that was decoded, else the canonical Go
// duration, else "Never".
func (d NillableDuration) MarshalJSON() ([]byte, error) {
	if d.Raw != nil {
		return d.Raw, nil
	}
	if d.Duration != nil {
		return json.Marshal(d.Duration.String())
	}
	return json.Marshal(Never)
}

// ToUnstructured returns the value as unstructured content holds it.
func (d NillableDuration) ToUnstructured() any {
	var text string
	if d.Raw != nil && json.Unmarshal(d.Raw, &text) == nil {
		return text
	}
	if d.Duration != nil {
		return d.Duration.String()
	}
	return Never
}
