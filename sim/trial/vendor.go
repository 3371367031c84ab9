// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kwokv1alpha1 "karpenter/api/kwok/v1alpha1"
	v1 "karpenter/api/v1"
	"karpenter/sim"
	"karpenter/sim/script"
)

// vendor is a cloud with a provider of its own, as trials use it.
type vendor struct {
	args        []string          // of the process
	environment map[string]string // of the process
	make        func(*sim.Run) (sim.Vendor, error)
	class       client.Object // the node class of all pools
	ref         v1.NodeClassReference
	changes     []string // calls whose answer can be lost after they are carried out
	throttled   error    // how calls are rejected that are too many
}

// vendor returns whose cloud the trial uses, nil for simcloud.
func (c *Trial) vendor() *vendor {
	switch {
	case c.Amazon != nil:
		return c.amazon()
	case c.Microsoft != nil:
		return c.microsoft()
	}
	return nil
}

// sell has the run use the vendor's cloud and node class.
func (v *vendor) sell(s *sim.Setup) {
	s.Types, s.Vendor = nil, v.make
	for i, o := range s.Objects {
		switch o := o.(type) {
		case *kwokv1alpha1.KWOKNodeClass:
			s.Objects[i] = v.class
		case *v1.NodePool:
			ref := v.ref
			o.Spec.Template.Spec.NodeClassRef = &ref
		}
	}
}

// rename gives the types and zones of a script that Draw has made up other names,
// and leaves out what clouds with a provider of their own do not do: changes of
// prices, which are read twice a day; and answers with something missing.
func rename(s *script.Script, names, zones map[string]string) {
	all := func(list []string, to map[string]string) []string {
		var out []string
		for _, x := range list {
			out = append(out, to[x])
		}
		return out
	}
	for i := range s.Types {
		t := &s.Types[i]
		t.Name, t.Zones = names[t.Name], all(t.Zones, zones)
	}
	for i := range s.Pools {
		s.Pools[i].Types, s.Pools[i].Zones = all(s.Pools[i].Types, names), all(s.Pools[i].Zones, zones)
	}
	for i := range s.Pods {
		s.Pods[i].Zone = zones[s.Pods[i].Zone]
	}
	for i := range s.Faults {
		f := &s.Faults[i]
		f.Type, f.Zone = names[f.Type], zones[f.Zone]
	}
	s.Events = slices.DeleteFunc(s.Events, func(e script.Event) bool { return e.Do == script.Price })
	s.Faults = slices.DeleteFunc(s.Faults, func(f script.Fault) bool { return f.Kind == script.PartialList || f.Kind == script.FewTypes })
}
