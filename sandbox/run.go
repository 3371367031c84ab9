package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"karpenter/sandbox/console"
	"karpenter/sandbox/fleet"
	"karpenter/sandbox/kubelet"
	"karpenter/sandbox/session"
)

// runConfig is the settings of `sandbox run`.
type runConfig struct {
	session session.Options
	delays  kubelet.Options
	plain   bool
}

// runFlags returns the flag set of `sandbox run` and the values it fills in.
func runFlags() (*flag.FlagSet, *runConfig) {
	config := &runConfig{delays: kubelet.DefaultOptions()}
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	addSessionFlags(flags, &config.session, &config.delays)
	flags.BoolVar(&config.plain, "plain", false, "print lines instead of a picture, as where stdout is no terminal")
	return flags, config
}

// addSessionFlags defines what run, demo and stress have in common.
func addSessionFlags(flags *flag.FlagSet, options *session.Options, delays *kubelet.Options) {
	options.AddFlags(flags)
	options.ControlPlane.AddFlags(flags)
	delays.AddFlags(flags)
}

// untilToldToStop returns a context that the signals that end a program end. After the first one a second ends the
// process at once, and on Linux its children with it.
func untilToldToStop() (context.Context, context.CancelFunc) {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, cancel)
	return ctx, cancel
}

// runRun shows a cluster until it is told to stop.
func runRun(args []string, stdout, stderr io.Writer) error {
	flags, config := runFlags()
	if err := parse(flags, args, stderr); err != nil {
		return helpIsFine(err)
	}
	if err := config.delays.Validate(); err != nil {
		return err
	}
	reports := &outlet{to: stderr}
	config.session.ControlPlane.Kubelets = &config.delays
	config.session.Report = reports
	ctx, cancel := untilToldToStop()
	defer cancel()
	s, err := session.Start(ctx, config.session)
	if err != nil {
		return err
	}
	seen, err := fleet.Watch(ctx, s.Config(), nil, s.Prices())
	if err != nil {
		return errors.Join(err, s.Stop())
	}
	data := config.session.ControlPlane.Dir
	writeIntroduction(stdout, s, data)
	notes := console.NewNotes()
	if terminal, ok := stdout.(*os.File); ok && !config.plain && console.IsTerminal(terminal) {
		reports.redirect(notes)
		console.Live(ctx, terminal, seen, notes, console.Screen{
			Title: "karpenter on " + data + ", Kubernetes " + kubernetesVersion(),
			Since: time.Now(),
			Hints: hints(s, data),
		})
		reports.redirect(stderr)
	} else {
		reports.redirect(io.MultiWriter(stderr, notes))
		console.Lines(ctx, stdout, seen, notes)
		reports.redirect(stderr)
	}
	fmt.Fprintln(stderr, "sandbox: stopping everything; the cluster is kept in", data)
	if err := s.Stop(); err != nil { // all are gone; one of them not by itself
		fmt.Fprintln(stderr, "sandbox:", err)
	}
	return nil
}

// writeIntroduction says where things are and what to try.
func writeIntroduction(w io.Writer, s *session.Session, data string) {
	fmt.Fprintf(w, "\nA Kubernetes %s cluster runs on this machine, with simulated machines and real prices.\n\n", kubernetesVersion())
	fmt.Fprintf(w, "  kubeconfig   %s\n", s.Kubeconfig())
	fmt.Fprintf(w, "  logs         %s\n", filepath.Join(data, "logs"))
	fmt.Fprintf(w, "  metrics      %s\n", s.MetricsURL())
	fmt.Fprintf(w, "  questions    KUBECONFIG=%s karpenter status (or explain, plan, savings)\n", s.Kubeconfig())
	if url := s.SimulatorURL(); url != "" {
		fmt.Fprintf(w, "  simulated AWS  curl %s/_awssim/ tells how to play fate there\n", url)
	}
	fmt.Fprint(w, "\nTry this in a second terminal:\n\n")
	for _, line := range tryThis(s.Kubeconfig()) {
		fmt.Fprintf(w, "  %s\n", line)
	}
	fmt.Fprint(w, "\nCtrl-C stops everything; the same command continues with the same cluster.\n\n")
}

// hints are the lines at the foot of the picture.
func hints(s *session.Session, data string) []string {
	lines := []string{"Try this in a second terminal:"}
	for _, command := range tryThis(s.Kubeconfig()) {
		lines = append(lines, "  "+command)
	}
	return append(lines, "Ctrl-C stops everything; the cluster is kept in "+data)
}

// tryThis returns three commands, with paths as short as they work from here.
func tryThis(kubeconfig string) []string {
	kubectl := "kubectl"
	if self, err := os.Executable(); err == nil {
		if beside := filepath.Join(filepath.Dir(self), "kubectl"); exists(beside) {
			kubectl = fromHere(beside)
		}
	}
	kubectl += " --kubeconfig " + fromHere(kubeconfig)
	return []string{
		kubectl + " apply -f examples/inflate.yaml",
		kubectl + " scale deployment inflate --replicas 50",
		kubectl + " scale deployment inflate --replicas 0",
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// fromHere returns the path relative to the working directory if it lies below it.
func fromHere(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	if short, err := filepath.Rel(here, path); err == nil && filepath.IsLocal(short) {
		return short
	}
	return path
}

// outlet is a writer whose destination can be changed. It is safe for concurrent use.
type outlet struct {
	mu sync.Mutex
	to io.Writer
}

func (o *outlet) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.to.Write(text)
}

func (o *outlet) redirect(to io.Writer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.to = to
}
