// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"strconv"
	"strings"

	"karpenter/model"
)

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

// text tells filters apart that count other sites.
func (f *filter) text() string {
	var b strings.Builder
	b.WriteString(strconv.FormatBool(f.named))
	b.WriteString(strconv.FormatBool(f.chosen == nil))
	for _, alt := range f.chosen {
		requirementsText(&b, alt)
	}
	b.WriteString(strconv.FormatBool(f.honorTaints))
	if f.honorTaints {
		for _, t := range f.tolerations {
			fmt.Fprintf(&b, "%q %t %q %v,", t.Key, t.Exists, t.Value, t.Effect)
		}
	}
	return b.String()
}

func termText(t *model.PodTerm) string { return t.Key + " " + selectorText(&t.Select) }
