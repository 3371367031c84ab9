// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"strings"

	"karpenter/model"
)

// parseTaints reads "dedicated=ci:NoSchedule,spot:PreferNoSchedule".
func parseTaints(value string) ([]model.Taint, error) {
	parts, err := list(value)
	if err != nil {
		return nil, err
	}
	var out []model.Taint
	for _, p := range parts {
		f, ok := fieldsOf(p)
		if !ok || f.mark == '~' || f.compare != "" || !f.hasEffect {
			return nil, fmt.Errorf("invalid taint %q; write key=value:NoSchedule or key:NoExecute", show(p))
		}
		out = append(out, model.Taint{Key: f.key, Value: f.value, Effect: model.Effect(f.effect)})
	}
	return out, nil
}

// parseTolerations reads "dedicated=ci:NoSchedule,spot,*:NoExecute,*".
func parseTolerations(value string) ([]model.Toleration, error) {
	parts, err := list(value)
	if err != nil {
		return nil, err
	}
	var out []model.Toleration
	for _, p := range parts {
		f, ok := fieldsOf(p)
		if !ok {
			return nil, fmt.Errorf("invalid toleration %q; write key=value:NoSchedule, key[gt=4]:NoSchedule, key:NoSchedule, key, *:NoSchedule or *", show(p))
		}
		out = append(out, model.Toleration{Key: f.key, Exists: f.mark != '=' && f.compare == "", Compare: f.compare, Value: f.value, Effect: model.Effect(f.effect)})
	}
	return out, nil
}

// taintFields is key[=value][:effect]; the mark between key and value is '=',
// or '~' for a toleration that exists and still has a value. A toleration that compares
// numbers is key[gt=value] or key[lt=value] with the brackets written.
type taintFields struct {
	key, value, effect string
	compare            model.Comparison
	mark               byte
	hasEffect          bool
}

func fieldsOf(p []atom) (taintFields, bool) {
	var f taintFields
	take := func() string {
		v, n := valueAt(p)
		p = p[n:]
		return v
	}
	if len(p) == 0 {
		return f, false
	}
	if p[0].text == "*" && !p[0].literal {
		p = p[1:]
	} else {
		f.key = take()
	}
	if len(p) > 0 && (p[0].sign == '=' || p[0].sign == '~') {
		f.mark, p = p[0].sign, p[1:]
		f.value = take()
	}
	if len(p) > 2 && p[0].sign == '[' && p[2].sign == '=' {
		f.compare = comparisons()[p[1].text]
		p = p[3:]
		f.value = take()
		if f.compare == "" || len(p) == 0 || p[0].sign != ']' {
			return f, false
		}
		p = p[1:]
	}
	if len(p) > 0 && p[0].sign == ':' {
		f.hasEffect, p = true, p[1:]
		f.effect = take()
	}
	return f, len(p) == 0
}

// comparisons returns what the words between brackets mean.
func comparisons() map[string]model.Comparison {
	return map[string]model.Comparison{"gt": model.Greater, "lt": model.Less}
}

func taints(ts []model.Taint) string {
	if len(ts) == 0 {
		return keywordNone
	}
	parts := make([]string, len(ts))
	for i, t := range ts {
		mark := "="
		if t.Value == "" {
			mark = ""
		}
		parts[i] = inner(t.Key) + optional(mark, t.Value) + ":" + inner(string(t.Effect))
	}
	return strings.Join(parts, ",")
}

func tolerations(os []model.Toleration) string {
	parts := make([]string, len(os))
	for i, o := range os {
		s := inner(o.Key)
		switch {
		case !o.Exists && o.Compare != "":
			s += "[" + strings.ToLower(string(o.Compare)) + optional("=", o.Value) + "]"
		case !o.Exists:
			s += optional("=", o.Value)
		case o.Value != "":
			s += optional("~", o.Value)
		case o.Key == "":
			s = "*"
		}
		if o.Effect != "" {
			s += ":" + inner(string(o.Effect))
		}
		parts[i] = s
	}
	return strings.Join(parts, ",")
}

// optional writes a value behind its mark; no mark, no value.
func optional(mark, value string) string {
	if mark == "" {
		return ""
	}
	return mark + inner(value)
}
