// SPDX-License-Identifier: Apache-2.0

package world_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"karpenter/model"
	"karpenter/scenario"
	"karpenter/world"
)

// TestCases runs the stories in testdata. Each directive is one line; what it
// prints is the transcript.
//
//	node, claim, pod, pool, types, pdb, daemonset, namespace    an object is new or has changed
//	limits NODE DRIVER:N    so many volumes may be attached to a node
//	driver NAME required    the scheduler waits for the driver on nodes
//	buffer NAME PODS    a CapacityBuffer keeps room for so many pods
//	podgroup NAME min=N refused=TEXT together=LABEL whole    a PodGroup is new or has changed
//	delete KIND NAME    an object is gone
//	planned CLAIM PODS, placed NODE PODS, unplaced PODS, mark, unmark, nominate NODE FOR
//	rejected PODGROUPS, placed-groups PODGROUPS    the latest plan has no place for them, or has
//	move CLAIM PODS    planned for pods that run
//	nominations NODE, stale    pods whose status is to be changed
//	pass TIME
//	nodes, pending, peers, pools, usage POOL, costs, daemons, waiting, news, podgroups, adherence
func TestCases(t *testing.T) {
	datadriven.Walk(t, "testdata/cases", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd != "world" {
				d.Fatalf(t, "unknown directive %s", d.Cmd)
			}
			return tell(d.Input)
		})
	})
}

// story is a World and the time in it.
type story struct {
	w    *world.World
	now  time.Time
	news []string
}

func newStory() *story {
	s := &story{w: world.New(model.NewAxis(), model.NewLabelSet(model.LabelZone)), now: scenario.DefaultNow()}
	s.w.OnPending(func(uid string) { s.news = append(s.news, uid) })
	return s
}

func tell(text string) string {
	s := newStory()
	var out strings.Builder
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) > 0 {
			out.WriteString(s.do(words[0], words[1:]))
		}
	}
	return out.String()
}

// options are the words after the name: flags and key=value.
type options map[string]string

func read(words []string) options {
	o := options{}
	for _, w := range words {
		k, v, _ := strings.Cut(w, "=")
		o[k] = v
	}
	return o
}

func (o options) has(flag string) bool { _, ok := o[flag]; return ok }

func (o options) number(key string, preset int64) int64 {
	if !o.has(key) {
		return preset
	}
	return number(o[key])
}

// duration is zero when o does not say.
func (o options) duration(key string) time.Duration {
	if !o.has(key) {
		return 0
	}
	return must(time.ParseDuration(o[key]))
}

func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

// pairs reads a:1,b:2.
func (o options) pairs(key string) map[string]string {
	if o[key] == "" {
		return nil
	}
	out := map[string]string{}
	for _, p := range strings.Split(o[key], ",") {
		k, v, _ := strings.Cut(p, ":")
		out[k] = v
	}
	return out
}

func (s *story) resources(pairs map[string]string) model.Resources {
	var out model.Resources
	for _, name := range slices.Sorted(keys(pairs)) {
		out = out.With(s.w.Axis().Index(name), number(pairs[name]))
	}
	return out
}

func keys(m map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// taints reads key=value:Effect,key:Effect.
func (o options) taints(key string) []model.Taint {
	var out []model.Taint
	for _, text := range strings.FieldsFunc(o[key], func(r rune) bool { return r == ',' }) {
		rest, effect, _ := strings.Cut(text, ":")
		k, v, _ := strings.Cut(rest, "=")
		out = append(out, model.Taint{Key: k, Value: v, Effect: model.Effect(effect)})
	}
	return out
}

// labels reads labels=k:v,… with the short forms pool=, type=, zone=, ct=.
func (o options) labels() map[string]string {
	out := o.pairs("labels")
	if out == nil {
		out = map[string]string{}
	}
	for short, key := range map[string]string{
		"pool": model.LabelNodePool, "type": model.LabelInstanceType, "zone": model.LabelZone, "ct": model.LabelCapacityType,
	} {
		if o.has(short) {
			out[key] = o[short]
		}
	}
	for _, flag := range []string{"registered", "initialized"} {
		if o.has(flag) {
			out["karpenter.sh/"+flag] = "true"
		}
	}
	return out
}

func (s *story) do(command string, words []string) string {
	switch command {
	case "pass":
		s.now = s.now.Add(must(time.ParseDuration(words[0])))
	case "mark":
		s.w.MarkForDeletion(words...)
	case "unmark":
		s.w.Unmark(words...)
	case "nominate":
		s.w.Nominate(words[0], s.now.Add(must(time.ParseDuration(words[1]))))
	case "planned":
		s.w.Planned(s.claim(words[0], options{"pool": "p"}), s.refs(words[1:]))
	case "move":
		s.w.Planned(s.claim(words[0], options{"pool": "p"}), s.bound(words[1:]))
	case "placed":
		s.w.Placed(words[0], s.refs(words[1:]))
	case "unplaced":
		s.w.Unplaced(s.refs(words))
	case "refused", "placed-groups":
		return s.refused(command, words)
	case "limits":
		s.limits(words[0], read([]string{"by=" + strings.Join(words[1:], ",")}).pairs("by"))
	case "driver":
		s.w.RequireDriver(words[0], read(words[1:]).has("required"))
	case "buffer":
		s.buffer(words[0], int(number(words[1])), read(words[2:]))
	case "delete":
		s.delete(words[0], words[1])
	case "nominations":
		return nominations(s.w.Nominations(words[0], ""))
	case "stale":
		return nominations(s.w.StaleNominations())
	case "unconfirmed":
		return fmt.Sprintln("unconfirmed:", strings.Join(s.w.Unconfirmed(s.now), " "))
	case "adherence":
		return fmt.Sprintf("%+v\n", s.w.Adherence())
	case "nodes", "pending", "peers", "pools", "usage", "costs", "waiting", "news", "daemons", "podgroups":
		return s.show(command, words)
	default:
		s.set(command, words[0], read(words[1:]))
	}
	return ""
}

// refused tells that the PodGroups have no place, or that they have.
func (s *story) refused(command string, groups []string) string {
	var names []string
	for _, g := range groups {
		names = append(names, "default/"+g)
	}
	var placed []string
	if command != "refused" {
		names, placed = nil, names
	}
	failures, vain := s.w.Refused(s.now, names, placed)
	var out strings.Builder
	for _, f := range failures {
		fmt.Fprintf(&out, "%s gives back %d nodes, late %t, next after %s\n", f.Group.Name, f.Nodes, f.Late, f.Until.Sub(s.now))
	}
	fmt.Fprintf(&out, "to delete: %s\n", strings.Join(vain, " "))
	return out.String()
}

func nominations(list []world.Nomination) string {
	var out strings.Builder
	for _, n := range list {
		fmt.Fprintf(&out, "%s → %q\n", n.Name, n.Node)
	}
	if len(list) == 0 {
		out.WriteString("no nominations\n")
	}
	return out.String()
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func (s *story) refs(names []string) []model.Pod {
	var out []model.Pod
	for _, pending := range s.w.Snapshot(s.now).Pending {
		for _, p := range pending.Pods {
			if slices.Contains(names, p.Name) {
				out = append(out, p)
			}
		}
	}
	return out
}

// bound returns pods that nodes would lose.
func (s *story) bound(names []string) []model.Pod {
	var out []model.Pod
	for _, n := range s.w.Snapshot(s.now).Nodes {
		for _, pending := range n.Movable {
			for _, p := range pending.Pods {
				if slices.Contains(names, p.Name) {
					out = append(out, p)
				}
			}
		}
	}
	return out
}

func (s *story) delete(kind, name string) {
	switch kind {
	case "node":
		s.w.DeleteNode(name)
	case "claim":
		s.w.DeleteClaim(name)
	case "pod":
		s.w.DeletePod("default", name)
	case "namespace":
		s.w.DeleteNamespace(name)
	case "pool":
		s.w.DeletePool(name)
	case "daemonset":
		s.w.DeleteDaemon("default/" + name)
	case "pdb":
		s.w.DeleteDisruptionBudget("default", name)
	case "buffer":
		s.w.DeleteBuffer("default/" + name)
	case "podgroup":
		s.w.DeletePodGroup("default/" + name)
	default:
		panic("delete " + kind)
	}
}

func (s *story) set(kind, name string, o options) {
	switch kind {
	case "node":
		capacity := s.resources(o.pairs("cap"))
		s.w.SetNode(world.Node{
			Name: name, UID: "uid-" + name, ProviderID: o["id"], Labels: o.labels(), Taints: o.taints("taints"),
			Capacity: capacity, Allocatable: capacity,
			Ready: !o.has("unready"), Deleting: o.has("deleting"), DoNotDisrupt: o.has("do-not-disrupt"),
		})
	case "claim":
		s.w.SetClaim(s.claim(name, o))
	case "pod":
		s.w.SetPod(s.pod(name, o))
	case "namespace":
		s.w.SetNamespace(name, o.labels())
	case "pool":
		budget := int(o.number("budget", 100))
		s.w.SetPool(world.Pool{
			Name: name, Unavailable: o["unavailable"],
			Policy: model.ConsolidationPolicy(o["policy"]), ConsolidateAfter: o.duration("after"), Never: o.has("never"),
			Allowed: func(time.Time, int, model.Reason) int { return budget },
		})
	case "daemonset":
		cpu := o.number("cpu", 1)
		s.w.SetDaemon(world.Daemon{Name: "default/" + name, Shape: &model.Shape{
			Key: "template cpu=" + strconv.FormatInt(cpu, 10), Requests: model.Resources{}.With(model.CPU, cpu).With(model.Pods, 1),
		}})
	case "types":
		var types []*model.InstanceType
		for typeName, cpu := range o.pairs("cpu") {
			t := &model.InstanceType{
				Name: typeName, Capacity: model.Resources{}.With(model.CPU, number(cpu)).With(model.Nodes, 1),
				Offerings: []model.Offering{{Zone: "a", CapacityType: model.Spot, Price: model.Price(number(cpu))}},
			}
			if most := o.pairs("attaches")[typeName]; most != "" {
				t.VolumeLimits = []model.VolumeLimit{{Driver: "ebs", Most: int(number(most))}}
			}
			types = append(types, t)
		}
		s.w.SetTypes(name, types)
	case "podgroup":
		s.w.SetPodGroup(world.PodGroup{Name: "default/" + name, MinCount: int(o.number("min", 0)), Refused: o["refused"], TopologyKey: o["together"], Together: o.has("whole")})
	case "pdb":
		k, v, _ := strings.Cut(o["selector"], ":")
		s.w.SetDisruptionBudget(world.DisruptionBudget{
			Namespace: "default", Name: name, Selector: o["selector"],
			Selects: func(l map[string]string) bool { return l[k] == v },
			Allowed: int(o.number("allowed", 0)), Never: o.has("never"), UnreadyExempt: o.has("unready-exempt"),
		})
	default:
		panic("unknown command " + kind)
	}
}

func (s *story) claim(name string, o options) world.Claim {
	capacity := s.resources(o.pairs("cap"))
	var requirements model.Requirements
	for key, values := range o.pairs("requires") {
		if key == "type" {
			key = model.LabelInstanceType
		}
		requirements = requirements.And(model.NewRequirement(key, model.In, strings.Split(values, "|")...))
	}
	return world.Claim{
		Name: name, UID: "uid-" + name, ProviderID: o["id"], Labels: o.labels(), Requirements: requirements,
		Taints: o.taints("taints"), StartupTaints: o.taints("startup"),
		Requests: s.resources(o.pairs("requests")), Capacity: capacity, Allocatable: capacity,
		Deleting: o.has("deleting") || o.has("terminating"), Terminating: o.has("terminating"),
		Consolidatable: o.has("consolidatable"), Deadline: o.has("deadline"),
		Drifted: s.ago(o, "drifted"), QuietSince: s.ago(o, "quiet"), Created: s.ago(o, "age"), Groups: o.groups(),
	}
}

// groups returns the PodGroups that a claim was created for.
func (o options) groups() []string {
	if o["groups"] == "" {
		return nil
	}
	var out []string
	for _, g := range strings.Split(o["groups"], ",") {
		out = append(out, "default/"+g)
	}
	return out
}

// ago returns the time that long ago, and the zero time when o does not say.
func (s *story) ago(o options, key string) time.Time {
	if !o.has(key) {
		return time.Time{}
	}
	return s.now.Add(-o.duration(key))
}

func (s *story) pod(name string, o options) world.Pod {
	cpu := o.number("cpu", 1)
	uid := "uid-" + name
	if o.has("uid") {
		uid = o["uid"]
	}
	p := world.Pod{
		Namespace: o.namespace(), Name: name, UID: uid, Labels: o.pairs("labels"),
		Created: scenario.DefaultNow().Add(time.Duration(o.number("created", 0)) * time.Second),
		Shape:   o.shape(cpu),
		Node:    o["on"], Nominated: o["nominated"], Awaits: o["awaits"], Pending: o.has("pending"), Terminal: o.has("ended"), Terminating: o.has("ending"),
		Daemon: o.has("daemon"), Static: o.has("static"), Unready: o.has("unready"), Resizing: o.has("resizing"), Stays: o.has("stays"),
		Protected: o.has("protected"), EvictionCost: 1,
	}
	if o.has("group") {
		p.Group = "default/" + o["group"]
	}
	mount(p.Shape, o)
	if o.has("port") {
		p.Shape.HostPorts = []model.HostPort{{IP: "0.0.0.0", Protocol: "TCP", Port: int32(o.number("port", 0))}}
		p.Shape.Key += " port " + o["port"]
	}
	if o.has("of") {
		p.Daemon, p.DaemonSet = true, "default/"+o["of"]
	}
	p.Reschedulable = (!p.Terminal && !p.Terminating || o.has("stateful")) && !p.Daemon && !p.Static
	if o["protected"] != "" {
		p.ProtectedUntil = s.now.Add(must(time.ParseDuration(o["protected"])))
	}
	if o.has("cost") {
		p.EvictionCost = must(strconv.ParseFloat(o["cost"], 64))
	}
	return p
}

// mount gives the pod the volumes in volumes=DRIVER:OWN, and those of the claim
// shared= which are of driver ebs.
func mount(shape *model.Shape, o options) {
	own := o.pairs("volumes")
	for _, driver := range slices.Sorted(keys(own)) {
		shape.Volumes = append(shape.Volumes, model.Volumes{Driver: driver, Own: int(number(own[driver]))})
	}
	if o.has("shared") {
		shape.Volumes = append(shape.Volumes, model.Volumes{Driver: "ebs", Shared: []string{o["shared"]}})
	}
	if len(shape.Volumes) > 0 {
		shape.Key += fmt.Sprint(" ", shape.Volumes)
	}
}

func (s *story) limits(node string, by map[string]string) {
	limits := map[string]int{}
	for driver, n := range by {
		limits[driver] = int(number(n))
	}
	s.w.SetVolumeLimits(node, limits)
}

// buffer has the pods b-1, b-2 and so on for a buffer b.
func (s *story) buffer(name string, n int, o options) {
	o["pending"] = ""
	var pods []world.Pod
	for i := range n {
		pods = append(pods, s.pod(fmt.Sprint(name, "-", i+1), o))
	}
	s.w.SetBuffer("default/"+name, pods)
}

func (s *story) show(what string, words []string) string {
	var out strings.Builder
	snapshot := s.w.Snapshot(s.now)
	switch what {
	case "nodes":
		showNodes(&out, snapshot, read(words))
	case "pools":
		for _, p := range snapshot.Pools {
			fmt.Fprintf(&out, "%s: usage %s; allowed %d", p.Name, p.Usage.Format(snapshot.Resources), p.Disruption.Allowed[model.Empty])
			if p.Unavailable != "" {
				out.WriteString("; " + p.Unavailable)
			}
			if p.Disruption.Policy != "" || p.Disruption.Never {
				fmt.Fprintf(&out, "; %s never=%t", p.Disruption.Policy, p.Disruption.Never)
			}
			out.WriteString("\n")
		}
	case "usage":
		usage, n := s.w.Usage(words[0])
		fmt.Fprintf(&out, "%s: %d nodes, %s\n", words[0], n, usage.Format(snapshot.Resources))
	case "costs":
		fmt.Fprintf(&out, "%v\n", s.w.Costs())
	case "waiting":
		fmt.Fprintf(&out, "waiting: %s\n", strings.Join(s.w.PendingUIDs(), " "))
	case "news":
		fmt.Fprintf(&out, "news: %s\n", strings.Join(s.news, " "))
		s.news = nil
	case "daemons":
		for _, d := range snapshot.Daemons {
			fmt.Fprintf(&out, "%s: %s (%s)\n", d.Name, d.Shape.Requests.Format(snapshot.Resources), d.Shape.Key)
		}
	case "pending":
		showPending(&out, snapshot)
	case "peers":
		showPeers(&out, snapshot)
	case "podgroups":
		for _, g := range snapshot.Groups {
			fmt.Fprintf(&out, "%s: min %d, running %d%s\n", g.Name, g.MinCount, g.Running, strings.TrimSuffix(", "+g.Refused+g.Waits, ", "))
			if len(g.Avoid) > 0 {
				fmt.Fprintf(&out, "  avoids %v\n", g.Avoid)
			}
			if g.TopologyKey != "" {
				fmt.Fprintf(&out, "  one %s, running on %q\n", g.TopologyKey, g.On)
			}
		}
		if len(snapshot.Groups) == 0 {
			out.WriteString("no groups\n")
		}
	}
	return out.String()
}

func showPending(out *strings.Builder, s *model.Snapshot) {
	if len(s.Pending) == 0 {
		out.WriteString("nothing pending\n")
	}
	showPods(out, "", s.Pending)
}

func showPods(out *strings.Builder, indent string, list []model.Pending) {
	for _, pending := range list {
		fmt.Fprintf(out, "%s%s:", indent, pending.Shape.Key)
		for _, p := range pending.Pods {
			fmt.Fprintf(out, " %s", p.Name)
			if p.From != "" {
				fmt.Fprintf(out, "(from %s)", p.From)
			}
			if p.Planned != "" {
				fmt.Fprintf(out, "(to %s)", p.Planned)
			}
		}
		out.WriteString("\n")
	}
}

// showNodes writes a line for each node and, when asked for, its labels, taints
// and disruption.
func showNodes(out *strings.Builder, s *model.Snapshot, o options) {
	if len(s.Nodes) == 0 {
		out.WriteString("no nodes\n")
	}
	for _, n := range s.Nodes {
		fmt.Fprintf(out, "%s", n.Name)
		add := func(cond bool, format string, args ...any) {
			if cond {
				fmt.Fprintf(out, " "+format, args...)
			}
		}
		add(n.Claim != "", "claim=%s", n.Claim)
		add(n.Pool != "", "pool=%s", n.Pool)
		add(n.Deleting, "deleting")
		add(n.Stuck, "stuck")
		add(!n.Initialized, "starting")
		add(!o.has("brief"), "capacity[%s] allocatable[%s]", n.Capacity.Format(s.Resources), n.Allocatable.Format(s.Resources))
		add(!n.Requested.IsZero(), "used[%s]", n.Requested.Format(s.Resources))
		add(!n.DaemonRequested.IsZero(), "daemons[%s]", n.DaemonRequested.Format(s.Resources))
		add(len(n.HostPorts) > 0, "ports%v", n.HostPorts)
		for _, a := range n.Attached {
			out.WriteString(fmt.Sprintf(" %s[%d %v of %d]", a.Driver, a.Own, a.Shared, a.Limit))
		}
		add(n.Price != 0, "price=%d", n.Price)
		add(o.has("labels"), "labels[%s]", n.Labels)
		add(o.has("taints"), "taints%v", n.Taints)
		if o.has("disruption") {
			out.WriteString(disruption(s, &n.Disruption))
		}
		out.WriteString("\n")
		if o.has("movable") {
			showPods(out, "  ", n.Movable)
		}
	}
}

// disruption writes what speaks for and against taking a node away, and after
// the colon what forbids it: what its pods do in parentheses.
func disruption(s *model.Snapshot, d *model.NodeDisruption) string {
	out := fmt.Sprintf(" cost=%g empty=%t consolidatable=%t", d.Cost, d.Empty, d.Consolidatable)
	if d.Settling {
		out += " settling"
	}
	if d.Returned {
		out += " returned"
	}
	if len(d.Together) > 0 {
		out += " together with " + strings.Join(d.Together, ",")
	}
	if !d.Drifted.IsZero() {
		out += fmt.Sprintf(" drifted for %s", s.Now.Sub(d.Drifted))
	}
	if d.Deadline {
		out += " deadline"
	}
	out += ": " + d.Blocked
	if d.Held != "" {
		out += "(" + d.Held + ")"
	}
	return out
}
