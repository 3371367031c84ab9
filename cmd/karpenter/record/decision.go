// SPDX-License-Identifier: Apache-2.0

package record

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"karpenter/model"
)

// Limits for the size of one Decision, so that none can fill a segment.
const (
	mostGroups       = 20  // kinds of nodes
	mostClaims       = 200 // NodeClaims that are followed
	mostReasons      = 3
	mostAlternatives = 3
	longestReason    = 200 // bytes
)

// Provision is the Kind of decisions about pending pods. The other Kinds are the
// reasons for which nodes are disrupted, such as Underutilized.
const Provision = "Provision"

// Decision is what a plan did: it launched nodes for pending pods, or removed nodes.
// Prices are per hour.
type Decision struct {
	ID   int64     `json:"id"` // 1 and up, in the order of time
	At   time.Time `json:"time"`
	Kind string    `json:"kind"`

	// The cluster when it was decided.
	Nodes   int         `json:"nodes"`   // of NodePools
	Cost    model.Price `json:"cost"`    // of those
	Pods    int         `json:"pods"`    // that were pending, or that had to move
	NoPlace int         `json:"noPlace"` // of those, that stayed pending
	Reasons []Reason    `json:"reasons,omitempty"`

	Launches []Group     `json:"launches,omitempty"`
	Removes  []Group     `json:"removes,omitempty"`
	Moves    int         `json:"moves"`           // pods that go to nodes there are
	Price    model.Price `json:"price"`           // predicted, of Launches
	Bound    model.Price `json:"bound,omitempty"` // no plan for the pods launches for less; 0 = not known
	Savings  model.Price `json:"savings"`         // predicted: of Removes less Launches
	Oldest   time.Time   `json:"oldest,omitzero"` // when the oldest of the pods was created

	// NodeClaims that are followed to the Outcome, and how many more there are.
	Launched  []string `json:"launchedClaims,omitempty"`
	Removed   []string `json:"removedClaims,omitempty"`
	Unfollows int      `json:"unfollowed,omitempty"`

	Outcome *Outcome `json:"-"` // nil = under way
}

// Reason is why pods stayed pending.
type Reason struct {
	Text string `json:"text"`
	Pods int    `json:"pods"`
}

// Group is a number of nodes of the same kind.
type Group struct {
	Count        int         `json:"count"`
	Pool         string      `json:"nodePool"`
	Type         string      `json:"instanceType"`
	Zone         string      `json:"zone,omitempty"`
	CapacityType string      `json:"capacityType,omitempty"`
	Price        model.Price `json:"price"`          // of each
	Pods         int         `json:"pods,omitempty"` // planned on them
	// Alternatives are other offerings that the nodes could have become, the cheapest
	// first.
	Alternatives []Offering `json:"alternatives,omitempty"`
}

// Offering is an instance type with a zone and a capacity type.
type Offering struct {
	Type         string      `json:"instanceType"`
	Zone         string      `json:"zone"`
	CapacityType string      `json:"capacityType"`
	Price        model.Price `json:"price"`
}

// Outcome is the result of a Decision: what happened to its NodeClaims.
type Outcome struct {
	Of        int64       `json:"of"`               // ID of the Decision
	At        time.Time   `json:"time"`             // when all of it had happened
	Ready     int         `json:"ready"`            // launched nodes that became ready
	Failed    int         `json:"failed,omitempty"` // launched nodes that did not
	Price     model.Price `json:"price"`            // of the nodes that became ready
	Became    []Group     `json:"became,omitempty"`
	Removed   int         `json:"removed"`        // instances that were terminated
	Kept      int         `json:"kept,omitempty"` // nodes that were not removed after all
	Freed     model.Price `json:"freed"`          // price of the removed instances
	Evictions int         `json:"evictions"`
	// Wait is how long the oldest of the pods waited until all launched nodes were ready.
	Wait time.Duration `json:"waitNanoseconds,omitempty"`
	// Late means that the decision was not complete after a long time, or that
	// the leader changed meanwhile, so that evictions may be missing.
	Late bool `json:"late,omitempty"`
}

// groups groups nodes of the same kind and counts them. The largest group is
// first.
func groups(all []Group) []Group {
	type key struct {
		pool, name, zone, capacityType string
		price                          model.Price
	}
	at := map[key]int{}
	var out []Group
	for _, k := range all {
		is := key{k.Pool, k.Type, k.Zone, k.CapacityType, k.Price}
		i, known := at[is]
		if !known {
			at[is] = len(out)
			out = append(out, k)
			continue
		}
		out[i].Count += k.Count
		out[i].Pods += k.Pods
	}
	slices.SortStableFunc(out, func(a, b Group) int { return cmp.Compare(b.Count, a.Count) })
	if len(out) > mostGroups {
		rest := Group{Type: "other"}
		for _, k := range out[mostGroups-1:] {
			rest.Price += k.Price * model.Price(k.Count)
			rest.Count += k.Count
			rest.Pods += k.Pods
		}
		rest.Price /= model.Price(rest.Count)
		out = append(out[:mostGroups-1:mostGroups-1], rest)
	}
	return out
}

// follow adds the claims that are followed to the Decision.
func (d *Decision) follow(launched, removed []string) {
	d.Launched = launched[:min(len(launched), mostClaims)]
	d.Removed = removed[:min(len(removed), mostClaims)]
	d.Unfollows = len(launched) + len(removed) - len(d.Launched) - len(d.Removed)
}

// count adds the figures of the cluster at the time of the Decision.
func (d *Decision) count(s *model.Snapshot) {
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Claim != "" {
			d.Nodes++
			d.Cost += n.Price
		}
	}
}

// provision returns the Decision for a plan for pending pods whose launches
// were carried out.
func provision(s *model.Snapshot, p *model.Plan, launches []model.Launch, claims []string) Decision {
	d := Decision{At: s.Now.UTC(), Kind: Provision, Moves: len(p.Placements), Bound: p.Bound}
	d.count(s)
	for _, pending := range s.Pending {
		d.Pods += len(pending.Pods)
	}
	for i := range p.Verdicts {
		v := &p.Verdicts[i]
		d.NoPlace += len(v.Pods)
		d.Reasons = append(d.Reasons, Reason{cut(v.Brief(longestReason)), len(v.Pods)})
	}
	slices.SortStableFunc(d.Reasons, func(a, b Reason) int { return cmp.Compare(b.Pods, a.Pods) })
	d.Reasons = d.Reasons[:min(len(d.Reasons), mostReasons)]
	d.launch(s, launches)
	d.follow(claims, nil)
	return d
}

// command is the Decision that removes nodes.
func command(s *model.Snapshot, c *model.Command, claims []string) Decision {
	d := Decision{At: s.Now.UTC(), Kind: string(c.Reason), Moves: len(c.Moves), Pods: len(c.Moves), Savings: c.Savings}
	d.count(s)
	var removed []string
	nodes := map[string]*model.Node{}
	for i := range s.Nodes {
		nodes[s.Nodes[i].Claim] = &s.Nodes[i]
	}
	var gone []Group
	for _, target := range c.Nodes {
		removed = append(removed, target.Claim)
		if n := nodes[target.Claim]; n != nil {
			gone = append(gone, groupOf(n))
		}
	}
	d.Removes = groups(gone)
	for i := range c.Launches {
		d.Pods += len(c.Launches[i].Pods)
	}
	d.launch(s, c.Launches)
	d.Oldest = time.Time{} // the pods run
	d.follow(claims, removed)
	return d
}

func groupOf(n *model.Node) Group {
	return Group{
		Count: 1, Pool: n.Pool, Type: value(n, model.LabelInstanceType), Zone: value(n, model.LabelZone),
		CapacityType: value(n, model.LabelCapacityType), Price: n.Price,
	}
}

func value(n *model.Node, key string) string {
	v, _ := n.Labels.Value(key)
	return v
}

// launch adds the launches to the Decision.
func (d *Decision) launch(s *model.Snapshot, launches []model.Launch) {
	pools := map[string]*model.Pool{}
	for i := range s.Pools {
		pools[s.Pools[i].Name] = &s.Pools[i]
	}
	all := make([]Group, len(launches))
	for i := range launches {
		l := &launches[i]
		all[i] = Group{Count: 1, Pool: l.Pool, Type: l.Type, Zone: l.Zone, CapacityType: l.CapacityType, Price: l.Price, Pods: len(l.Pods)}
		d.Price += l.Price
		for _, pod := range l.Pods {
			if d.Oldest.IsZero() || pod.Created.Before(d.Oldest) {
				d.Oldest = pod.Created.UTC()
			}
		}
	}
	d.Launches = groups(all)
	for i := range d.Launches {
		k := &d.Launches[i]
		of := slices.IndexFunc(launches, func(l model.Launch) bool {
			return l.Pool == k.Pool && l.Type == k.Type && l.Zone == k.Zone && l.CapacityType == k.CapacityType && l.Price == k.Price
		})
		if of >= 0 && pools[k.Pool] != nil {
			k.Alternatives = alternatives(pools[k.Pool], &launches[of])
		}
	}
}

// alternatives returns the next best offerings: of the type planned and of the next
// types, the cheapest of each capacity type that the launch allows.
func alternatives(pool *model.Pool, l *model.Launch) []Offering {
	var out []Offering
	zones, bound := l.Requirements.Get(model.LabelZone)
	for _, name := range l.Types[:min(len(l.Types), 1+mostAlternatives)] {
		at := slices.IndexFunc(pool.Types, func(t *model.InstanceType) bool { return t.Name == name })
		if at < 0 {
			continue
		}
		cheapest := map[string]Offering{}
		for _, o := range pool.Types[at].Offerings {
			planned := name == l.Type && o.CapacityType == l.CapacityType
			if planned || !o.Available || !slices.Contains(l.CapacityTypes, o.CapacityType) || bound && !zones.Has(o.Zone) {
				continue
			}
			if was, known := cheapest[o.CapacityType]; !known || o.Price < was.Price {
				cheapest[o.CapacityType] = Offering{name, o.Zone, o.CapacityType, o.Price}
			}
		}
		for _, o := range cheapest {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b Offering) int {
		return cmp.Or(cmp.Compare(a.Price, b.Price), cmp.Compare(a.Type, b.Type), cmp.Compare(a.CapacityType, b.CapacityType))
	})
	return out[:min(len(out), mostAlternatives)]
}

// cut shortens a text to the longest Reason.
func cut(text string) string {
	if len(text) <= longestReason {
		return text
	}
	return strings.ToValidUTF8(text[:longestReason], "") + "..."
}
