// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "karpenter/api/v1"
	"karpenter/cmd/karpenter/status"
	"karpenter/cmd/karpenter/top"
	"karpenter/cmd/karpenter/ui"
	"karpenter/model"
	"karpenter/scenario"
	"karpenter/solve"
)

const (
	// planAgain is the least time between two plans of a live page. After one that took
	// long it is longer, so that the page takes at most a tenth of one CPU.
	planAgain = 5 * time.Second
	restFor   = 10
	// unwatched is how long a live page may lag behind what is not watched: the record, and what
	// depends on the time.
	unwatched = 30 * time.Second
	// mostHappened is how much of what happened a live page keeps.
	mostHappened = 10_000
)

// serving is the flags of ui.
type serving struct {
	connection
	snapshot, address string
	open              bool
}

func uiCommand(s surroundings) *cobra.Command {
	var v serving
	c := &cobra.Command{
		Use:   "ui",
		Short: "Serve a page about costs, nodes and decisions to your browser",
		Long: `Serve a read-only page to browsers on this machine: what the cluster costs
beside the proven minimum, a map of the nodes, why pods wait and nodes stay, the
bill by namespace, the catalogue, and what other NodePools would change.

The page works with your rights, and loads nothing from elsewhere. Every user
of this machine can open it, until Ctrl-C.`,
		Example: `  karpenter ui
  karpenter ui --context production --address 127.0.0.1:8080
  karpenter ui --recording cluster.recording
  karpenter ui --snapshot situation.txt`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return v.run(c.Context(), s) },
	}
	flags := c.Flags()
	v.connection.define(c, flags, s)
	whole(c)
	flags.StringVar(&v.snapshot, "snapshot", "", "show the situation in a file that 'karpenter snapshot' printed instead of a cluster; - is standard input")
	flags.StringVar(&v.address, "address", "127.0.0.1:0", "loopback address to listen on; port 0 means any free one")
	flags.BoolVar(&v.open, "open", false, "open the page in a browser")
	return c
}

func (v *serving) run(ctx context.Context, s surroundings) error {
	if v.snapshot != "" && v.recording != "" {
		return usageError{errors.New("--snapshot and --recording: want one of them")}
	}
	l, err := ui.Listen(v.address)
	if err != nil {
		return usageError{fmt.Errorf("--address: %w", err)}
	}
	// What client libraries log would hide the address.
	klog.SetLogger(logr.Discard())
	log.SetLogger(logr.Discard())
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := ui.NewServer()
	follow, err := v.show(ctx, server, s)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	url := "http://" + l.Addr().String()
	if _, err := fmt.Fprintf(s.stdout, "The page is at %s until you press Ctrl-C.\n", url); err != nil {
		return errors.Join(err, l.Close())
	}
	if v.open {
		if err := browse(url); err != nil {
			fmt.Fprintf(s.stderr, "karpenter: cannot open a browser, open %s yourself: %v\n", url, err)
		}
	}
	next(s, "karpenter top", "karpenter plan -f nodepool.yaml")
	go follow()
	return server.Serve(ctx, l)
}

// show shows the first moment, and returns what shows those that follow.
func (v *serving) show(ctx context.Context, server *ui.Server, s surroundings) (func(), error) {
	nothing := func() {}
	if v.snapshot != "" {
		situation, _, err := v.situationFrom(ctx, v.snapshot, "--snapshot", s)
		if err != nil {
			return nothing, err
		}
		planning(s)
		defer doneReading(s)
		server.Show(ui.Moment{Title: filepath.Base(v.snapshot), Source: "snapshot", Situation: situation})
		return nothing, nil
	}
	from, err := v.source(s)
	if err != nil {
		return nothing, err
	}
	w := &watcher{from: from, direct: from.Client, server: server, source: "cluster"}
	defer doneReading(s)
	if v.recording != "" {
		r, err := v.play(from.Scheme)
		if err != nil {
			return nothing, err
		}
		w.source = "recording"
		situation, _, err := from.Live(ctx, from.now)
		if err != nil {
			return nothing, err
		}
		if _, w.happened, err = top.Until(ctx, r, top.PricesOf(situation.Snapshot), from.now); err != nil {
			return nothing, err
		}
		return nothing, w.look(ctx, from.now)
	}
	config, err := v.rest()
	if err != nil {
		return nothing, err
	}
	live, err := top.Watch(ctx, config, from.Scheme, nil)
	if err != nil {
		return nothing, err
	}
	w.direct = from.Client
	from.Client, from.Progress = live, nil
	if err := w.look(ctx, live.Now()); err != nil {
		return nothing, err
	}
	return func() { w.follow(ctx, live) }, nil
}

// watcher shows one moment of a cluster after the other.
type watcher struct {
	from     *source
	direct   client.Reader // of what is not watched
	server   *ui.Server
	source   string // as in ui.Moment
	view     *top.View
	happened []top.Entry
}

// look shows what there is at the time.
func (w *watcher) look(ctx context.Context, now time.Time) error {
	situation, pods, err := w.from.Live(ctx, now)
	if err != nil {
		return err
	}
	objects, err := top.Read(ctx, w.from.Client)
	if err != nil {
		return err
	}
	view := top.Of(objects, top.PricesOf(situation.Snapshot), now)
	if w.view != nil {
		all := append(slices.Clip(w.happened), top.Between(w.view, &view)...)
		w.happened = all[max(0, len(all)-mostHappened):]
	} else if len(w.happened) == 0 {
		w.happened = []top.Entry{{At: now, Kind: "now", Text: top.Standing(&view)}}
	}
	w.view = &view
	w.from.now = now
	kept, _, err := recordOf(ctx, w.from, w.direct)
	if err != nil {
		return err
	}
	version, err := w.from.version()
	if err != nil {
		return err
	}
	m := ui.Moment{
		Title: strings.TrimPrefix(w.from.title, "https://"), Source: w.source, Situation: situation, Pods: pods, Pools: append([]*v1.NodePool{}, objects.Pools...),
		View: &view, Happened: w.happened, Record: kept,
	}
	m.Checks = status.Checks(status.Read(ctx, w.from.Reader, now, version, func(s scenario.Situation) *model.Plan {
		return new(solve.Planner).Place(s.Snapshot, s.Policy)
	}))
	w.server.Show(m)
	return nil
}

// follow looks again whenever something has changed, or has not for some time, until ctx is done.
func (w *watcher) follow(ctx context.Context, live *top.Live) {
	for took := time.Duration(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-live.Changed():
		case <-time.After(unwatched):
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(planAgain, restFor*took)):
		}
		began := time.Now()
		trouble := live.Trouble()
		if err := w.look(ctx, live.Now()); err != nil {
			trouble = err.Error()
		}
		took = time.Since(began)
		w.server.Trouble(trouble)
	}
}

// browse opens the page in the browser of the user.
func browse(url string) error {
	with := map[string][]string{"darwin": {"open"}, "windows": {"rundll32", "url.dll,FileProtocolHandler"}}[runtime.GOOS]
	if with == nil {
		with = []string{"xdg-open"}
	}
	return exec.Command(with[0], append(with[1:], url)...).Start()
}
