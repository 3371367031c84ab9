// SPDX-License-Identifier: Apache-2.0

// Package nodeprice adds what a node costs besides its instance to the prices
// of instance types: volumes, addresses, and amounts that users set because
// agents and licenses are billed per node or per vCPU.
package nodeprice

import (
	"errors"
	"fmt"
	"math/big"
	"strings"

	v1 "karpenter/api/v1"
	"karpenter/model"
)

// Names of the parts that users set.
const (
	PerNode = "additional price per node"
	PerVCPU = "additional price per vCPU"
)

// Most is the highest amount that is accepted, per hour. More is a typing error: no
// instance costs as much.
const Most = 1000 * model.Dollar

// ErrAmount describes the valid amounts.
var ErrAmount = errors.New("want dollars per hour, a decimal from 0 to 1000 such as 0.03")

// Amounts are what users add to the price of each node, per hour.
type Amounts struct {
	Node, VCPU model.Price
}

// Of returns the amounts for the NodePool: those of its annotations, and a where
// it has none. If an annotation cannot be read, the error names it and a's amount
// is used in its place.
func (a Amounts) Of(pool *v1.NodePool) (Amounts, error) {
	return a.Annotated(pool.Annotations)
}

// Annotated is Of for the annotations of a NodePool.
func (a Amounts) Annotated(annotations map[string]string) (Amounts, error) {
	var failures []error
	for _, x := range []struct {
		key string
		to  *model.Price
	}{{v1.AdditionalNodePriceAnnotationKey, &a.Node}, {v1.AdditionalVCPUPriceAnnotationKey, &a.VCPU}} {
		text, ok := annotations[x.key]
		if !ok {
			continue
		}
		amount, err := Parse(text)
		if err != nil {
			failures = append(failures, fmt.Errorf("annotation %s=%q: %w", x.key, text, err))
			continue
		}
		*x.to = amount
	}
	return a, errors.Join(failures...)
}

// Extras returns the amounts as parts of the price of a node.
func (a Amounts) Extras() []model.Extra {
	var out []model.Extra
	if a.Node > 0 {
		out = append(out, model.Extra{Name: PerNode, Price: a.Node})
	}
	if a.VCPU > 0 {
		out = append(out, model.Extra{Name: PerVCPU, Price: a.VCPU, VCPU: true})
	}
	return out
}

// Parse reads an amount: dollars per hour as a decimal, 0 to 1000, rounded to
// nano-dollars.
func Parse(text string) (model.Price, error) {
	if text == "" || strings.Trim(text, "0123456789.") != "" || len(text) > 40 {
		return 0, ErrAmount
	}
	n, ok := new(big.Rat).SetString(text)
	if !ok {
		return 0, ErrAmount
	}
	n.Mul(n, big.NewRat(int64(model.Dollar), 1))
	if n.Cmp(big.NewRat(int64(Most), 1)) > 0 {
		return 0, ErrAmount
	}
	n.Add(n, big.NewRat(1, 2))
	return model.Price(new(big.Int).Quo(n.Num(), n.Denom()).Int64()), nil
}
