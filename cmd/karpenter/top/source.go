// SPDX-License-Identifier: Apache-2.0

package top

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/cmd/karpenter/recording"
)

// Source is where objects come from.
type Source interface {
	client.Reader
	// Changed is sent to when objects have changed. One message may stand for many
	// changes.
	Changed() <-chan struct{}
	// Now is the time at the source.
	Now() time.Time
	// Trouble says why what is read may be out of date; "" = it is not.
	Trouble() string
}

// Replay is a Source that plays a recording.
type Replay struct {
	*recording.State
	of      *recording.Recording
	speed   float64 // seconds of the recording in one
	changed chan struct{}
	began   time.Time
}

// frame is how often a Replay looks for changes.
const frame = 100 * time.Millisecond

// NewReplay plays the recording from its start, until ctx is done.
func NewReplay(ctx context.Context, r *recording.Recording, speed float64) *Replay {
	p := &Replay{State: r.At(r.Started), of: r, speed: speed, changed: make(chan struct{}, 1), began: time.Now()}
	go p.play(ctx)
	return p
}

func (p *Replay) play(ctx context.Context) {
	tick := time.NewTicker(frame)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if p.Advance(p.Now()) {
			select {
			case p.changed <- struct{}{}:
			default:
			}
		}
	}
}

// Changed implements Source.
func (p *Replay) Changed() <-chan struct{} { return p.changed }

// Now implements Source. Time stands still after the end of the recording.
func (p *Replay) Now() time.Time {
	now := p.of.Started.Add(time.Duration(float64(time.Since(p.began)) * p.speed))
	if end := p.of.Ended(); now.After(end) {
		return end
	}
	return now
}

// Trouble implements Source.
func (p *Replay) Trouble() string { return "" }

// Until returns what there is at a moment of the recording, and everything that
// happened until then, as it would have been shown live.
func Until(ctx context.Context, r *recording.Recording, prices Prices, at time.Time) (View, []Entry, error) {
	state := r.At(r.Started)
	var view View
	var happened []Entry
	seen := false
	for now := r.Started; ; now = now.Add(settle) {
		if now.After(at) {
			now = at
		}
		if state.Advance(now) || !seen {
			objects, err := Read(ctx, state)
			if err != nil {
				return View{}, nil, err
			}
			after := Of(objects, prices, now)
			if seen {
				happened = append(happened, Between(&view, &after)...)
			}
			view, seen = after, len(after.Nodes)+len(after.Workloads) > 0
		}
		if now.Equal(at) {
			view.Now = at
			return view, happened, nil
		}
	}
}
