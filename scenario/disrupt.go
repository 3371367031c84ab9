// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"karpenter/model"
)

// paid writes what consolidation must save in a pool, as far as it says so itself.
func paid(a *model.Aims) string {
	var parts []string
	if a.Payback != nil {
		parts = append(parts, "payback="+a.Payback.String())
	}
	if a.Threshold != nil {
		parts = append(parts, "threshold="+realText(*a.Threshold))
	}
	return strings.Join(parts, " ")
}

func reasons() []model.Reason {
	return []model.Reason{model.Drifted, model.Empty, model.Underutilized, model.Unhealthy}
}

func parseReason(value string) (model.Reason, error) { return oneOf(value, reasons()) }

func parsePolicy(value string) (model.ConsolidationPolicy, error) {
	return oneOf(value, []model.ConsolidationPolicy{model.WhenEmpty, model.WhenEmptyOrUnderutilized, model.Balanced})
}

func oneOf[T ~string](value string, known []T) (T, error) {
	if v := T(value); slices.Contains(known, v) {
		return v, nil
	}
	return "", fmt.Errorf("%q is none of %s", value, strings.Trim(fmt.Sprint(known), "[]"))
}

// onlyNever reads consolidate-after=; how long it is otherwise is in the nodes.
func onlyNever(value string) (bool, error) {
	if value != "Never" {
		return false, fmt.Errorf("%q is not Never; whether nodes are quiet for long enough is said by them: consolidatable, settling", value)
	}
	return true, nil
}

// parseBudgets reads "Empty:2,Drifted:0", or one number for every reason.
func parseBudgets(value string) (map[model.Reason]int, error) {
	if n, err := parseWhole(value); err == nil {
		return everyReason(n), nil
	}
	out := map[model.Reason]int{}
	return out, counted(value, "a budget; write a list like Empty:2,Drifted:0, or one number for every reason", func(name string, n int) error {
		reason, err := parseReason(name)
		out[reason] = n
		return err
	})
}

func everyReason(n int) map[model.Reason]int {
	out := map[model.Reason]int{}
	for _, r := range reasons() {
		out[r] = n
	}
	return out
}

func budgets(allowed map[model.Reason]int) string {
	var parts []string
	same := true
	for _, r := range reasons() {
		n, ok := allowed[r]
		if same = same && ok && n == allowed[model.Empty]; ok {
			parts = append(parts, string(r)+":"+strconv.Itoa(n))
		}
	}
	if same {
		return strconv.Itoa(allowed[model.Empty])
	}
	return strings.Join(parts, ",")
}

// counted reads a list such as a:1,b:2.
func counted(value, what string, set func(name string, n int) error) error {
	parts, err := list(value)
	if err != nil {
		return err
	}
	for _, p := range parts {
		if len(p) != 3 || p[0].sign != 0 || p[1].sign != ':' || p[2].sign != 0 {
			return fmt.Errorf("%q is not %s", show(p), what)
		}
		n, err := parseWhole(p[2].text)
		if err == nil {
			err = set(p[0].text, n)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// poolSaid is what the line of a pool says itself; the rest follows from its
// nodes.
type poolSaid struct{ usage, active, leaving, counted, consuming bool }

// follow fills in what a line leaves out.
func (s poolSaid) follow(snapshot *model.Snapshot, p *model.Pool) {
	if !s.usage {
		p.Usage = poolUsage(snapshot, p.Name)
	}
	if !s.counted {
		p.Disruption.Counted, _ = budgeted(snapshot, p.Name)
	}
	if !s.consuming {
		_, p.Disruption.Consuming = budgeted(snapshot, p.Name)
	}
	if p.Static != nil && !s.active {
		p.Static.Active = nodesOf(snapshot, p.Name, false)
	}
	if p.Static != nil && !s.leaving {
		p.Static.Leaving = nodesOf(snapshot, p.Name, true)
	}
}

// budgeted returns of how many nodes the pool's budgets are taken, and how many
// of those are being removed.
func budgeted(s *model.Snapshot, pool string) (counted, consuming int) {
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Pool == pool && n.Claim != "" && n.Initialized {
			counted++
			if n.Deleting {
				consuming++
			}
		}
	}
	return counted, consuming
}

// counts reads of how many nodes budgets are taken, and how many consume them.
func (b *builder) counts(d *directive, p *model.Pool, says *poolSaid) {
	says.counted, says.consuming = d.has("counted"), d.has("consuming")
	p.Disruption.Counted = read(d, "counted", 0, parseWhole)
	p.Disruption.Consuming = read(d, "consuming", 0, parseWhole)
}

// counts writes what counts reads.
func (p *printer) counts(pool *model.Pool) []string {
	counted, consuming := budgeted(p.s, pool.Name)
	return []string{
		option("counted", strconv.Itoa(pool.Disruption.Counted), strconv.Itoa(counted)),
		option("consuming", strconv.Itoa(pool.Disruption.Consuming), strconv.Itoa(consuming)),
	}
}

// static reads "static=replicas:3,pending:1".
func (b *builder) static(d *directive, p *model.Pool) (says poolSaid) {
	p.Static = read(d, "static", nil, func(value string) (*model.Static, error) {
		out := &model.Static{}
		return out, counted(value, "a number of nodes; write replicas:3,active:2,leaving:0,pending:1", func(name string, n int) error {
			switch name {
			case "replicas":
				out.Replicas = n
			case "active":
				out.Active, says.active = n, true
			case "leaving":
				out.Leaving, says.leaving = n, true
			case "pending":
				out.Pending = n
			default:
				return fmt.Errorf("%q is none of replicas active leaving pending", name)
			}
			return nil
		})
	})
	return says
}

func (p *printer) static(pool *model.Pool) string {
	s := pool.Static
	if s == nil {
		return ""
	}
	text := "static=replicas:" + strconv.Itoa(s.Replicas)
	add := func(name string, n, usual int) {
		if n != usual {
			text += "," + name + ":" + strconv.Itoa(n)
		}
	}
	add("active", s.Active, nodesOf(p.s, pool.Name, false))
	add("leaving", s.Leaving, nodesOf(p.s, pool.Name, true))
	add("pending", s.Pending, 0)
	return text
}

// unavailable is why a pool launches nothing unless its line says.
func unavailable(p *model.Pool) string {
	if p.Static != nil {
		return "static"
	}
	return ""
}

// since reads a time, or how long before now it was.
func (b *builder) since(value string) (time.Time, error) {
	ago, err := time.ParseDuration(value)
	if err != nil {
		return parseTime(value)
	}
	t := b.s.Now.Add(-ago)
	if t.Year() < 0 || t.Year() > 9999 {
		return t, fmt.Errorf("invalid time before now %q; write one like 2026-01-01T12:00:00Z or 2h", value)
	}
	return t, nil
}

// until reads a time, or how long after now it is.
func (b *builder) until(value string) (time.Time, error) {
	in, err := time.ParseDuration(value)
	if err != nil {
		return parseTime(value)
	}
	return b.since((-in).String())
}

// nodeDisruption reads what speaks for and against taking a node away.
func (b *builder) nodeDisruption(d *directive, says *said) model.NodeDisruption {
	out := model.NodeDisruption{
		Empty: d.flag("empty"), Consolidatable: d.flag("consolidatable"), Settling: d.flag("settling"), Fresh: d.flag("fresh"), Returned: d.flag("returned"), Deadline: d.flag("deadline"),
		Together: read(d, "together", nil, names), Blocked: d.text("blocked", ""), Held: d.text("held", ""),
	}
	out.Unhealthy, out.Reboot = d.text("unhealthy", ""), d.flag("reboot")
	out.Severity = read(d, "severity", 0, parseReal)
	if d.flag("drifted") {
		out.Drifted = b.s.Now
	}
	out.Drifted = read(d, "drifted", out.Drifted, b.since)
	out.Advised = read(d, "advised", out.Advised, b.since)
	out.Quiet = read(d, "quiet", out.Quiet, b.since)
	out.Since = read(d, "since", out.Since, b.since)
	out.PodsEnd = read(d, "pods-end", out.PodsEnd, b.until)
	out.Startup = read(d, "startup", out.Startup, time.ParseDuration)
	if value, ok := d.take("disruption-cost"); ok {
		var err error
		says.cost = true
		out.Cost, err = parseReal(value)
		d.fail(err)
	}
	return out
}

// disruption writes what nodeDisruption reads.
func (p *printer) disruption(n *model.Node) []string {
	nd := &n.Disruption
	drifted := ""
	switch {
	case nd.Drifted.IsZero():
	case nd.Drifted.Equal(p.s.Now):
		drifted = "drifted"
	default:
		drifted = "drifted=" + timeText(nd.Drifted)
	}
	quiet, advised, since, podsEnd := "", "", "", ""
	if !nd.Since.IsZero() {
		since = "since=" + timeText(nd.Since)
	}
	if !nd.PodsEnd.IsZero() {
		podsEnd = "pods-end=" + timeText(nd.PodsEnd)
	}
	if !nd.Advised.IsZero() {
		advised = "advised=" + timeText(nd.Advised)
	}
	if !nd.Quiet.IsZero() {
		quiet = "quiet=" + timeText(nd.Quiet)
	}
	return []string{when(nd.Empty, "empty"), when(nd.Consolidatable, "consolidatable"), when(nd.Settling, "settling"), when(nd.Fresh, "fresh"), when(nd.Returned, "returned"), drifted, advised, quiet, since, podsEnd,
		option("together", phraseList(nd.Together), phraseList(nil)), option("blocked", nd.Blocked, ""), option("held", nd.Held, ""), when(nd.Deadline, "deadline"),
		option("unhealthy", nd.Unhealthy, ""), when(nd.Reboot, "reboot"), option("severity", realText(nd.Severity), realText(0)),
		option("startup", nd.Startup.String(), time.Duration(0).String()), option("disruption-cost", realText(nd.Cost), realText(usualCost(n)))}
}
