// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/term"

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

// runRun shows a cluster until it gets a signal to stop.
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
	if err := s.ServePage(); err != nil {
		return errors.Join(err, s.Stop())
	}
	data := config.session.ControlPlane.Dir
	writeIntroduction(stdout, s, data)
	terminal, ok := stdout.(*os.File)
	if config.plain || !ok || !term.IsTerminal(int(terminal.Fd())) {
		err = show(ctx, s, &config.session, struct{ io.Writer }{stdout}, reports, stderr) // a pipe, whatever stdout is
	} else {
		err = show(ctx, s, &config.session, stdout, reports, io.Discard)
	}
	reports.redirect(stderr)
	if err != nil {
		fmt.Fprintln(stderr, "sandbox:", err)
	}
	fmt.Fprintln(stderr, "sandbox: stopping everything; the cluster is kept in", data)
	if err := s.Stop(); err != nil { // all are gone; one of them not by itself
		fmt.Fprintln(stderr, "sandbox:", err)
	}
	return nil
}

// show shows the cluster with the controller's program, karpenter top, until the user quits or ctx is done: as a picture
// if stdout is a terminal, else as lines. It also shows the first line of each report of the sandbox itself. Whole
// reports go to log.
func show(ctx context.Context, s *session.Session, options *session.Options, stdout io.Writer, reports *outlet, log io.Writer) error {
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	data := options.ControlPlane.Dir
	arguments := []string{"top", "--kubeconfig", s.Kubeconfig(), "--title", "karpenter on " + data + ", Kubernetes " + kubernetesVersion(), "--reports-fd", "3"}
	for _, hint := range hints(s, data) {
		arguments = append(arguments, "--hint", hint)
	}
	view := exec.CommandContext(ctx, options.Controller, arguments...)
	view.Stdin, view.Stdout, view.Stderr, view.ExtraFiles = os.Stdin, stdout, os.Stderr, []*os.File{read}
	view.Cancel = func() error { return view.Process.Signal(syscall.SIGTERM) }
	reports.redirect(io.MultiWriter(log, firstLines{write}))
	err = view.Run()
	reports.redirect(io.Discard)
	if ctx.Err() != nil {
		err = nil
	}
	return errors.Join(err, write.Close(), read.Close())
}

// firstLines passes on the first line of each report.
type firstLines struct{ to io.Writer }

func (f firstLines) Write(report []byte) (int, error) {
	first, _, _ := strings.Cut(strings.TrimPrefix(string(report), "sandbox: "), "\n")
	_, err := fmt.Fprintln(f.to, strings.TrimSuffix(first, ":"))
	return len(report), err
}

// writeIntroduction says where things are and what to try.
func writeIntroduction(w io.Writer, s *session.Session, data string) {
	fmt.Fprintf(w, "\nA Kubernetes %s cluster runs on this computer, with simulated instances and real prices.\n\n", kubernetesVersion())
	fmt.Fprintf(w, "  kubeconfig   %s\n", s.Kubeconfig())
	fmt.Fprintf(w, "  logs         %s\n", filepath.Join(data, "logs"))
	fmt.Fprintf(w, "  metrics      %s\n", s.MetricsURL())
	fmt.Fprintf(w, "  questions    KUBECONFIG=%s karpenter status (or top, explain, plan, savings)\n", s.Kubeconfig())
	fmt.Fprintf(w, "  in a browser %s (karpenter ui, some seconds after the start)\n", s.PageURL())
	if url := s.SimulatorURL(); url != "" && s.Provider() == session.AWS {
		fmt.Fprintf(w, "  simulated AWS  curl %s/_awssim/ tells how to play fate there\n", url)
	}
	fmt.Fprint(w, "\nTry this in a second terminal:\n\n")
	for _, line := range tryThis(s.Kubeconfig()) {
		fmt.Fprintf(w, "  %s\n", line)
	}
	fmt.Fprint(w, "\nCtrl-C stops everything; the same command continues with the same cluster.\n\n")
}

// hints are the lines at the foot of the picture, with the commands to try and
// the address of the page.
func hints(s *session.Session, data string) []string {
	lines := []string{"Try this in a second terminal:"}
	for _, command := range tryThis(s.Kubeconfig()) {
		lines = append(lines, "  "+command)
	}
	lines = append(lines, "In a browser: "+s.PageURL())
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
