// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"karpenter/model"
)

// maxDigits bounds the text of a number, so that no input costs much to read.
const maxDigits = 40

// ParseQuantity reads a quantity as Kubernetes writes it (500m, 1.5, 8Gi, 2e3)
// into the unit of a position on the axis: millicores for CPU, else the base
// unit. Fractions of the unit are rounded up.
func ParseQuantity(position int, text string) (int64, error) {
	bad := fmt.Errorf("invalid quantity %q; write one like 500m, 2, 1.5, 8Gi or 100M", text)
	number := strings.TrimRight(text, "numkKMGTPEi")
	suffix := text[len(number):]
	scale, ok := scaleOf(suffix)
	if !ok || len(number) > maxDigits || !decimal(number) {
		return 0, bad
	}
	v, ok := new(big.Rat).SetString(number)
	if !ok {
		return 0, bad
	}
	v.Mul(v, scale)
	if position == model.CPU {
		v.Mul(v, big.NewRat(1000, 1))
	}
	n := ceil(v)
	if !n.IsInt64() {
		return 0, fmt.Errorf("%q is larger than any machine", text)
	}
	return n.Int64(), nil
}

// decimal reports whether s is digits with an optional sign, point and small
// exponent: the forms of big.Rat that a quantity may have.
func decimal(s string) bool {
	if mantissa, exponent, ok := strings.Cut(s, "e"); ok {
		e, err := strconv.Atoi(exponent)
		if err != nil || e < -18 || e > 18 {
			return false
		}
		s = mantissa
	}
	s = strings.TrimLeft(s, "+-")
	return s != "" && s != "." && strings.Count(s, ".") <= 1 && strings.Trim(s, "0123456789.") == ""
}

func ceil(v *big.Rat) *big.Int {
	n, rest := new(big.Int).DivMod(v.Num(), v.Denom(), new(big.Int))
	if rest.Sign() != 0 {
		n.Add(n, big.NewInt(1))
	}
	return n
}

func scaleOf(suffix string) (*big.Rat, bool) {
	if suffix == "" {
		return big.NewRat(1, 1), true
	}
	if i := slices.Index([]string{"Ki", "Mi", "Gi", "Ti", "Pi", "Ei"}, suffix); i >= 0 {
		return new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), uint(10*(i+1)))), true
	}
	if i := slices.Index([]string{"k", "M", "G", "T", "P", "E"}, suffix); i >= 0 {
		return new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(3*(i+1))), nil)), true
	}
	if i := slices.Index([]string{"m", "u", "n"}, suffix); i >= 0 {
		return new(big.Rat).SetFrac(big.NewInt(1), new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(3*(i+1))), nil)), true
	}
	return nil, false
}

// nanoDigits is how many decimals of a dollar a price can hold.
const nanoDigits = 9

// ParsePrice reads dollars per hour.
func ParsePrice(text string) (model.Price, error) {
	plain := strings.TrimPrefix(text, "$")
	if len(plain) > maxDigits || !decimal(plain) {
		return 0, fmt.Errorf("invalid price %q; write dollars per hour like 0.096", text)
	}
	v, ok := new(big.Rat).SetString(plain)
	if !ok {
		return 0, fmt.Errorf("invalid price %q; write dollars per hour like 0.096", text)
	}
	v.Mul(v, big.NewRat(int64(model.Dollar), 1))
	if !v.IsInt() || !v.Num().IsInt64() {
		return 0, fmt.Errorf("%q has more than %d decimals or is too large", text, nanoDigits)
	}
	return model.Price(v.Num().Int64()), nil
}

// parseOffered reads the price of an offering.
func parseOffered(text string) (model.Price, error) {
	p, err := ParsePrice(text)
	if err == nil && (p < 0 || p > model.MaxPrice) {
		return 0, fmt.Errorf("invalid price %q of an offering; write dollars per hour from 0 to %d", text, model.MaxPrice/model.Dollar)
	}
	return p, err
}

// FormatPrice prints dollars per hour exactly, without trailing zeros.
func FormatPrice(p model.Price) string {
	s := new(big.Rat).SetFrac64(int64(p), int64(model.Dollar)).FloatString(nanoDigits)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// axis reads and writes vectors of resources on the names of a snapshot.
type axis struct{ *model.Axis }

// resourceAlias are the short names of resources that may be written.
func resourceAlias(name string) string {
	switch name {
	case "mem":
		return "memory"
	case "disk":
		return "ephemeral-storage"
	case "gpu":
		return "nvidia.com/gpu"
	}
	return name
}

// standing reports whether a resource name may be an option of its own, as in
// cpu=2; any other is written in a list.
func standing(name string) bool {
	switch name {
	case "cpu", "memory", "pods", "ephemeral-storage", "nodes":
		return true
	}
	return onlyHas(name, "._-/") && (strings.Contains(name, "/") || strings.HasPrefix(name, "hugepages-"))
}

func (x axis) position(a atom) int {
	if a.literal {
		return x.Index(a.text)
	}
	return x.Index(resourceAlias(a.text))
}

// parse reads "cpu:2,memory:8Gi" over base.
func (x axis) parse(base model.Resources, value string) (model.Resources, error) {
	entries, err := x.entries(value)
	for _, e := range entries {
		base = base.With(e.Resource, e.Max)
	}
	return base, err
}

// entries reads "cpu:2,memory:8Gi" in the order written.
func (x axis) entries(value string) ([]model.Limit, error) {
	parts, err := list(value)
	if err != nil {
		return nil, err
	}
	var out []model.Limit
	for _, p := range parts {
		if len(p) != 3 || p[0].sign != 0 || p[1].sign != ':' || p[2].sign != 0 {
			return nil, fmt.Errorf("invalid resource %q; write a list like cpu:2,memory:8Gi", show(p))
		}
		i := x.position(p[0])
		v, err := ParseQuantity(i, p[2].text)
		if err != nil {
			return nil, err
		}
		out = append(out, model.Limit{Resource: i, Max: v})
	}
	return out, nil
}

// list writes every non-zero quantity as "cpu:2,memory:8Gi".
func (x axis) list(r model.Resources) string {
	var entries []model.Limit
	for i, v := range r {
		if v != 0 {
			entries = append(entries, model.Limit{Resource: i, Max: v})
		}
	}
	return x.listEntries(entries)
}

func (x axis) listEntries(entries []model.Limit) string {
	if len(entries) == 0 {
		return keywordNone
	}
	parts := make([]string, len(entries))
	for i, e := range entries {
		parts[i] = x.innerName(e.Resource) + ":" + model.FormatQuantity(e.Resource, e.Max)
	}
	return strings.Join(parts, ",")
}

// innerName quotes a resource that bears the name of an alias.
func (x axis) innerName(i int) string {
	name := x.Names()[i]
	if resourceAlias(name) != name {
		return strconv.Quote(name)
	}
	return inner(name)
}

// options writes the quantities of r that differ from base as options of
// their own, the ones that cannot stand alone as one list.
func (x axis) options(r, base model.Resources) []string {
	var out []string
	var rest []model.Limit
	for i, name := range x.Names() {
		v := r.At(i)
		switch {
		case v == base.At(i):
		case standing(name):
			out = append(out, name+"="+model.FormatQuantity(i, v))
		default:
			rest = append(rest, model.Limit{Resource: i, Max: v})
		}
	}
	if len(rest) > 0 {
		out = append(out, "resources="+outer(x.listEntries(rest)))
	}
	return out
}
