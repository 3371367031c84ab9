// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"fmt"

	"karpenter/sim"
)

func newFenced() *Law {
	return &Law{
		name:  "fenced",
		means: "After another replica has taken over, the old leader changes nothing in the cluster or the cloud, even if it has not noticed yet.",
		check: func(s *sim.Seen) error {
			for _, c := range s.Calls {
				if c.Late && c.Writes && c.Effect {
					return fmt.Errorf("a replica that no longer leads made the call %s %s %s %s", c.Target, c.Verb, c.Kind, c.Name)
				}
			}
			return nil
		},
	}
}
