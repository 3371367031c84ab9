// SPDX-License-Identifier: Apache-2.0

// Package expression evaluates expressions that replace numbers in the kubelet
// configuration of an EC2NodeClass. They are written in the Common Expression
// Language and use the properties of an instance type.
//
// Besides the language's own functions there are min and max of two numbers,
// integers and doubles in any mix. A result is an integer or a double; doubles
// are cut towards zero.
package expression

import (
	"fmt"
	"math"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// costLimit bounds the cost of one evaluation, in CEL's units; useful
// expressions need tens.
const costLimit = 100_000

// Figures are what an expression can use.
type Figures struct {
	InstanceType string // instance_type
	CPUs         int64  // vcpus
	MemoryMiB    int64  // memory_mib, as advertised
	ENIs         int64  // default_enis, of the default network card
	IPsPerENI    int64  // ips_per_eni
	MaxPods      int64  // max_pods
}

// Language compiles expressions. It may be used concurrently.
type Language struct{ env *cel.Env }

// NewLanguage returns the language.
func NewLanguage() (*Language, error) {
	options := []cel.EnvOption{cel.Variable("instance_type", cel.StringType)}
	for _, name := range []string{"vcpus", "memory_mib", "default_enis", "ips_per_eni", "max_pods"} {
		options = append(options, cel.Variable(name, cel.IntType))
	}
	env, err := cel.NewEnv(append(options, extreme("max", 1), extreme("min", -1))...)
	if err != nil {
		return nil, fmt.Errorf("expression language: %w", err)
	}
	return &Language{env}, nil
}

// extreme is a function that returns whichever of two numbers compares to the
// other as sign says. Of an integer and a double it makes a double.
func extreme(name string, sign int) cel.EnvOption {
	var overloads []cel.FunctionOpt
	for _, a := range []*cel.Type{cel.IntType, cel.DoubleType} {
		for _, b := range []*cel.Type{cel.IntType, cel.DoubleType} {
			result := cel.DoubleType
			if a == cel.IntType && b == cel.IntType {
				result = cel.IntType
			}
			id := fmt.Sprintf("%s_%s_%s", name, a, b)
			overloads = append(overloads, cel.Overload(id, []*cel.Type{a, b}, result,
				cel.BinaryBinding(func(x, y ref.Val) ref.Val { return pick(x, y, sign) })))
		}
	}
	return cel.Function(name, overloads...)
}

func pick(x, y ref.Val, sign int) ref.Val {
	a, first := x.(types.Int)
	b, second := y.(types.Int)
	if first && second {
		if (a > b) == (sign > 0) {
			return a
		}
		return b
	}
	if sign > 0 {
		return types.Double(math.Max(float(x), float(y)))
	}
	return types.Double(math.Min(float(x), float(y)))
}

func float(v ref.Val) float64 {
	if n, ok := v.(types.Int); ok {
		return float64(n)
	}
	return float64(v.(types.Double)) // the overloads take nothing else
}

// Expression is a number that depends on the instance type.
type Expression struct {
	text    string
	program cel.Program
}

// Compile reads an expression. An error says what is wrong with it.
func (l *Language) Compile(text string) (*Expression, error) {
	ast, issues := l.env.Compile(text)
	if err := issues.Err(); err != nil {
		return nil, fmt.Errorf("expression %q: %w", text, err)
	}
	if t := ast.OutputType(); !t.IsExactType(cel.IntType) && !t.IsExactType(cel.DoubleType) && !t.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("expression %q: gives %s, not a number", text, t)
	}
	program, err := l.env.Program(ast, cel.CostLimit(costLimit))
	if err != nil {
		return nil, fmt.Errorf("expression %q: %w", text, err)
	}
	return &Expression{text, program}, nil
}

// Evaluate returns the number for an instance type, which may be negative.
func (e *Expression) Evaluate(f *Figures) (int64, error) {
	value, _, err := e.program.Eval(map[string]any{
		"instance_type": f.InstanceType, "vcpus": f.CPUs, "memory_mib": f.MemoryMiB,
		"default_enis": f.ENIs, "ips_per_eni": f.IPsPerENI, "max_pods": f.MaxPods,
	})
	if err != nil {
		return 0, fmt.Errorf("expression %q for %s: %w", e.text, f.InstanceType, err)
	}
	switch n := value.(type) {
	case types.Int:
		return int64(n), nil
	case types.Double:
		if math.Abs(float64(n)) < math.MaxInt64 { // false for NaN
			return int64(n), nil
		}
	}
	return 0, fmt.Errorf("expression %q for %s: gives %v, not a number that can be used", e.text, f.InstanceType, value.Value())
}

// Quantity gives a result the unit of the resource that is reserved: processors
// in millicores, rounded up to tens; memory in MiB, rounded up to sixteens; disk
// in GiB; anything else, such as process IDs, is counted.
func Quantity(name corev1.ResourceName, n int64) resource.Quantity {
	switch name {
	case corev1.ResourceCPU:
		return *resource.NewMilliQuantity((n+9)/10*10, resource.DecimalSI)
	case corev1.ResourceMemory:
		return *resource.NewQuantity((n+15)/16*16<<20, resource.BinarySI)
	case corev1.ResourceEphemeralStorage:
		return *resource.NewQuantity(n<<30, resource.BinarySI)
	}
	return *resource.NewQuantity(n, resource.DecimalSI)
}
