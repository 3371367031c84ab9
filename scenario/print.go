// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"karpenter/model"
)

// Print writes s so that Parse reads back an equal Snapshot.
func Print(w io.Writer, s *model.Snapshot) error {
	return write(w, s, nil)
}

// Print writes the situation so that Read reads back an equal one.
func (s Situation) Print(w io.Writer) error {
	return write(w, s.Snapshot, &s.Policy)
}

// write prints everything a snapshot holds, and the policy when there is one.
func write(w io.Writer, s *model.Snapshot, policy *model.Policy) error {
	x := axis{model.NewAxis()}
	if standard := x.Names(); len(s.Resources) < len(standard) || !slices.Equal(s.Resources[:len(standard)], standard) {
		return fmt.Errorf("print scenario: resource names %v do not begin with the standard ones", s.Resources)
	}
	for _, name := range s.Resources {
		x.Index(name)
	}
	p := &printer{axis: x, s: s, asked: asked(s), refs: map[*model.InstanceType]string{}}
	p.decide(policy)
	p.header()
	p.devices()
	p.types()
	for i := range s.Pools {
		p.pool(&s.Pools[i])
	}
	for i := range s.Nodes {
		p.node(&s.Nodes[i])
	}
	for _, d := range s.Daemons {
		p.line("daemonset "+outerName(d.Name), p.shape(d.Shape)...)
	}
	for i := range s.Nodes {
		for _, pending := range s.Nodes[i].Movable {
			p.pods(pending, "on="+outer(s.Nodes[i].Name))
		}
	}
	for _, pending := range s.Pending {
		p.pods(pending, "")
	}
	for _, g := range s.Groups {
		p.line("group "+outerName(g.Name), "min="+strconv.Itoa(g.MinCount), option("running", strconv.Itoa(g.Running), "0"), option("refused", g.Refused, ""), option("waits", g.Waits, ""),
			option("avoid", placesText(g.Avoid), placesText(nil)), option("together", g.TopologyKey, ""), option("on", innerList(g.On), innerList(nil)))
	}
	for _, in := range s.Intents {
		parts := make([]string, len(in.Claims))
		for i, claim := range in.Claims {
			parts[i] = outerName(claim)
		}
		p.line("intent "+string(in.Reason), parts...)
	}
	_, err := w.Write(p.out.Bytes())
	return err
}

// printer writes a snapshot.
type printer struct {
	axis
	s     *model.Snapshot
	asked bool // some selector looks at pods
	out   bytes.Buffer
	refs  map[*model.InstanceType]string // how pools call a type
	order []*model.InstanceType          // types printed, in order, without what pools add to their prices
}

func (p *printer) line(head string, parts ...string) {
	p.out.WriteString(head)
	for _, part := range parts {
		if part != "" {
			p.out.WriteString(" " + part)
		}
	}
	p.out.WriteByte('\n')
}

// option writes key=value unless the value is the default.
func option(key, value, fallback string) string {
	if value == fallback {
		return ""
	}
	return key + "=" + outer(value)
}

// when writes a word if it holds.
func when(holds bool, word string) string {
	if holds {
		return word
	}
	return ""
}

func (p *printer) decide(policy *model.Policy) {
	parts := []string{"now=" + timeText(p.s.Now)}
	if policy != nil {
		parts = append(parts, "max-types="+strconv.Itoa(policy.MaxTypes), "work="+strconv.Itoa(policy.Work),
			option("premium", realText(policy.PreferencePremium), realText(model.DefaultPolicy().PreferencePremium)),
			option("allowance", FormatPrice(policy.PreferenceAllowance), FormatPrice(model.DefaultPolicy().PreferenceAllowance)),
			option("spot-pool-share", realText(policy.MaxSpotPoolShare), realText(model.DefaultPolicy().MaxSpotPoolShare)),
			option("fewer-nodes", realText(policy.NodeCountPremium), realText(model.DefaultPolicy().NodeCountPremium)),
			when(policy.IgnorePreferences, "preferences=ignore"), when(policy.RelaxMinValues, "min-values=best-effort"),
			when(!policy.ReservedCapacity, "reservations=ignore"),
			option("hysteresis", realText(policy.Hysteresis), realText(model.DefaultPolicy().Hysteresis)),
			option("payback", policy.Payback.String(), model.DefaultPolicy().Payback.String()),
			rebalance(policy),
			when(policy.SpotToSpot, "spot-to-spot=replace"),
			when(policy.TerminateFirstDrift, "terminate-first-drift"), when(policy.TerminateFirstRepair, "terminate-first-repair"))
	}
	p.line("decide", parts...)
}

func rebalance(policy *model.Policy) string {
	if policy.RebalancePremium == nil {
		return ""
	}
	return "rebalance=" + realText(*policy.RebalancePremium)
}

func realText(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

func timeText(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

func (p *printer) header() {
	if extended := p.s.Resources[len(model.NewAxis().Names()):]; len(extended) > 0 {
		parts := make([]string, len(extended))
		for i, name := range extended {
			parts[i] = outerName(name)
		}
		p.line("resources", parts...)
	}
	standard := model.NewLabelSet(defaultWellKnown()...)
	var more []string
	missing := false
	for _, key := range slices.Sorted(maps.Keys(p.s.WellKnown)) {
		if !standard.Has(key) {
			more = append(more, outerName(key))
		}
	}
	for key := range standard {
		missing = missing || !p.s.WellKnown.Has(key)
	}
	switch {
	case missing:
		all := []string{"only"}
		for _, key := range slices.Sorted(maps.Keys(p.s.WellKnown)) {
			all = append(all, outerName(key))
		}
		p.line("well-known", all...)
	case len(more) > 0:
		p.line("well-known", more...)
	}
}

// types prints every type of every pool once. Types that print alike are one;
// types of one name that differ get a number behind their reference.
func (p *printer) types() {
	byText := map[string]string{}
	taken := map[string]bool{}
	for i := range p.s.Pools {
		for _, t := range p.s.Pools[i].Types {
			if _, done := p.refs[t]; done {
				continue
			}
			bare := t.Without(p.s.Pools[i].Extras)
			text := p.instanceType(t.Name, bare)
			if ref, known := byText[text]; known {
				p.refs[t] = ref
				continue
			}
			ref := t.Name
			for n := 2; taken[ref]; n++ {
				ref = t.Name + "/" + strconv.Itoa(n)
			}
			taken[ref] = true
			byText[text], p.refs[t], p.refs[bare] = ref, ref, ref
			p.order = append(p.order, bare)
			p.out.WriteString(p.instanceType(ref, bare))
		}
	}
}

// instanceType returns the lines of a type.
func (p *printer) instanceType(ref string, t *model.InstanceType) string {
	def := &typeDef{ref: ref, arch: concrete(t.Requirements, model.LabelArch), os: concrete(t.Requirements, model.LabelOS)}
	def.InstanceType = *t
	quotes := shortOffers(t.Offerings)
	labels, ok := beyond(def.defaults(), t.Requirements)
	if !ok || len(def.arch) == 0 || len(def.os) == 0 {
		def.bare, def.arch, def.os = true, []string{"amd64"}, []string{"linux"}
		labels = t.Requirements
	}
	parts := []string{when(def.bare, "bare"), option("name", t.Name, ref)}
	parts = append(parts, p.options(t.Capacity, machine())...)
	if !t.Allocatable.Equal(usable(t.Capacity)) {
		parts = append(parts, "allocatable="+outer(p.list(t.Allocatable)))
	}
	if len(t.VolumeLimits) > 0 {
		parts = append(parts, "volumes="+outer(written(t.VolumeLimits, volumeLimit)))
	}
	parts = append(parts, option("devices", nestedText(t.Devices), keywordNone))
	parts = append(parts, option("arch", innerList(def.arch), "amd64"), option("os", innerList(def.os), "linux"), quotes)
	if len(labels) > 0 {
		parts = append(parts, "labels="+outer(requirements(labels)))
	}
	q := printer{axis: p.axis}
	q.line("type "+outerName(ref), parts...)
	if quotes == "" {
		for _, o := range t.Offerings {
			q.offer(ref, o)
		}
	}
	return q.out.String()
}

// concrete returns the listed values of a label.
func concrete(rs model.Requirements, label string) []string {
	if r, ok := rs.Get(label); ok && !r.Complement {
		return r.Values
	}
	return nil
}

// shortOffers writes offerings as zones=, spot= and on-demand=, or "" when
// they cannot be written that way.
func shortOffers(offers []model.Offering) string {
	var zones, cts []string
	for _, o := range offers {
		if (o.CapacityType != model.Spot && o.CapacityType != model.OnDemand) || o.Zone == "" {
			return ""
		}
		if !slices.Contains(zones, o.Zone) {
			zones = append(zones, o.Zone)
		}
		if !slices.Contains(cts, o.CapacityType) {
			cts = append(cts, o.CapacityType)
		}
	}
	if len(offers) == 0 {
		return ""
	}
	parts := []string{"zones=" + outer(innerList(zones))}
	for _, ct := range cts {
		parts = append(parts, ct+"="+outer(quoteText(offers, ct, len(zones))))
	}
	for _, by := range []string{"", "by=ct"} {
		text := strings.TrimSuffix(strings.Join(parts, " ")+" "+by, " ")
		tokens, err := tokenize(text)
		if err != nil {
			return ""
		}
		d := &directive{}
		d.add(tokens)
		if got := readOfferings(d); d.err == nil && slices.EqualFunc(got, offers, sameOffering) {
			return text
		}
	}
	return ""
}

// quoteText writes the prices of a capacity type: one for all zones if it is
// the same in each.
func quoteText(offers []model.Offering, ct string, zones int) string {
	var all []string
	var texts []string
	for _, o := range offers {
		if o.CapacityType == ct {
			text := FormatPrice(o.Price) + when(!o.Available, "!")
			texts = append(texts, text)
			all = append(all, inner(o.Zone)+":"+text)
		}
	}
	if len(texts) == zones && len(slices.Compact(slices.Clone(texts))) == 1 {
		return texts[0]
	}
	return strings.Join(all, ",")
}

func sameOffering(a, b model.Offering) bool {
	return a.Zone == b.Zone && a.CapacityType == b.CapacityType && a.ReservationID == b.ReservationID &&
		a.ReservationLeft == b.ReservationLeft && a.Price == b.Price && a.Available == b.Available && a.Full == b.Full &&
		slices.EqualFunc(a.Requirements, b.Requirements, sameRequirement)
}

func (p *printer) offer(ref string, o model.Offering) {
	labels, ok := beyond(offering(o.Zone, o.CapacityType).Requirements, o.Requirements)
	if !ok {
		labels = o.Requirements
	}
	parts := []string{when(!o.Available, "unavailable"), when(o.Full, "full"), option("reservation", o.ReservationID, ""), when(!ok, "bare")}
	if o.ReservationLeft != 0 {
		parts = append(parts, "left="+strconv.FormatInt(o.ReservationLeft, 10))
	}
	if len(labels) > 0 {
		parts = append(parts, "labels="+outer(requirements(labels)))
	}
	p.line(fmt.Sprintf("offer %s %s %s %s", outerName(ref), outerName(o.Zone), outerName(o.CapacityType), FormatPrice(o.Price)), parts...)
}

func (p *printer) pool(pool *model.Pool) {
	parts := []string{option("weight", strconv.Itoa(int(pool.Weight)), "0")}
	if len(pool.Limits) > 0 {
		parts = append(parts, "limits="+outer(p.listEntries(pool.Limits)))
	}
	if !pool.Usage.Equal(poolUsage(p.s, pool.Name)) {
		parts = append(parts, "usage="+outer(p.list(pool.Usage)))
	}
	parts = append(parts, option("taints", taints(pool.Taints), keywordNone))
	if len(pool.Requirements) > 0 {
		parts = append(parts, "requires="+outer(requirements(pool.Requirements)))
	}
	if !slices.EqualFunc(pool.Types, p.order, func(a, b *model.InstanceType) bool { return p.refs[a] == p.refs[b] }) {
		refs := make([]string, len(pool.Types))
		for i, t := range pool.Types {
			refs[i] = p.refs[t]
		}
		parts = append(parts, "types="+outer(innerList(refs)))
	}
	if len(pool.Extras) > 0 {
		parts = append(parts, "extras="+outer(extras(pool.Extras)))
	}
	if v := pool.Aims.PreferencePremium; v != nil {
		parts = append(parts, "premium="+realText(*v))
	}
	if v := pool.Aims.PreferenceAllowance; v != nil {
		parts = append(parts, "allowance="+FormatPrice(*v))
	}
	if v := pool.Aims.MaxSpotPoolShare; v != nil {
		parts = append(parts, "spot-pool-share="+realText(*v))
	}
	parts = append(parts, option("on-demand-share", realText(pool.Aims.OnDemandShare), realText(0)))
	if len(pool.Disruption.Allowed) > 0 {
		parts = append(parts, "budgets="+budgets(pool.Disruption.Allowed))
	}
	parts = append(parts, option("halted", pool.Disruption.Halted, ""), when(pool.Disruption.Probing, "probing"), option("policy", string(pool.Disruption.Policy), ""), when(pool.Disruption.Never, "consolidate-after=Never"), paid(&pool.Aims),
		p.static(pool), option("unavailable", pool.Unavailable, unavailable(pool)), option("template", pool.Template, ""))
	parts = append(parts, p.counts(pool)...)
	p.line("pool "+outerName(pool.Name), parts...)
}

// shape writes a shape, and its key if that is not its identity.
func (p *printer) shape(s *model.Shape) []string {
	return []string{p.shapeText(s), option("key", s.Key, s.Identity(p.Names()))}
}

// pods writes a shape and its pods, and where they run: on one line if nothing
// but names tells the pods apart, else one line per pod.
func (p *printer) pods(pending model.Pending, on string) {
	shape := slices.Concat([]string{on}, p.peer(pending), p.shape(pending.Shape))
	same := len(pending.Pods) > 0
	for _, pod := range pending.Pods {
		first := pending.Pods[0]
		same = same && pod.UID == pod.Key() && slices.Equal(podFacts(pod), podFacts(first))
	}
	if same {
		shape = append(shape, podFacts(pending.Pods[0])...)
		p.line("pods "+outerName(strings.Join(ranges(pending.Pods), ",")), shape...)
		return
	}
	p.line("pods", shape...)
	for _, pod := range pending.Pods {
		p.line("pod "+outerName(shortName(pod)), append(podFacts(pod), option("uid", pod.UID, pod.Key()))...)
	}
}

// peer writes how selectors see the pods.
func (p *printer) peer(pending model.Pending) []string {
	var parts []string
	home := pending.Peer.Namespace
	strays := slices.ContainsFunc(pending.Pods, func(pod model.Pod) bool { return pod.Namespace != home })
	if p.asked && strays || (!p.asked || len(pending.Pods) == 0) && home != usualNamespace(p.asked) {
		parts = append(parts, "namespace="+outer(home))
	}
	if len(pending.Peer.NamespaceLabels) > 0 {
		parts = append(parts, "namespace-labels="+outer(labels(pending.Peer.NamespaceLabels)))
	}
	if len(pending.Peer.Labels) > 0 {
		parts = append(parts, "labels="+outer(labels(pending.Peer.Labels)))
	}
	return parts
}

func podFacts(pod model.Pod) []string {
	created := ""
	if !pod.Created.IsZero() {
		created = "created=" + timeText(pod.Created)
	}
	return []string{created, option("planned", pod.Planned, ""), option("from", pod.From, ""), option("buffer", pod.Buffer, ""), option("claims", pod.Claims, ""), option("workload", pod.Workload, ""), option("group", pod.Group, "")}
}
