// SPDX-License-Identifier: Apache-2.0

package wire

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed ec2.txt
var ec2Names string

//go:embed iam.txt
var iamNames string

// names are the operations of a service and the wire names of its structs'
// fields where they are not the field's own.
type names struct {
	operations map[string]bool
	in, out    map[string]string // by "Type.Field"
	elements   map[string]string // of lists in answers, by "Type.Field"
}

func mustParse(text string) *names {
	n := &names{operations: map[string]bool{}, in: map[string]string{}, out: map[string]string{}, elements: map[string]string{}}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "#") || len(words) == 0:
		case words[0] == "op" && len(words) == 2:
			n.operations[words[1]] = true
		case words[0] == "in" && len(words) == 3:
			n.in[words[1]] = words[2]
		case words[0] == "out" && len(words) == 3:
			n.out[words[1]] = words[2]
		case words[0] == "element" && len(words) == 3:
			n.elements[words[1]] = words[2]
		default:
			panic(fmt.Sprintf("table of wire names: bad line %q", line))
		}
	}
	return n
}

func wireName(table map[string]string, of, field string) string {
	if name, ok := table[of+"."+field]; ok {
		return name
	}
	return field
}

// outName is the name in answers: EC2's begin with a small letter.
func (n *names) outName(of, field string, small bool) string {
	name, deviates := n.out[of+"."+field]
	if !deviates {
		name = field
		if small {
			name = strings.ToLower(field[:1]) + field[1:]
		}
	}
	return name
}
