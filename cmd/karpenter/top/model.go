// SPDX-License-Identifier: Apache-2.0

package top

import (
	"context"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"karpenter/cmd/karpenter/situation"
)

const (
	// settle is how long changes are gathered before they are shown, since one cause
	// has many effects.
	settle = 300 * time.Millisecond
	// askAgain is the least time between two proofs. After one that took long it is
	// longer, so that the view takes at most a tenth of one CPU.
	askAgain = 5 * time.Second
	restFor  = 10
)

// Options is what a Model needs.
type Options struct {
	Source Source
	// Reader reads the Source for the planner.
	Reader *situation.Reader
	// Prices are those of nodes that Karpenter publishes no price of; nil = none.
	Prices Prices
	Title  string
	Hints  []string
	Style  Style
	// Reports are lines that the program which started this one has to say; nil =
	// there are none.
	Reports <-chan string
	// Selected is called with the node that was selected last.
	Selected func(node string)
}

// Model is the live view, as a program of bubbletea.
type Model struct {
	Options
	ctx           context.Context
	screen        Screen
	width, height int
	answers       *Answers
	asking        bool
	asked         time.Time     // when the last proof ended
	took          time.Duration // that proof
	held          bool          // the user holds the picture
	seen          bool          // there was a View before
}

// The messages of a Model.
type (
	changedMsg struct{}
	tickMsg    struct{}
	readMsg    struct {
		objects *Objects
		err     error
	}
	answersMsg struct {
		answers *Answers
		err     error
		took    time.Duration
	}
	detailMsg struct {
		detail *Detail
		err    error
	}
	reportMsg string
)

// NewModel returns a Model that works until ctx is done.
func NewModel(ctx context.Context, o Options) *Model {
	return &Model{Options: o, ctx: ctx, width: 80, height: 24, screen: Screen{Title: o.Title, Hints: o.Hints, Order: ByName, Keys: true}}
}

// Init implements tea.Model.
func (m *Model) Init() tea.Cmd {
	return tea.Batch(m.read, m.await, tick(), m.report)
}

func tick() tea.Cmd { return tea.Tick(time.Second, func(time.Time) tea.Msg { return tickMsg{} }) }

// await waits for the next change, and a moment for those that come with it.
func (m *Model) await() tea.Msg {
	select {
	case <-m.ctx.Done():
		return nil
	case <-m.Source.Changed():
	}
	select {
	case <-m.ctx.Done():
		return nil
	case <-time.After(settle):
	}
	return changedMsg{}
}

// report waits for a line of the program that started this one.
func (m *Model) report() tea.Msg {
	if m.Reports == nil {
		return nil
	}
	select {
	case <-m.ctx.Done():
		return nil
	case text, open := <-m.Reports:
		if !open {
			return nil
		}
		return reportMsg(text)
	}
}

func (m *Model) read() tea.Msg {
	objects, err := Read(m.ctx, m.Source)
	return readMsg{objects, err}
}

func (m *Model) ask() tea.Msg {
	began := time.Now()
	answers, err := Ask(m.ctx, m.Reader, m.Source.Now())
	return answersMsg{answers, err, time.Since(began)}
}

// Update implements tea.Model.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		return m, m.press(msg.String())
	case changedMsg:
		return m, tea.Batch(m.read, m.await)
	case tickMsg:
		if !m.held {
			m.screen.View.Now, m.screen.Trouble = m.Source.Now(), m.Source.Trouble()
		}
		return m, tea.Batch(tick(), m.prove())
	case readMsg:
		return m, m.show(msg)
	case answersMsg:
		m.answered(msg)
	case detailMsg:
		m.screen.Detail = msg.detail
		if msg.err != nil {
			m.screen.Detail = &Detail{Title: "karpenter explain", Lines: strings.Split(msg.err.Error(), "\n")}
		}
	case reportMsg:
		m.happened([]Entry{{m.Source.Now(), Trouble, string(msg)}})
		return m, m.report
	}
	return m, nil
}

// prove has the planner asked, if it was not for long enough.
func (m *Model) prove() tea.Cmd {
	if m.asking || m.held || !m.seen || m.answers != nil && time.Since(m.asked) < max(askAgain, restFor*m.took) {
		return nil
	}
	m.asking = true
	return m.ask
}

// show takes over what was read.
func (m *Model) show(msg readMsg) tea.Cmd {
	if msg.err != nil {
		m.screen.Trouble = msg.err.Error()
		return nil
	}
	if m.held {
		return nil
	}
	after := Of(msg.objects, m.prices, m.Source.Now())
	if m.seen {
		m.happened(Between(&m.screen.View, &after))
	} else {
		m.happened([]Entry{{after.Now, "now", Standing(&after)}})
	}
	m.follow(&after)
	m.screen.View, m.seen = after, true
	return m.prove()
}

// prices returns what a node costs, as Karpenter publishes it or else by the list.
func (m *Model) prices(instanceType, zone, capacityType string) (float64, bool) {
	if m.answers != nil && m.answers.Prices != nil {
		if price, known := m.answers.Prices(instanceType, zone, capacityType); known {
			return price, true
		}
	}
	if m.Prices != nil {
		return m.Prices(instanceType, zone, capacityType)
	}
	return 0, false
}

// follow keeps the node selected that is.
func (m *Model) follow(after *View) {
	if m.screen.Tab != NodesTab || m.screen.Selected >= len(m.screen.View.Nodes) {
		return
	}
	selected := m.selected()
	key := selected.key()
	for i, n := range m.screen.Order.sorted(after.Nodes) {
		if n.key() == key {
			m.screen.Selected = i
			return
		}
	}
	m.screen.Selected = max(0, min(m.screen.Selected, len(after.Nodes)-1))
}

// selected returns the node that is selected; there must be one.
func (m *Model) selected() Node { return m.screen.Order.sorted(m.screen.View.Nodes)[m.screen.Selected] }

func (m *Model) happened(entries []Entry) {
	all := append(m.screen.Happened, entries...)
	m.screen.Happened = all[max(0, len(all)-MostHappened):]
}

func (m *Model) answered(msg answersMsg) {
	m.asking, m.asked, m.took = false, time.Now(), msg.took
	if msg.err != nil {
		m.screen.Bound = Bound{At: m.Source.Now(), Missing: strings.ReplaceAll(msg.err.Error(), "\n", "; ")}
		if m.answers == nil {
			m.answers = &Answers{Bound: m.screen.Bound}
		}
		return
	}
	fresh := m.answers == nil || m.answers.Prices == nil && msg.answers.Prices != nil
	m.answers, m.screen.Bound = msg.answers, msg.answers.Bound
	if m.held || !fresh && m.screen.View.Unpriced == 0 {
		return
	}
	if fresh { // only now are the prices known
		m.seen, m.screen.Happened = false, nil
	}
	if msg := m.read().(readMsg); msg.err == nil {
		m.show(msg)
	}
}

// View implements tea.Model.
func (m *Model) View() tea.View {
	v := tea.NewView(strings.TrimSuffix(Render(&m.screen, m.width, m.height, m.Style), "\n"))
	v.AltScreen = true
	v.WindowTitle = "karpenter top"
	return v
}
