// SPDX-License-Identifier: Apache-2.0

// Package unreadable marks objects in memory of which the program could not
// read every field.
//
// The CRDs accept text that Go types do not, such as a duration of 99999999h,
// and older CRDs have stored more of it. The program drops such a field when it
// decodes the object and marks the object, so that every other object, and
// every other field, is still read. The complete spec of a marked object is
// unknown, so its validation fails, and nothing is launched or voluntarily
// disrupted for it.
package unreadable

import (
	"errors"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AnnotationKey holds, one on a line, the fields that were dropped and why. It
// is set in memory only: it is removed from objects that come with it.
const AnnotationKey = "karpenter.sh/unreadable-fields"

// Error returns which fields of the object's spec could not be read and why, on
// one line, or nil if all were read.
func Error(o metav1.Object) error {
	text := o.GetAnnotations()[AnnotationKey]
	if text == "" {
		return nil
	}
	return errors.New(strings.ReplaceAll(text, "\n", "; "))
}
