package topology

import (
	"slices"
	"strconv"
	"strings"

	"karpenter/model"
)

// peer numbers a peer.
func (c *compiler) peer(p *model.Peer) int {
	text := peerText(p)
	i, ok := c.peers[text]
	if !ok {
		i = len(c.known)
		c.peers[text], c.known = i, append(c.known, p)
	}
	return i
}

// selector returns the one for equal selectors.
func (c *compiler) selector(s *model.PodSelector) *selector {
	text := selectorText(s)
	sel, ok := c.selectors[text]
	if !ok {
		sel = &selector{PodSelector: s}
		c.selectors[text] = sel
	}
	return sel
}

// picks reports whether the selector picks a peer.
func (c *compiler) picks(s *selector, peer int) bool {
	for len(s.picks) <= peer {
		s.picks = append(s.picks, 0)
	}
	if s.picks[peer] == 0 {
		s.picks[peer] = 1
		if s.Selects(c.known[peer]) {
			s.picks[peer] = 2
		}
	}
	return s.picks[peer] == 2
}

func (c *compiler) all(selectors []*selector, peer int) bool {
	return !slices.ContainsFunc(selectors, func(s *selector) bool { return !c.picks(s, peer) })
}

func peerText(p *model.Peer) string {
	var b strings.Builder
	b.WriteString(p.Namespace)
	for _, labels := range [][]model.Label{p.NamespaceLabels, p.Labels} {
		b.WriteByte('|')
		for _, l := range labels {
			b.WriteString(l.Key)
			b.WriteByte('=')
			b.WriteString(l.Value)
			b.WriteByte(',')
		}
	}
	return b.String()
}

func selectorText(s *model.PodSelector) string {
	var b strings.Builder
	for _, ns := range s.Namespaces {
		b.WriteString(ns)
		b.WriteByte(',')
	}
	b.WriteString(strconv.FormatBool(s.ByNamespace))
	requirementsText(&b, s.NamespaceLabels)
	b.WriteString(strconv.FormatBool(s.Nothing))
	requirementsText(&b, s.Labels)
	return b.String()
}

func requirementsText(b *strings.Builder, rs model.Requirements) {
	for _, r := range rs {
		b.WriteByte('|')
		b.WriteString(r.Key)
		b.WriteString(strconv.FormatBool(r.Complement))
		b.WriteString(strconv.FormatBool(r.Present))
		for _, v := range r.Values {
			b.WriteString(strconv.Quote(v))
		}
		for _, bound := range []model.Bound{r.Gte, r.Lte} {
			if b.WriteByte(' '); bound.Set {
				b.WriteString(strconv.FormatInt(bound.N, 10))
			}
		}
	}
	b.WriteByte(';')
}

func termText(t *model.PodTerm) string { return t.Key + " " + selectorText(&t.Select) }
