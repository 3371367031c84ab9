// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	v1 "karpenter/api/v1"
	"karpenter/cloud/nodeprice"
	"karpenter/model"
)

// ErrShare says which shares there are.
var ErrShare = errors.New("want a share of 1, a decimal from 0 to 1 such as 0.05")

// Aims returns the aims that the annotations of the NodePool set. The error names
// every annotation that cannot be read and is ignored.
func Aims(p *v1.NodePool) (model.Aims, error) {
	var out model.Aims
	var failures []error
	read := func(key string, set func(string) error) {
		if text, ok := p.Annotations[key]; ok {
			if err := set(text); err != nil {
				failures = append(failures, fmt.Errorf("annotation %s=%q: %w", key, text, err))
			}
		}
	}
	read(v1.PreferencePremiumAnnotationKey, func(text string) error {
		v, err := Share(text)
		if err == nil {
			out.PreferencePremium = &v
		}
		return err
	})
	read(v1.PreferenceAllowanceAnnotationKey, func(text string) error {
		v, err := nodeprice.Parse(text)
		if err == nil {
			out.PreferenceAllowance = &v
		}
		return err
	})
	read(v1.MinOnDemandShareAnnotationKey, func(text string) (err error) {
		out.OnDemandShare, err = Share(text)
		return err
	})
	read(v1.MaxSpotPoolShareAnnotationKey, func(text string) error {
		v, err := Share(text)
		if err == nil {
			out.MaxSpotPoolShare = &v
		}
		return err
	})
	read(v1.ConsolidationPaybackTimeAnnotationKey, func(text string) error {
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			return errors.New("want a duration that is not negative, such as 8h")
		}
		out.Payback = &d
		return nil
	})
	read(v1.ConsolidationSavingsThresholdAnnotationKey, func(text string) error {
		v, err := Share(text)
		if err == nil {
			out.Threshold = &v
		}
		return err
	})
	return out, errors.Join(failures...)
}

// Share reads a share of 1: a decimal, 0 to 1.
func Share(text string) (float64, error) {
	if text == "" || strings.Trim(text, "0123456789.") != "" || len(text) > 40 {
		return 0, ErrShare
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || v > 1 {
		return 0, ErrShare
	}
	return v, nil
}
