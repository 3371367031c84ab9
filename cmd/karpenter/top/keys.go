// SPDX-License-Identifier: Apache-2.0

package top

import (
	"errors"

	tea "charm.land/bubbletea/v2"
)

// press does what a key asks for.
func (m *Model) press(key string) tea.Cmd {
	s := &m.screen
	switch {
	case key == "q" || key == "ctrl+c":
		return tea.Quit
	case s.Help:
		s.Help = false
		return nil
	case s.Detail != nil:
		m.scroll(key)
		return nil
	}
	switch key {
	case "?", "h":
		s.Help = true
	case "tab":
		s.Tab, s.Selected = (s.Tab+1)%tabs, 0
	case "s":
		key := ""
		if s.Tab == NodesTab && len(s.View.Nodes) > 0 {
			key = s.Order.sorted(s.View.Nodes)[s.Selected].key()
		}
		s.Order = s.Order.next()
		for i, n := range s.Order.sorted(s.View.Nodes) {
			if s.Tab == NodesTab && n.key() == key {
				s.Selected = i
			}
		}
	case "space", " ":
		m.held = !m.held
		s.Trouble = ""
		if m.held {
			s.Trouble = "held: space goes on"
			return nil
		}
		return m.read
	case "enter":
		return m.explain()
	default:
		s.Selected = moved(key, s.Selected, m.rows(), m.height/2)
	}
	return nil
}

// moved returns the row that a key leads to.
func moved(key string, from, rows, page int) int {
	switch key {
	case "up", "k":
		from--
	case "down", "j":
		from++
	case "pgup":
		from -= page
	case "pgdown":
		from += page
	case "home", "g":
		from = 0
	case "end", "G":
		from = rows - 1
	}
	return max(0, min(from, rows-1))
}

// scroll moves the text that covers the list, or closes it.
func (m *Model) scroll(key string) {
	d := m.screen.Detail
	switch key {
	case "esc", "enter", "backspace", "left":
		m.screen.Detail = nil
	default:
		d.From = moved(key, d.From, max(1, len(d.wrapped(m.width))-m.height/2), m.height/2)
	}
}

// rows returns how many rows can be selected.
func (m *Model) rows() int {
	switch m.screen.Tab {
	case NodesTab:
		return len(m.screen.View.Nodes)
	case PodsTab:
		return len(m.screen.View.Waiting())
	}
	return 0
}

// explain has the selected row explained.
func (m *Model) explain() tea.Cmd {
	if m.screen.Selected >= m.rows() {
		return nil
	}
	answers := m.answers
	about := func(make func(*Answers) (*Detail, error)) tea.Cmd {
		m.screen.Detail = &Detail{Title: "karpenter explain", Lines: []string{"planning …"}}
		return func() tea.Msg {
			if answers == nil {
				return detailMsg{err: errors.New("the planner has not seen the cluster yet; try again in a few seconds")}
			}
			d, err := make(answers)
			return detailMsg{d, err}
		}
	}
	if m.screen.Tab == PodsTab {
		w := m.screen.View.Waiting()[m.screen.Selected]
		return about(func(a *Answers) (*Detail, error) { return a.Pod(w.Namespace, w.First) })
	}
	n := m.selected()
	if m.Selected != nil {
		m.Selected(n.Name)
	}
	return about(func(a *Answers) (*Detail, error) { return a.Node(&n) })
}
