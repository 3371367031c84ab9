// SPDX-License-Identifier: Apache-2.0

package world

import (
	"fmt"
	"slices"
	"strings"
)

// setTwin takes in a Node that has the provider ID of another one.
func (m *machine) setTwin(n *Node) {
	twins := slices.DeleteFunc(slices.Clone(m.twins), func(t *Node) bool { return t.Name == n.Name })
	twins = append(twins, n)
	slices.SortFunc(twins, func(a, b *Node) int { return strings.Compare(a.Name, b.Name) })
	m.twins = twins
}

// dropTwin takes in that such a Node is gone.
func (m *machine) dropTwin(name string) {
	m.twins = slices.DeleteFunc(slices.Clone(m.twins), func(t *Node) bool { return t.Name == name })
}

// duplicated says which Nodes claim to be the machine, "" if no more than one
// does. Any of them may be a forgery: no pods are planned on the machine, and it
// is not disrupted.
func (m *machine) duplicated() string {
	if len(m.twins) == 0 {
		return ""
	}
	names := []string{m.node.Name}
	for _, t := range m.twins {
		names = append(names, t.Name)
	}
	slices.Sort(names)
	return fmt.Sprintf("nodes %s have the same spec.providerID %s", strings.Join(names, " and "), m.node.ProviderID)
}
