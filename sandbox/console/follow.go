// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"strings"
	"sync"
	"time"

	"karpenter/sandbox/fleet"
	"karpenter/sandbox/timeline"
)

// settle is how long changes are gathered before they are shown, for one cause has many effects.
const settle = 300 * time.Millisecond

// Source is a fleet that is watched.
type Source interface {
	View() fleet.View
	// Changed returns a channel that is closed at the next change.
	Changed() <-chan struct{}
}

// Notes takes in what the sandbox itself reports while a console is showing: the first line of each report, for the
// rest is in the logs. It is safe for concurrent use.
type Notes struct {
	wake chan struct{} // holds at most one reminder

	mu    sync.Mutex
	lines []string
}

// NewNotes returns an empty Notes.
func NewNotes() *Notes { return &Notes{wake: make(chan struct{}, 1)} }

// Write takes in one report.
func (n *Notes) Write(report []byte) (int, error) {
	first, _, _ := strings.Cut(string(report), "\n")
	n.mu.Lock()
	n.lines = append(n.lines, strings.TrimSuffix(first, ":"))
	n.mu.Unlock()
	select {
	case n.wake <- struct{}{}:
	default:
	}
	return len(report), nil
}

func (n *Notes) take() []timeline.Entry {
	n.mu.Lock()
	defer n.mu.Unlock()
	var entries []timeline.Entry
	for _, text := range n.lines {
		entries = append(entries, timeline.Entry{Kind: timeline.Trouble, Text: strings.TrimPrefix(text, "sandbox: ")})
	}
	n.lines = nil
	return entries
}

// follow calls show with what there is and what happened since the last call: at once, and when something changes, at
// most once in settle. It returns when ctx is done.
func follow(ctx context.Context, source Source, notes *Notes, show func(*fleet.View, []timeline.Entry)) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	before := source.View()
	for {
		changed := source.Changed()
		after := source.View()
		show(&after, append(timeline.Between(&before, &after), notes.take()...))
		before = after
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-notes.wake:
		}
		pause.Reset(settle)
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
	}
}
