// SPDX-License-Identifier: Apache-2.0

// Package quantity parses resource quantities from untrusted text.
//
// resource.ParseQuantity computes a power of ten with as many digits as the
// exponent demands: "1e-999999999" keeps a core busy for hours. CRDs accept
// such text, so all code that reads quantities from custom resources must parse
// them with this package.
package quantity

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	// MaxLength is the longest text that is parsed, in bytes.
	MaxLength = 128
	// MaxExponentDigits is how many digits a decimal exponent can have.
	MaxExponentDigits = 3
)

// Parse parses a quantity. Its cost is bounded for every text.
func Parse(text string) (resource.Quantity, error) {
	if err := Check(text); err != nil {
		return resource.Quantity{}, err
	}
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return resource.Quantity{}, fmt.Errorf("invalid quantity %q: want a number with an optional suffix, such as 500m or 4Gi", text)
	}
	return q, nil
}

// Check returns an error if the text is too expensive to parse as a number. It
// does not check whether the text is a number.
func Check(text string) error {
	if len(text) > MaxLength {
		return fmt.Errorf("number %q... is longer than %d characters", text[:MaxLength], MaxLength)
	}
	at := strings.IndexAny(text, "eE")
	if at < 0 {
		return nil
	}
	exponent := strings.TrimLeft(text[at+1:], "+-")
	digits := len(exponent) - len(strings.TrimLeft(exponent, "0123456789"))
	if digits > MaxExponentDigits {
		return fmt.Errorf("number %q has an exponent of more than %d digits", text, MaxExponentDigits)
	}
	return nil
}
