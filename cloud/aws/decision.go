// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"karpenter/cloud"
	"karpenter/cloud/aws/launch"
)

// decisions caches the candidates of launches, because many claims have the
// same demands on the same types. Its zero value is empty and ready.
type decisions struct {
	mu    sync.Mutex
	known map[string]*decision // by demand
}

// decision is what launch.Narrow says about types.
type decision struct {
	types      []*cloud.InstanceType
	once       sync.Once
	candidates []launch.Candidate
	why        string
}

// narrow is launch.Narrow. The candidates are shared and must not be changed.
func (d *decisions) narrow(types []*cloud.InstanceType, want *launch.Want) (candidates []launch.Candidate, why string) {
	one := d.of(types, want)
	one.once.Do(func() { one.candidates, one.why = launch.Narrow(types, want) })
	return one.candidates, one.why
}

func (d *decisions) of(types []*cloud.InstanceType, want *launch.Want) *decision {
	const most = 100 // kinds of claims at a time
	text := demandOf(want)
	d.mu.Lock()
	defer d.mu.Unlock()
	// Types are not changed once they have been handed out.
	if one, ok := d.known[text]; ok && slices.Equal(one.types, types) {
		return one
	}
	if d.known == nil || len(d.known) >= most {
		d.known = map[string]*decision{}
	}
	one := &decision{types: types}
	d.known[text] = one
	return one
}

// demandOf is a text that is the same for equal demands only.
func demandOf(want *launch.Want) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%v", want.Relaxed)
	for _, r := range want.Labels {
		fmt.Fprintf(&out, " %q %v %q %v %v %d %v", r.Key, r.Complement, r.Values, r.Gte, r.Lte, r.MinValues, r.Present)
	}
	for _, name := range slices.Sorted(maps.Keys(want.Requests)) {
		q := want.Requests[name]
		fmt.Fprintf(&out, " %s=%s", name, q.String())
	}
	return out.String()
}
