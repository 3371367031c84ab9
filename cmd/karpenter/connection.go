// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/api/scheme"
	"karpenter/cmd/karpenter/recording"
	"karpenter/cmd/karpenter/situation"
	"karpenter/scenario"
)

// connection has the flags that select the cluster and the user of a command.
// They are the same as in kubectl.
type connection struct {
	kubeconfig, karpenterNamespace string
	recording                      string        // file; "" = a cluster is read
	at                             time.Duration // moment of the recording; 0 = its end
	overrides                      clientcmd.ConfigOverrides
}

func (c *connection) define(to *cobra.Command, flags *pflag.FlagSet, s surroundings) {
	o := &c.overrides
	flags.StringVar(&c.kubeconfig, "kubeconfig", "", "path to the kubeconfig file (default: KUBECONFIG, then ~/.kube/config)")
	flags.StringVar(&o.CurrentContext, "context", "", "name of the kubeconfig context to use")
	flags.StringVar(&o.Context.Cluster, "cluster", "", "name of the kubeconfig cluster to use")
	flags.StringVar(&o.Context.AuthInfo, "user", "", "name of the kubeconfig user to use")
	flags.StringVar(&o.AuthInfo.Impersonate, "as", "", "user to impersonate")
	flags.StringArrayVar(&o.AuthInfo.ImpersonateGroups, "as-group", nil, "group to impersonate; can be repeated")
	flags.StringVar(&o.Timeout, "request-timeout", "0", "how long to wait for one request, such as 30s; 0 means no limit")
	flags.StringVarP(&o.Context.Namespace, "namespace", "n", "", "namespace to look in (default: that of the context)")
	flags.StringVar(&c.karpenterNamespace, "karpenter-namespace", "", "namespace that Karpenter is installed in (default: found by itself)")
	flags.StringVar(&c.recording, "recording", "", "read a recording that 'karpenter top --record' made instead of a cluster")
	flags.DurationVar(&c.at, "at", 0, "moment of the recording, such as 90s after its start (default: its end)")
	c.complete(to, s)
}

// whole hides the flags -n and -A in the help of a command that always reads the
// whole cluster. The command still accepts them.
func whole(c *cobra.Command) {
	c.Flags().BoolP("all-namespaces", "A", true, "look at all namespaces")
	for _, name := range []string{"namespace", "all-namespaces"} {
		_ = c.Flags().MarkHidden(name) // the flags are there
	}
}

// config finds the cluster as kubectl does.
func (c *connection) config() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.kubeconfig
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &c.overrides)
}

// namespace returns the namespace for names that do not include one.
func (c *connection) namespace() (string, error) {
	if c.overrides.Context.Namespace != "" {
		return c.overrides.Context.Namespace, nil
	}
	if c.recording != "" {
		return "default", nil
	}
	namespace, _, err := c.config().Namespace()
	if err != nil {
		return "", c.failed(err)
	}
	return namespace, nil
}

func (c *connection) failed(err error) error {
	switch {
	case c.kubeconfig != "" && errors.Is(err, fs.ErrNotExist):
		return usageError{fmt.Errorf("--kubeconfig: %w", err)}
	case clientcmd.IsEmptyConfig(err):
		return errors.New("found no cluster: set --kubeconfig or KUBECONFIG to a kubeconfig file that works with kubectl")
	}
	return fmt.Errorf("read the kubeconfig: %w", err)
}

// rest returns how to reach the API server.
func (c *connection) rest() (*rest.Config, error) {
	config, err := c.config().ClientConfig()
	if err != nil {
		return nil, c.failed(err)
	}
	config.QPS, config.Burst = -1, 0 // a command asks a few dozen times, one request after the other
	config.WarningHandler = rest.NoWarnings{}
	return config, nil
}

// source is where a command reads objects from.
type source struct {
	*situation.Reader
	title   string // of the cluster
	now     time.Time
	version func() (string, error) // of Kubernetes
}

// source returns the cluster or the recording. The progress of reading is shown on
// stderr if that is a terminal.
func (c *connection) source(s surroundings) (*source, error) {
	objects, err := objectScheme()
	if err != nil {
		return nil, err
	}
	if c.recording != "" {
		return c.recorded(objects)
	}
	config, err := c.rest()
	if err != nil {
		return nil, err
	}
	api, err := client.New(config, client.Options{Scheme: objects})
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	return &source{
		Reader: &situation.Reader{Client: api, Scheme: objects, Namespace: c.karpenterNamespace, Progress: progress(s)},
		title:  config.Host, now: time.Now(),
		version: func() (string, error) { return versionOf(config) },
	}, nil
}

// objectScheme is of the objects that commands read.
func objectScheme() (*runtime.Scheme, error) {
	objects := runtime.NewScheme()
	if err := errors.Join(kubescheme.AddToScheme(objects), scheme.AddToScheme(objects), apiextensionsv1.AddToScheme(objects)); err != nil {
		return nil, fmt.Errorf("make scheme: %w", err)
	}
	return objects, nil
}

// versionOf asks the API server for its version.
func versionOf(config *rest.Config) (string, error) {
	server, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return "", err
	}
	version, err := server.ServerVersion()
	if err != nil {
		return "", fmt.Errorf("reach the API server at %s: %w", config.Host, err)
	}
	return version.GitVersion, nil
}

// recorded returns a moment of the recording.
func (c *connection) recorded(objects *runtime.Scheme) (*source, error) {
	r, err := c.play(objects)
	if err != nil {
		return nil, err
	}
	at := r.Ended()
	if long := at.Sub(r.Started); c.at < 0 || c.at > long {
		return nil, usageError{fmt.Errorf("--at: %v: want a moment of the recording, which is %v long", c.at, long.Round(time.Second))}
	}
	if c.at > 0 {
		at = r.Started.Add(c.at)
	}
	return &source{
		Reader: &situation.Reader{Client: r.At(at), Scheme: objects, Namespace: c.karpenterNamespace},
		title:  r.Title, now: at,
		version: func() (string, error) { return r.Kubernetes, nil },
	}, nil
}

// play reads the recording.
func (c *connection) play(objects *runtime.Scheme) (*recording.Recording, error) {
	r, err := readRecording(c.recording, objects)
	var missing *fs.PathError
	if errors.As(err, &missing) {
		return nil, usageError{fmt.Errorf("--recording: %w", err)}
	}
	return r, err
}

// readRecording reads a file that top --record has written.
func readRecording(file string, objects *runtime.Scheme) (*recording.Recording, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, usageError{err}
	}
	defer f.Close()
	r, err := recording.Read(f, objects)
	if err == nil {
		return r, nil
	}
	if _, again := f.Seek(0, io.SeekStart); again == nil {
		switch _, other := snapshotIn(f, nil); {
		case other == nil:
			err = errSnapshot
		case errors.Is(other, errCompressed), errors.Is(other, errObjects):
			err = other
		}
	}
	return nil, fmt.Errorf("%s: %w", file, err)
}

// sniffed is how much of a file says what it is.
const sniffed = 512

var (
	errRecording  = errors.New("it is a recording of 'karpenter top --record': use --recording FILE")
	errCompressed = errors.New("it is compressed with gzip: run gunzip FILE first")
	errObjects    = errors.New("it has Kubernetes objects: 'karpenter savings -f FILE' reads what kubectl get prints")
	errSnapshot   = errors.New("it is a snapshot and not a recording: 'karpenter plan --snapshot FILE' and 'karpenter ui --snapshot FILE' read it")
	errBinary     = errors.New("it is not text: want what 'karpenter snapshot' prints")
)

// foreign returns an error that names the type of a file that begins like this, or nil if it
// is empty or may be a snapshot.
func foreign(start []byte) error {
	text := strings.TrimLeft(string(start), "-\ufeff \t\r\n")
	has := func(prefixes ...string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(text, p) })
	}
	switch {
	case has("\x28\xb5\x2f\xfd"):
		return errRecording
	case has("\x1f\x8b"):
		return errCompressed
	case has("{", "[", "apiVersion:", "kind:", "items:", "metadata:"):
		return errObjects
	}
	for range utf8.UTFMax { // the last rune may be cut
		if utf8.ValidString(text) || text == "" {
			break
		}
		text = text[:len(text)-1]
	}
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return errBinary
	}
	return nil
}

// progress returns a function that shows what is being read, or nil if stderr
// is not a terminal.
func progress(s surroundings) func(kind string, count int) {
	if !isTerminal(s.stderr) {
		return nil
	}
	return func(kind string, count int) {
		if count == 0 {
			return
		}
		fmt.Fprintf(s.stderr, "\r\x1b[Kreading %ss: %d", kind, count)
	}
}

// planning shows on stderr, if it is a terminal, that plans are being made,
// which can take long.
func planning(s surroundings) {
	if isTerminal(s.stderr) {
		fmt.Fprint(s.stderr, "\r\x1b[Kplanning...")
	}
}

// doneReading removes what progress and planning have shown.
func doneReading(s surroundings) {
	if isTerminal(s.stderr) {
		fmt.Fprint(s.stderr, "\r\x1b[K")
	}
}

// situationFrom reads a file that karpenter snapshot printed, which may include
// files beside it; "-" is standard input, and "" the cluster. The pods are the
// cluster's.
func (c *connection) situationFrom(ctx context.Context, file, flag string, s surroundings) (scenario.Situation, []*corev1.Pod, error) {
	var none scenario.Situation
	switch file {
	case "":
		from, err := c.source(s)
		if err != nil {
			return none, nil, err
		}
		defer doneReading(s)
		return from.Live(ctx, from.now)
	case "-":
		situation, err := snapshotIn(s.stdin, nil)
		if err != nil {
			return none, nil, fmt.Errorf("standard input: %w", err)
		}
		return situation, nil, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return none, nil, usageError{fmt.Errorf("%s: %w", flag, err)}
	}
	defer f.Close()
	situation, err := snapshotIn(f, os.DirFS(filepath.Dir(file)))
	if err != nil {
		return none, nil, fmt.Errorf("%s: %w", strings.TrimSpace(file), err)
	}
	return situation, nil, nil
}

// snapshotIn reads what 'karpenter snapshot' printed.
func snapshotIn(from io.Reader, files fs.FS) (scenario.Situation, error) {
	text := bufio.NewReaderSize(from, sniffed)
	start, _ := text.Peek(sniffed) // Read reports what fails
	if other := foreign(start); other != nil {
		return scenario.Situation{}, other
	}
	situation, err := scenario.Read(text, files)
	if err != nil {
		return scenario.Situation{}, err
	}
	if s := situation.Snapshot; len(s.Pools)+len(s.Nodes)+len(s.Pending) == 0 {
		return scenario.Situation{}, errors.New("no NodePools, nodes or pods: want what 'karpenter snapshot' prints")
	}
	return situation, nil
}
