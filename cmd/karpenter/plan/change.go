// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "karpenter/api/v1"
	"karpenter/model"
)

// Change is what a manifest would change of a NodePool.
type Change struct {
	Pool      string   `json:"nodePool"`
	Kind      string   `json:"change"`              // new, changed, deleted or same
	Fields    []string `json:"fields,omitempty"`    // what differs, in words
	Drifted   []string `json:"drifted,omitempty"`   // nodes that drift, and had not
	Removed   []string `json:"removed,omitempty"`   // nodes that go with their NodePool
	Evictions int      `json:"evictions,omitempty"` // of pods on Removed
}

func (r Report) changes(b *page) {
	if len(r.Changes) == 0 {
		return
	}
	rows := [][]string{{"NODEPOOL", "CHANGE", "DRIFTS", "WHAT"}}
	for _, c := range r.Changes {
		first := []string{c.Pool, c.Kind, drifting(c)}
		for _, what := range append(c.Fields, "")[:max(len(c.Fields), 1)] {
			rows = append(rows, append(first, what))
			first = []string{"", "", ""}
		}
	}
	table(b, "with these manifests", rows)
}

func drifting(c Change) string {
	if len(c.Drifted) == 0 {
		return "none"
	}
	return counted(len(c.Drifted), "node")
}

// Check returns what the API server or the controller would refuse beyond the schema;
// old is the NodePool that the manifest changes, or nil. The error names the file, the line and
// the field.
func (m *Manifest) Check(labels v1.Labels, old *model.Pool, now time.Time) error {
	if err := check(m.Pool, labels, old, now); err != nil {
		return m.refuse(err)
	}
	return nil
}

// check is as Check. Errors begin with the path of the field.
func check(p *v1.NodePool, labels v1.Labels, old *model.Pool, now time.Time) error {
	if err := v1.ValidateNodePool(p, labels); err != nil {
		return err
	}
	for i := range p.Spec.Disruption.Budgets {
		if _, err := p.Spec.Disruption.Budgets[i].AllowedDisruptions(now, 1); err != nil {
			return fmt.Errorf("spec.disruption.budgets[%d]: %w", i, err)
		}
	}
	_, nodes := p.Spec.Limits[v1.ResourceNodes]
	switch {
	case p.IsStatic() && (len(p.Spec.Limits) > 1 || len(p.Spec.Limits) == 1 && !nodes):
		return errors.New("spec.limits: only limits.nodes may be set when replicas is set")
	case p.IsStatic() && p.Spec.Weight != nil:
		return errors.New("spec.weight: may not be set when replicas is set")
	case old != nil && (old.Static != nil) != p.IsStatic():
		return errors.New("spec.replicas: a NodePool cannot change between static and dynamic; create another one")
	}
	return nil
}

// differences says in words in what two versions of a pool differ.
func differences(old, pool *model.Pool, names []string) []string {
	var out []string
	add := func(field, was, is string) {
		if was != is {
			out = append(out, fmt.Sprintf("%s: %s → %s", field, cmp.Or(was, "none"), cmp.Or(is, "none")))
		}
	}
	for _, key := range requirementKeys(old, pool) {
		add("requirement "+key, demand(old, key), demand(pool, key))
	}
	add("taints", list(old.Taints), list(pool.Taints))
	add("limits", limits(old.Limits, names), limits(pool.Limits, names))
	add("weight", strconv.Itoa(int(old.Weight)), strconv.Itoa(int(pool.Weight)))
	add("consolidationPolicy", policy(old), policy(pool))
	add("consolidateAfter", never(old), never(pool))
	add("replicas", replicas(old), replicas(pool))
	add("preference premium", number(old.Aims.PreferencePremium), number(pool.Aims.PreferencePremium))
	add("preference allowance", allowance(old), allowance(pool))
	add("minimum on-demand share", share(old), share(pool))
	add("largest share in one spot pool", number(old.Aims.MaxSpotPoolShare), number(pool.Aims.MaxSpotPoolShare))
	add("consolidation payback time", payback(old), payback(pool))
	add("consolidation savings threshold", number(old.Aims.Threshold), number(pool.Aims.Threshold))
	add("price besides the instance", extrasText(old.Extras), extrasText(pool.Extras))
	for _, r := range []model.Reason{model.Empty, model.Drifted, model.Underutilized} {
		if old.Disruption.Halted == "" {
			add("budget for "+string(r), budget(old, r), budget(pool, r))
		}
	}
	if old.Template != "" && old.Template != pool.Template {
		out = append(out, "template: another hash")
	}
	return out
}

func requirementKeys(pools ...*model.Pool) []string {
	var out []string
	for _, p := range pools {
		for _, r := range p.Requirements {
			out = append(out, r.Key)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func demand(p *model.Pool, key string) string {
	r, ok := p.Requirements.Get(key)
	if !ok {
		return ""
	}
	text := strings.TrimPrefix(r.String(), key+" ")
	if r.MinValues > 0 && !strings.Contains(text, "minValues") {
		text += " minValues " + strconv.Itoa(r.MinValues)
	}
	return text
}

func list(taints []model.Taint) string {
	out := make([]string, len(taints))
	for i, t := range taints {
		out[i] = t.String()
	}
	return strings.Join(out, ", ")
}

func limits(all []model.Limit, names []string) string {
	out := make([]string, len(all))
	for i, l := range all {
		out[i] = names[l.Resource] + "=" + model.FormatQuantity(l.Resource, l.Max)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func policy(p *model.Pool) string {
	return cmp.Or(string(p.Disruption.Policy), string(model.WhenEmptyOrUnderutilized))
}

func never(p *model.Pool) string {
	if p.Disruption.Never {
		return "Never"
	}
	return "a time"
}

func number(v *float64) string {
	if v == nil {
		return ""
	}
	return strconv.FormatFloat(*v, 'g', -1, 64)
}

func share(p *model.Pool) string {
	if p.Aims.OnDemandShare == 0 {
		return ""
	}
	return number(&p.Aims.OnDemandShare)
}

func payback(p *model.Pool) string {
	if p.Aims.Payback == nil {
		return ""
	}
	return p.Aims.Payback.String()
}

func allowance(p *model.Pool) string {
	if p.Aims.PreferenceAllowance == nil {
		return ""
	}
	return fmt.Sprintf("$%s/h", Price(p.Aims.PreferenceAllowance.Dollars()))
}

func replicas(p *model.Pool) string {
	if p.Static == nil {
		return ""
	}
	return strconv.Itoa(p.Static.Replicas)
}

func budget(p *model.Pool, r model.Reason) string {
	n := p.Disruption.Allowed[r]
	if n+p.Disruption.Consuming >= v1.UnlimitedDisruptions {
		return "any number"
	}
	return counted(n, "node") + " now"
}
