// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"slices"
	"time"

	awsv1 "karpenter/api/aws/v1"
	kwokv1alpha1 "karpenter/api/kwok/v1alpha1"
	v1 "karpenter/api/v1"
	"karpenter/sim"
	"karpenter/sim/amazon"
	"karpenter/sim/script"
)

// buyFromAmazon has the run use AWS and an EC2NodeClass.
func (c *Trial) buyFromAmazon(s *sim.Setup) {
	s.Types = nil
	s.Vendor = func(r *sim.Run) (sim.Vendor, error) {
		a, err := amazon.New(*c.Amazon, r)
		if err == nil && c.Account != nil {
			c.Account(a)
		}
		return a, err
	}
	for i, o := range s.Objects {
		switch o := o.(type) {
		case *kwokv1alpha1.KWOKNodeClass:
			s.Objects[i] = amazon.NodeClass()
		case *v1.NodePool:
			o.Spec.Template.Spec.NodeClassRef = classRef()
		}
	}
}

func classRef() *v1.NodeClassReference {
	return &v1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.Kind, Name: amazon.Class}
}

// mostLag is how late EC2 shows what it has started: less than the provider
// waits for.
const mostLag = 15 * time.Second

// Translate makes a script that Draw has made up one for AWS, and returns the
// account it needs. What has no counterpart there is left out: changes of
// prices, which are read twice a day; and answers with something missing, as
// EC2 fails instead.
func Translate(s *script.Script) *amazon.Config {
	names := map[string]string{"s1": "c5.large", "m2": "m5.large", "c4": "c5.xlarge", "m4": "m5.xlarge", "m8": "m5.2xlarge", "m16": "m5.4xlarge"}
	zones := map[string]string{"a": "us-west-2a", "b": "us-west-2b", "c": "us-west-2c"}
	rename := func(list []string, to map[string]string) []string {
		var out []string
		for _, x := range list {
			out = append(out, to[x])
		}
		return out
	}
	account := &amazon.Config{}
	for i := range s.Types {
		t := &s.Types[i]
		t.Name, t.Zones = names[t.Name], rename(t.Zones, zones)
		account.Types, account.Zones = append(account.Types, t.Name), t.Zones
		if t.Spot == 0 {
			account.NoSpot = append(account.NoSpot, t.Name)
		}
	}
	for i := range s.Pools {
		s.Pools[i].Types, s.Pools[i].Zones = rename(s.Pools[i].Types, names), rename(s.Pools[i].Zones, zones)
	}
	for i := range s.Pods {
		s.Pods[i].Zone = zones[s.Pods[i].Zone]
	}
	for i := range s.Faults {
		f := &s.Faults[i]
		f.Type, f.Zone = names[f.Type], zones[f.Zone]
		if f.Kind == script.CloudLag {
			f.Lag = min(f.Lag, mostLag)
		}
	}
	s.Events = slices.DeleteFunc(s.Events, func(e script.Event) bool { return e.Do == script.Price })
	s.Faults = slices.DeleteFunc(s.Faults, func(f script.Fault) bool { return f.Kind == script.PartialList || f.Kind == script.FewTypes })
	return account
}
