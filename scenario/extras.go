// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"errors"
	"fmt"
	"strings"

	"karpenter/model"
)

// Words behind the price of an extra.
const (
	wordPerVCPU = "per-vcpu"
	wordZone    = "zone"
)

// parseExtras reads "root disk:0.0022,address:0.005 zone a,agent:0.001 per-vcpu".
func parseExtras(value string) ([]model.Extra, error) {
	parts, err := list(value)
	if err != nil {
		return nil, err
	}
	var out []model.Extra
	for _, p := range parts {
		e, err := extraOf(p)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}

func extraOf(p []atom) (e model.Extra, err error) {
	bad := fmt.Errorf("invalid extra %q; write NAME:0.005, then per-vcpu if that is the price of a vCPU, then zone a if only nodes there have it", show(p))
	var name []string
	for len(p) > 0 && p[0].sign == 0 {
		name, p = append(name, p[0].text), p[1:]
	}
	if len(name) == 0 || len(p) < 2 || p[0].sign != ':' || p[1].sign != 0 {
		return e, bad
	}
	e.Name = strings.Join(name, " ")
	if e.Price, err = ParsePrice(p[1].text); err != nil {
		return e, err
	}
	if e.Price < 0 {
		return e, errors.New("the price of an extra is negative; lower the prices of the types instead")
	}
	p = p[2:]
	if len(p) > 0 && !p[0].literal && p[0].text == wordPerVCPU {
		e.VCPU, p = true, p[1:]
	}
	if len(p) == 2 && !p[0].literal && p[0].text == wordZone && p[1].sign == 0 {
		e.Zone, p = p[1].text, nil
	}
	if len(p) > 0 {
		return e, bad
	}
	return e, nil
}

func extras(es []model.Extra) string {
	parts := make([]string, len(es))
	for i, e := range es {
		parts[i] = phraseList([]string{e.Name}) + ":" + FormatPrice(e.Price) + when(e.VCPU, " "+wordPerVCPU)
		if e.Zone != "" {
			parts[i] += " " + wordZone + " " + inner(e.Zone)
		}
	}
	return strings.Join(parts, ",")
}
