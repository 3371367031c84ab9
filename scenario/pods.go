// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"karpenter/model"
)

// maxPods is how many pods a situation may name, ranges counted out.
const maxPods = 1_000_000

// defaultNamespace is the namespace that need not be written.
const defaultNamespace = "default"

// shapeForm is how a shape is written.
const shapeForm = "cpu= mem= and other resources, select= affinity= prefer= tolerate= priority= spread= near= anti= ports= " +
	"volumes= volumes-in= devices= devices-in= group-in= refused= key="

// shape reads the part of a line that describes a pod spec.
func (b *builder) shape(d *directive) *model.Shape {
	s := &model.Shape{
		Requests:    d.quantities(b.axis, podBase()),
		Selector:    read(d, "select", nil, parseRequirements),
		Terms:       read(d, "affinity", nil, parseTerms),
		Preferences: read(d, "prefer", nil, each(preferenceOf)),
		Tolerations: read(d, "tolerate", nil, parseTolerations),
		Priority:    read(d, "priority", 0, parseWhole32),
		Spread:      read(d, "spread", nil, each(spreadOf)),
		PodTerms:    read(d, "near", nil, each(termOf)),
		HostPorts:   read(d, "ports", nil, parsePorts),
		Volumes:     read(d, "volumes", nil, each(volumesOf)),
		VolumeTerms: read(d, "volumes-in", nil, parseTerms),
		Claims:      nestedList[model.DeviceClaim](b, d, "devices"),
		DeviceTerms: read(d, "devices-in", nil, parseTerms),
		GroupTerms:  read(d, "group-in", nil, parseTerms),
		Refused:     read(d, "refused", nil, names),
	}
	s.PodTerms = append(s.PodTerms, read(d, "anti", nil, each(antiTermOf))...)
	s.Key = d.text("key", s.Identity(b.Names()))
	return s
}

// podBase is what every pod requests.
func podBase() model.Resources { return model.Resources{}.With(model.Pods, 1) }

// shapeText writes a shape without its key.
func (x axis) shapeText(s *model.Shape) string {
	parts := x.options(s.Requests, podBase())
	add := func(key, value string) { parts = append(parts, key+"="+outer(value)) }
	if len(s.Selector) > 0 {
		add("select", requirements(s.Selector))
	}
	if len(s.Terms) > 0 {
		add("affinity", terms(s.Terms))
	}
	if len(s.Preferences) > 0 {
		add("prefer", written(s.Preferences, preference))
	}
	if len(s.Tolerations) > 0 {
		add("tolerate", tolerations(s.Tolerations))
	}
	if s.Priority != 0 {
		add("priority", strconv.Itoa(int(s.Priority)))
	}
	if len(s.Spread) > 0 {
		add("spread", written(s.Spread, spread))
	}
	for _, o := range podTerms(s.PodTerms) {
		add(o[0], o[1])
	}
	if len(s.HostPorts) > 0 {
		add("ports", ports(s.HostPorts))
	}
	if len(s.Volumes) > 0 {
		add("volumes", written(s.Volumes, volumes))
	}
	if len(s.VolumeTerms) > 0 {
		add("volumes-in", terms(s.VolumeTerms))
	}
	if len(s.Claims) > 0 {
		add("devices", nestedText(s.Claims))
	}
	if len(s.DeviceTerms) > 0 {
		add("devices-in", terms(s.DeviceTerms))
	}
	if len(s.GroupTerms) > 0 {
		add("group-in", terms(s.GroupTerms))
	}
	if len(s.Refused) > 0 {
		add("refused", phraseList(s.Refused))
	}
	return strings.Join(parts, " ")
}

// ShapeText writes a shape without its key, for people. The names are those of
// the axis of s.
func ShapeText(s *model.Shape, names []string) string {
	x := axis{model.NewAxis()}
	for _, n := range names {
		x.Index(n)
	}
	return x.shapeText(s)
}

func (b *builder) daemonset(d *directive) error {
	name := d.name("the name of the DaemonSet, as in daemonset kube-system/logger cpu=100m")
	b.s.Daemons = append(b.s.Daemons, model.Daemon{Name: name, Shape: b.shape(d)})
	return d.done(shapeForm)
}

// group is what a pods line says about all its pods.
type group struct {
	shape *model.Shape
	peer  model.Peer
	named bool // the namespace was written
	used  bool // some Pending came of it
	on    int  // the node they run on and may leave; -1 = they need a place
}

// pods reads one shape and the pods that have it. Lines with equal shapes and
// labels are one Pending for each namespace.
func (b *builder) pods(d *directive) error {
	shape := b.shape(d)
	if known, ok := b.shapes[shape.Key]; !ok {
		b.shapes[shape.Key] = shape
	} else if known.Identity(b.Names()) != shape.Identity(b.Names()) {
		d.fail(fmt.Errorf("key=%s stands for another shape already", shape.Key))
	}
	b.close()
	g := b.group(d, b.shapes[shape.Key])
	b.current = g
	common := b.podOptions(d)
	for len(d.words) > 0 {
		atoms, err := atomize(d.name("names"))
		d.fail(err)
		for _, part := range split(atoms, ",") {
			pods, err := b.expand(part)
			d.fail(err)
			for _, named := range pods {
				pod := common
				pod.Namespace, pod.Name, pod.UID = named.Namespace, named.Name, named.Key()
				b.add(pod, g)
			}
		}
	}
	return d.done("names like web-1..5, on= labels= namespace= namespace-labels=, " + shapeForm + ", created= planned= from= buffer= claims= workload= group=")
}

// podGroup reads "group shop/train min=8 running=2 together=topology.kubernetes.io/zone on=node-1".
func (b *builder) podGroup(d *directive) error {
	g := model.PodGroup{
		Name:     d.name("the name of the PodGroup, as in group shop/train min=8"),
		MinCount: read(d, "min", 0, parseWhole),
		Running:  read(d, "running", 0, parseWhole),
		Refused:  d.text("refused", ""),
		Waits:    d.text("waits", ""),

		Avoid: read(d, "avoid", nil, parsePlaces),

		TopologyKey: d.text("together", ""),
		On:          read(d, "on", nil, names),
	}
	if slices.ContainsFunc(b.s.Groups, func(o model.PodGroup) bool { return o.Name == g.Name }) {
		d.fail(fmt.Errorf("%s is described twice", g.Name))
	}
	b.s.Groups = append(b.s.Groups, g)
	return d.done("min= running= refused= waits= avoid= together= on=")
}

// parsePlaces reads a list such as small:zone-1,large:zone-2.
func parsePlaces(value string) ([]model.Place, error) {
	parts, err := list(value)
	var out []model.Place
	for _, p := range parts {
		if len(p) != 3 || p[0].sign != 0 || p[1].sign != ':' || p[2].sign != 0 {
			return nil, fmt.Errorf("%q is not an instance type and a zone, as in small:zone-1", show(p))
		}
		out = append(out, model.Place{Type: p[0].text, Zone: p[2].text})
	}
	return out, err
}

// placesText writes what parsePlaces reads.
func placesText(places []model.Place) string {
	if len(places) == 0 {
		return keywordNone
	}
	list := make([]string, len(places))
	for i, p := range places {
		list[i] = inner(p.Type) + ":" + inner(p.Zone)
	}
	return strings.Join(list, ",")
}

// close keeps the shape of a line that named no pods.
func (b *builder) close() {
	if b.current != nil && !b.current.used {
		b.join(b.current.peer, b.current)
	}
}

// group reads how selectors see the pods of a line. Where none looks, the
// namespace is left open.
func (b *builder) group(d *directive, shape *model.Shape) *group {
	g := &group{shape: shape, on: -1}
	if name, ok := d.take("on"); ok {
		if at, known := b.byName[name]; known {
			g.on = at
		} else {
			d.fail(fmt.Errorf("on=: there is no node %s", name))
		}
	}
	g.peer.NamespaceLabels = read(d, "namespace-labels", nil, parseLabels)
	g.peer.Labels = b.shared(read(d, "labels", nil, parseLabels), g.peer.NamespaceLabels)
	g.peer.Namespace = usualNamespace(b.asked)
	if value, ok := d.take("namespace"); ok {
		g.peer.Namespace, g.named = value, true
	}
	return g
}

// shared returns the labels of the first pods with equal ones, of themselves and of their
// namespace: as in the controller, such pods have them in common.
func (b *builder) shared(labels, ofNamespace []model.Label) []model.Label {
	text := fmt.Sprintf("%q %q", labels, ofNamespace)
	if b.labels[text] == nil {
		b.labels[text] = labels
	}
	return b.labels[text]
}

// usualNamespace is the namespace of pods whose line does not say.
func usualNamespace(asked bool) string {
	if asked {
		return defaultNamespace
	}
	return ""
}

// add adds a pod named on the line of g.
func (b *builder) add(pod model.Pod, g *group) {
	peer := g.peer
	if b.asked && !g.named {
		peer.Namespace = pod.Namespace
	}
	p := b.join(peer, g)
	p.Pods = append(p.Pods, pod)
}

// join returns the Pending of a shape and a peer, a new one if need be.
func (b *builder) join(peer model.Peer, g *group) *model.Pending {
	g.used = true
	into := &b.s.Pending
	if g.on >= 0 {
		into = &b.s.Nodes[g.on].Movable
	}
	key := fmt.Sprintf("%d %q %q %q %q", g.on, g.shape.Key, peer.Namespace, peer.NamespaceLabels, peer.Labels)
	i, ok := b.pending[key]
	if !ok {
		i = len(*into)
		b.pending[key] = i
		*into = append(*into, model.Pending{Shape: g.shape, Peer: peer})
	}
	return &(*into)[i]
}

// pod reads "pod default/web-1 uid=… created=…", one more pod of the pods
// line above it.
func (b *builder) pod(d *directive) error {
	if b.current == nil {
		return d.errorf("there is no pods line above that says what it looks like")
	}
	name := d.name("the name of the pod")
	pod, named := b.podOptions(d), podNamed(name)
	pod.Namespace, pod.Name = named.Namespace, named.Name
	pod.UID = d.text("uid", pod.Key())
	b.add(pod, b.current)
	return d.done("uid= created= planned= from= buffer= claims= workload= group=")
}

func (b *builder) podOptions(d *directive) model.Pod {
	return model.Pod{
		Created: read(d, "created", model.Pod{}.Created, parseTime),
		Planned: d.text("planned", ""), From: d.text("from", ""), Buffer: d.text("buffer", ""), Claims: d.text("claims", ""), Workload: d.text("workload", ""),
		Group: d.text("group", ""),
	}
}

func podNamed(name string) model.Pod {
	if ns, n, ok := strings.Cut(name, "/"); ok {
		return model.Pod{Namespace: ns, Name: n}
	}
	return model.Pod{Namespace: defaultNamespace, Name: name}
}

// expand turns web-3..5 into web-3, web-4, web-5.
func (b *builder) expand(part []atom) ([]model.Pod, error) {
	if len(part) != 1 || part[0].sign != 0 {
		return nil, fmt.Errorf("invalid pod %q; write names like web-1 or web-1..5", show(part))
	}
	name := part[0].text
	from, last, ok := strings.Cut(name, "..")
	if !ok || part[0].literal {
		b.budget--
		return []model.Pod{podNamed(name)}, nil
	}
	prefix, first := cutNumber(from)
	lo, err1 := strconv.Atoi(first)
	hi, err2 := strconv.Atoi(last)
	if err1 != nil || err2 != nil || lo > hi || hi-lo >= b.budget {
		return nil, fmt.Errorf("invalid range of names %q; write web-1..5, with at most %d pods in all", name, maxPods)
	}
	b.budget -= hi - lo + 1
	var out []model.Pod
	for n := lo; n <= hi; n++ {
		out = append(out, podNamed(prefix+strconv.Itoa(n)))
	}
	return out, nil
}

// cutNumber splits the digits off the end of a name; digits that would not be
// written that way as a number stay with the name.
func cutNumber(name string) (prefix, digits string) {
	i := len(strings.TrimRight(name, "0123456789"))
	for i < len(name)-1 && name[i] == '0' || len(name)-i > 9 {
		i++
	}
	return name[:i], name[i:]
}

// shortName is the name of a pod as people say it.
func shortName(p model.Pod) string {
	if p.Namespace == defaultNamespace && !strings.Contains(p.Name, "/") {
		return p.Name
	}
	return p.Key()
}

// ranges writes pods in the order given, runs of consecutive names as one.
func ranges(pods []model.Pod) []string {
	var out []string
	for i := 0; i < len(pods); {
		prefix, digits := cutNumber(shortName(pods[i]))
		n, err := strconv.Atoi(digits)
		run := 1
		for err == nil && i+run < len(pods) && shortName(pods[i+run]) == prefix+strconv.Itoa(n+run) {
			run++
		}
		name := inner(shortName(pods[i]))
		if run > 1 && !strings.HasPrefix(name, `"`) {
			out = append(out, name+".."+strconv.Itoa(n+run-1))
		} else {
			for j := range run {
				out = append(out, inner(shortName(pods[i+j])))
			}
		}
		i += run
	}
	return out
}

// inOrder returns pods sorted by name, numbers by value.
func inOrder(pods []model.Pod) []model.Pod {
	return slices.SortedFunc(slices.Values(pods), func(a, b model.Pod) int {
		pa, da := cutNumber(shortName(a))
		pb, db := cutNumber(shortName(b))
		na, _ := strconv.Atoi(da)
		nb, _ := strconv.Atoi(db)
		return cmp.Or(strings.Compare(pa, pb), cmp.Compare(na, nb), strings.Compare(a.Key(), b.Key()))
	})
}
