// SPDX-License-Identifier: Apache-2.0

package overlay

import (
	"fmt"
	"math/big"
	"strings"

	"karpenter/api/v1alpha1"
	"karpenter/model"
)

// adjustment is a change of a price to base × factor + term.
type adjustment struct {
	factor, term *big.Rat // term in dollars per hour
}

// parseAdjustment returns what the overlay does to prices, or nil when that is
// nothing.
func parseAdjustment(spec *v1alpha1.NodeOverlaySpec) (*adjustment, error) {
	switch {
	case spec.Price != nil && spec.PriceAdjustment != nil:
		return nil, fmt.Errorf("spec: price and priceAdjustment are both set; remove one")
	case spec.Price != nil:
		term, err := decimal(*spec.Price)
		if err != nil {
			return nil, fmt.Errorf("spec.price: %w", err)
		}
		return &adjustment{factor: new(big.Rat), term: term}, nil
	case spec.PriceAdjustment != nil:
		a, err := parseSigned(*spec.PriceAdjustment)
		if err != nil {
			return nil, fmt.Errorf("spec.priceAdjustment: %w", err)
		}
		return a, nil
	}
	return nil, nil
}

func parseSigned(text string) (*adjustment, error) {
	if !strings.HasPrefix(text, "+") && !strings.HasPrefix(text, "-") {
		return nil, fmt.Errorf("%q has no sign; write +%s or -%s", text, text, text)
	}
	number, percent := strings.CutSuffix(text[1:], "%")
	n, err := decimal(number)
	if err != nil {
		return nil, err
	}
	if text[0] == '-' {
		n.Neg(n)
	}
	one := big.NewRat(1, 1)
	if percent {
		return &adjustment{factor: one.Add(one, n.Mul(n, big.NewRat(1, 100))), term: new(big.Rat)}, nil
	}
	return &adjustment{factor: one, term: n}, nil
}

// decimal reads digits with at most one point.
func decimal(text string) (*big.Rat, error) {
	if strings.Trim(text, "0123456789.") == "" { // an exponent may cost hours
		if n, ok := new(big.Rat).SetString(text); ok {
			return n, nil
		}
	}
	return nil, fmt.Errorf("%q is not a decimal number", text)
}

// apply returns the adjusted price, rounded, at least 0 and at most MaxPrice.
func (a *adjustment) apply(base model.Price) model.Price {
	out := new(big.Rat).SetInt64(int64(base))
	out.Mul(out, a.factor)
	out.Add(out, new(big.Rat).Mul(a.term, new(big.Rat).SetInt64(int64(model.Dollar))))
	out.Add(out, big.NewRat(1, 2))
	if out.Sign() <= 0 {
		return 0
	}
	whole := new(big.Int).Quo(out.Num(), out.Denom())
	if !whole.IsInt64() {
		return model.MaxPrice
	}
	return min(model.Price(whole.Int64()), model.MaxPrice)
}
