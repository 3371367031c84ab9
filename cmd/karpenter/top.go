// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"karpenter/cmd/karpenter/recording"
	"karpenter/cmd/karpenter/redact"
	"karpenter/cmd/karpenter/situation"
	"karpenter/cmd/karpenter/top"
)

// viewing is the flags of top.
type viewing struct {
	connection
	output
	once      bool
	record    string
	redact    bool
	speed     float64
	title     string
	hints     []string
	reportsFD int // file descriptor with lines to show; 0 = none
}

func topCommand(s surroundings) *cobra.Command {
	var v viewing
	c := &cobra.Command{
		Use:   "top",
		Short: "Show nodes, pods and dollars live",
		Long: `Show the nodes of a cluster live: what each is, how full it is, what it costs,
why it was launched or is removed, and how far all are from the proven minimum.

In a terminal, Enter explains the selected node or pod and ? lists the keys. If
the output is not a terminal, top prints a line for each thing that happens. Top
also shows clusters without Karpenter, without the proven minimum.`,
		Example: `  karpenter top
  karpenter top --context production
  karpenter top --once -o json
  karpenter top --record cluster.recording
  karpenter top --recording cluster.recording --speed 5`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return v.run(c.Context(), s) },
	}
	flags := c.Flags()
	v.connection.define(c, flags, s)
	whole(c)
	v.output.define(c, flags)
	flags.BoolVar(&v.once, "once", false, "print what there is now, and exit; json, yaml and markdown always do")
	flags.StringVar(&v.record, "record", "", "also write everything that happens to a file, for --recording")
	flags.BoolVar(&v.redact, "redact", false, "replace names in the file of --record with pseudonyms, to share it")
	flags.Float64Var(&v.speed, "speed", 1, "how many times as fast to play a recording")
	flags.StringVar(&v.title, "title", "", "title of the picture")
	flags.StringArrayVar(&v.hints, "hint", nil, "line at the foot of the picture")
	flags.IntVar(&v.reportsFD, "reports-fd", 0, "file descriptor to read lines from that are shown")
	for _, hidden := range []string{"title", "hint", "reports-fd"} {
		_ = flags.MarkHidden(hidden) // the flags are there
	}
	return c
}

func (v *viewing) check() error {
	switch {
	case v.record != "" && v.recording != "":
		return usageError{errors.New("--record and --recording: want one of them")}
	case v.redact && v.record == "":
		return usageError{errors.New("--redact: want --record as well; 'karpenter snapshot --redact' has one moment of a cluster")}
	case v.speed <= 0:
		return usageError{fmt.Errorf("--speed: %v: want more than 0", v.speed)}
	}
	return v.output.check()
}

func (v *viewing) run(ctx context.Context, s surroundings) error {
	if err := v.check(); err != nil {
		return err
	}
	// What client libraries log would spoil the picture.
	klog.SetLogger(logr.Discard())
	log.SetLogger(logr.Discard())
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	from, err := v.source(s)
	if err != nil {
		return err
	}
	if v.once || v.format != tableFormat && v.format != wideFormat {
		return v.print(ctx, from, s)
	}
	live, finish, err := v.follow(ctx, from)
	if err != nil {
		return err
	}
	err = v.show(ctx, live, from, s)
	cancel()
	return errors.Join(err, finish())
}

// titled is the title of the picture.
func (v *viewing) titled(from *source) string {
	if v.title != "" {
		return v.title
	}
	name := strings.TrimPrefix(from.title, "https://")
	if version, err := from.version(); err == nil && version != "" {
		name += ", Kubernetes " + version
	}
	return "karpenter top · " + name
}

// print writes what there is at one moment, and, of a recording, what happened until
// then.
func (v *viewing) print(ctx context.Context, from *source, s surroundings) error {
	answers, err := top.Ask(ctx, from.Reader, from.now)
	if err != nil {
		return err
	}
	screen := top.Screen{Bound: answers.Bound, Order: top.ByName}
	if v.recording != "" {
		r, err := v.play(from.Scheme)
		if err != nil {
			return err
		}
		var all []top.Entry
		screen.View, all, err = top.Until(ctx, r, answers.Prices, from.now)
		screen.Happened = all[max(0, len(all)-top.MostHappened):]
		if err != nil {
			return err
		}
	} else {
		objects, err := top.Read(ctx, from.Client)
		if err != nil {
			return situation.Hinted(err)
		}
		screen.View = top.Of(objects, answers.Prices, from.now)
	}
	doneReading(s)
	page := struct {
		top.View
		Bound top.Bound `json:"bound"`
	}{screen.View, answers.Bound}
	err = v.write(s, page, pages{styled: true, markdown: screen.Markdown, text: func(w io.Writer) error {
		columns, lines := s.size()
		if columns == 0 {
			columns = map[string]int{tableFormat: 80, wideFormat: 160}[v.format]
		}
		if lines == 0 {
			lines = len(screen.View.Nodes) + len(screen.View.Pools) + len(screen.Happened) + 8 // all of it
		}
		screen.Title, screen.Hints = v.titled(from), v.hints
		_, err := io.WriteString(w, top.Render(&screen, columns, lines, top.Style{Colour: s.colour(), Unicode: s.unicode()}))
		return err
	}})
	if err == nil {
		v.next(s, afterTop(screen.View.Nodes)...)
	}
	return err
}

// afterTop names what to look at after the view.
func afterTop(nodes []top.Node) []string {
	if len(nodes) == 0 {
		return []string{"karpenter explain pods -A", "karpenter status"}
	}
	return []string{"karpenter explain node " + nodes[0].Name, "karpenter explain cluster"}
}

// follow watches the cluster or plays the recording. The function that it returns is
// called at the end.
func (v *viewing) follow(ctx context.Context, from *source) (top.Source, func() error, error) {
	nothing := func() error { return nil }
	if v.recording != "" {
		r, err := v.play(from.Scheme)
		if err != nil {
			return nil, nil, err
		}
		replay := top.NewReplay(ctx, r, v.speed)
		from.Client = replay
		return replay, nothing, nil
	}
	config, err := v.rest()
	if err != nil {
		return nil, nil, err
	}
	var record *recording.Writer
	written := nothing
	if v.record != "" {
		if record, written, err = v.recorder(from); err != nil {
			return nil, nil, err
		}
	}
	watch, err := top.Watch(ctx, config, from.Scheme, record)
	if err != nil {
		return nil, nil, err
	}
	from.Client, from.Progress = watch, nil
	return watch, func() error { return errors.Join(watch.StopRecording(), written()) }, nil
}

// recorder begins a recording.
func (v *viewing) recorder(from *source) (*recording.Writer, func() error, error) {
	version, err := from.version()
	if err != nil {
		return nil, nil, err
	}
	f, err := os.Create(v.record)
	if err != nil {
		return nil, nil, usageError{fmt.Errorf("--record: %w", err)}
	}
	h := recording.Header{Title: strings.TrimPrefix(from.title, "https://"), Kubernetes: version, Started: time.Now()}
	if v.redact {
		h.Title = "redacted"
	}
	w, err := recording.NewWriter(f, h, from.Scheme)
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	if v.redact {
		w.Rewrite = (&redact.Redactor{}).Object
	}
	return w, func() error { return errors.Join(w.Close(), f.Close()) }, nil
}

// show shows the source until the user quits or ctx is done.
func (v *viewing) show(ctx context.Context, live top.Source, from *source, s surroundings) error {
	from.Progress = nil
	selected := ""
	options := top.Options{
		Source: live, Reader: from.Reader, Title: v.titled(from), Hints: v.hints,
		Style:   top.Style{Colour: s.colour(), Unicode: s.unicode()},
		Reports: v.reports(ctx), Selected: func(node string) { selected = node },
	}
	if !s.shown() {
		return top.Lines(ctx, s.stdout, options)
	}
	program := tea.NewProgram(top.NewModel(ctx, options), tea.WithContext(ctx), tea.WithInput(s.stdin), tea.WithOutput(s.stdout), tea.WithoutSignalHandler())
	if _, err := program.Run(); err != nil && !errors.Is(err, tea.ErrProgramKilled) && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("show the cluster: %w", err)
	}
	if selected != "" {
		v.next(s, "karpenter explain node "+selected, "karpenter explain cluster")
	} else if v.title == "" {
		v.next(s, "karpenter explain cluster", "karpenter plan")
	}
	return nil
}

// reports returns the lines of the program that started this one.
func (v *viewing) reports(ctx context.Context) <-chan string {
	if v.reportsFD == 0 {
		return nil
	}
	out := make(chan string)
	go func() {
		defer close(out)
		f := os.NewFile(uintptr(v.reportsFD), "reports")
		defer f.Close()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			select {
			case out <- lines.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}
