package convert

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	v1 "karpenter/api/v1"
)

// ConsolidationTerms are what the annotations of a NodePool say about what
// consolidation must save; nil where they say nothing.
type ConsolidationTerms struct {
	Payback   *time.Duration
	Threshold *float64
}

// ConsolidationTermsOf reads the annotations. The error names those that cannot be
// read, which count as missing.
func ConsolidationTermsOf(annotations map[string]string) (ConsolidationTerms, error) {
	var out ConsolidationTerms
	var failures []error
	if text, ok := annotations[v1.ConsolidationPaybackTimeAnnotationKey]; ok {
		if d, err := time.ParseDuration(text); err == nil && d >= 0 {
			out.Payback = &d
		} else {
			failures = append(failures, fmt.Errorf("annotation %s=%q: want a duration that is not negative, such as 8h", v1.ConsolidationPaybackTimeAnnotationKey, text))
		}
	}
	if text, ok := annotations[v1.ConsolidationSavingsThresholdAnnotationKey]; ok {
		if share, err := strconv.ParseFloat(text, 64); err == nil && share >= 0 && share <= 1 {
			out.Threshold = &share
		} else {
			failures = append(failures, fmt.Errorf("annotation %s=%q: want a number from 0 to 1, such as 0.1", v1.ConsolidationSavingsThresholdAnnotationKey, text))
		}
	}
	return out, errors.Join(failures...)
}
