// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"karpenter/sandbox/component"
	"karpenter/sandbox/made"
	"karpenter/sandbox/session"
)

const (
	rollout    = "example.com/rollout" // label of nodes that replace drifted ones
	heartbeats = 5 * time.Minute       // how often a kubelet reports its node's status when nothing changes
	readWithin = 15 * time.Minute      // how long the API server may read its objects
	urgent     = 10                    // pods that wait when the controller is started again; each wants a node
)

// madeSizing is a Sizing of a cluster that is made of objects.
type madeSizing struct {
	*sizing
	st       *stage
	metadata metadata.Interface
	took     map[string]float64 // of the phase
}

// sizeMade makes a cluster and measures: the start of the controller, an idle time, a restart while pods wait, pods that
// come, and the replacement of drifted nodes.
func sizeMade(ctx context.Context, options Options) error {
	s := &options.Sizing
	cluster := &made.Cluster{
		Nodes: s.Nodes, Pods: s.Pods, Cores: s.Cores, Pool: oneSize(options.Session.Provider, s.Cores, 2*s.Nodes),
		Session: options.Session, Report: options.Session.Report,
	}
	if err := cluster.Validate(); err != nil {
		return err
	}
	kept := s.Made
	if kept == "" {
		var err error
		if kept, err = os.MkdirTemp("", "sandbox-made-"); err != nil {
			return err
		}
		defer os.RemoveAll(kept)
	}
	kept = filepath.Join(kept, fmt.Sprintf("%d-%d-%d", s.Nodes, s.Pods, s.Cores))
	if err := cluster.In(ctx, kept); err != nil {
		return err
	}
	remove, err := freshFolder(&options.Session.ControlPlane.Dir)
	if err != nil {
		return err
	}
	if err := os.CopyFS(options.Session.ControlPlane.Dir, os.DirFS(kept)); err != nil {
		return errors.Join(err, remove())
	}
	if err := measureMade(ctx, options); err != nil && ctx.Err() == nil {
		return fmt.Errorf("%w\nthe cluster and its logs are in %s", err, options.Session.ControlPlane.Dir)
	}
	return errors.Join(ctx.Err(), remove())
}

// measureMade brings the cluster up and takes it through all phases.
func measureMade(ctx context.Context, options Options) error {
	began := time.Now()
	// Nodes renew their leases every 10 seconds, which would be most of the computer's work, and tells the controller nothing.
	options.Session.ControlPlane.Kubelets.RenewInterval = time.Minute
	options.Session.ControlPlane.Bare = options.Sizing.Bare
	options.Session.ControlPlane.StartTimeout = max(options.Session.ControlPlane.StartTimeout, readWithin)
	options.Session.ControlPlane.ExtraArgs = map[string][]string{component.ControllerManager: {"--node-monitor-grace-period=5m"}}
	options.Session.Environment = append(options.Session.Environment, "ENABLE_PROFILING=true")
	s, err := session.Start(ctx, options.Session)
	if err != nil {
		return err
	}
	watching, stopWatching := context.WithCancel(ctx)
	defer func() {
		stopWatching()
		if err := s.Stop(); err != nil {
			fmt.Fprintln(options.Session.Report, "sandbox:", err)
		}
	}()
	z, err := newMade(watching, options, s, began)
	if err != nil {
		return err
	}
	err = z.play(ctx)
	return errors.Join(err, writeLoads(options.Out, z.loads), writeMade(options.Out, z.loads), keepFigures(z.Results, z.loads))
}

func newMade(ctx context.Context, options Options, s *session.Session, began time.Time) (*madeSizing, error) {
	config := s.Config()
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	untyped, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	names, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	z := &madeSizing{sizing: &sizing{Sizing: &options.Sizing}, metadata: names, st: &stage{
		out: options.Out, began: began, crashes: func() int { return 0 }, client: client, untyped: untyped,
		session: s, memory: sampleMemory(ctx, s.Controller()),
	}}
	z.st.count = func(ctx context.Context) (int, int, error) {
		nodes, err := z.nodes(ctx, "")
		return nodes, z.Pods, err
	}
	return z, nil
}

// play goes through the phases.
func (z *madeSizing) play(ctx context.Context) error {
	for _, phase := range []struct {
		name string
		do   func(context.Context) error
		skip bool
	}{
		{"start", z.start, false},
		{"idle", z.idle, false},
		{"restart while pods wait", z.restart, false},
		{fmt.Sprintf("%d more pods", z.Burst), z.burst, z.Burst == 0 || z.Bare},
		{fmt.Sprintf("%d drifted nodes", z.Drifted), z.drift, z.Drifted == 0 || z.Bare},
	} {
		if phase.skip {
			continue
		}
		if err := z.measured(ctx, phase.name, phase.do); err != nil {
			return fmt.Errorf("%s: %w", phase.name, err)
		}
	}
	return nil
}

// measured does something, and measures what the controller needs meanwhile.
func (z *madeSizing) measured(ctx context.Context, name string, do func(context.Context) error) error {
	z.st.heading(name)
	z.took = map[string]float64{}
	if err := z.answering(ctx); err != nil {
		return err
	}
	m, err := startMeter(ctx, z.st, name)
	if err != nil {
		return err
	}
	before := z.st.session.Controller().PID()
	err = do(ctx)
	if z.st.session.Controller().PID() != before {
		m.cpu, m.requests, m.plans = 0, nil, nil
	}
	l, readErr := m.read(ctx, z.st)
	if readErr != nil {
		return errors.Join(err, readErr)
	}
	if l.Live, readErr = z.live(ctx, name); readErr != nil {
		return errors.Join(err, readErr)
	}
	l.Took = z.took
	z.loads = append(z.loads, l)
	z.st.line("figures", l.line())
	z.st.line("figures", fmt.Sprintf("live heap %d MiB, plans %v, seconds %v", l.Live>>20, l.Plans, l.Took))
	return errors.Join(err, keepFigures(z.Results, z.loads))
}

// answering waits until the controller serves metrics.
func (z *madeSizing) answering(ctx context.Context) error {
	return z.await(ctx, func(ctx context.Context) (bool, error) {
		_, err := z.st.session.Metrics(ctx)
		return err == nil, nil
	})
}

// live has the controller collect garbage, keeps the profile of what is left beside the results, and returns its size.
func (z *madeSizing) live(ctx context.Context, phase string) (int64, error) {
	text, err := session.Read(ctx, z.st.session.ProfilesURL()+"heap?gc=1&debug=1")
	if err != nil {
		return 0, err
	}
	size, err := heapIn(text)
	if err != nil || z.Results == "" {
		return size, err
	}
	profile, err := session.Read(ctx, z.st.session.ProfilesURL()+"heap")
	if err != nil {
		return 0, err
	}
	ext := filepath.Ext(z.Results)
	name := z.Results[:len(z.Results)-len(ext)] + "-" + strings.ReplaceAll(phase, " ", "-") + ".pprof"
	return size, os.WriteFile(name, profile, 0o644)
}

// heapIn returns how many bytes of the heap are in use, as a profile in text tells.
func heapIn(profile []byte) (int64, error) {
	const line = "# HeapAlloc = "
	for text := range strings.Lines(string(profile)) {
		if size, ok := strings.CutPrefix(text, line); ok {
			return strconv.ParseInt(strings.TrimSpace(size), 10, 64)
		}
	}
	return 0, fmt.Errorf("no %q in the profile of the heap", line)
}

// note keeps how long something took.
func (z *madeSizing) note(what string, since time.Time) {
	z.took[what] = time.Since(since).Seconds()
	z.st.line("done", fmt.Sprintf("%s, after %s", what, seconds(time.Since(since))))
}

func (z *madeSizing) await(ctx context.Context, done wait.ConditionWithContextFunc) error {
	return wait.PollUntilContextTimeout(ctx, time.Second, z.Within, true, done)
}

// start waits until the controller knows everything and plans.
func (z *madeSizing) start(ctx context.Context) error {
	began := z.st.began
	if err := z.await(ctx, func(ctx context.Context) (bool, error) { return z.synced(ctx), nil }); err != nil {
		return err
	}
	z.note("synced", began)
	return z.rest(ctx)
}

// synced reports whether the controller knows everything there is, and leads.
func (z *madeSizing) synced(ctx context.Context) bool {
	m, err := z.st.session.Metrics(ctx)
	return err == nil && m.Value("karpenter_cluster_state_synced") == 1 && m.Value("leader_election_master_status") == 1
}

// rest waits until no claim has come or gone for z.Rest.
func (z *madeSizing) rest(ctx context.Context) error {
	last, since := int64(0), time.Now()
	return z.await(ctx, func(ctx context.Context) (bool, error) {
		generation, err := z.claimsChanged(ctx)
		if err != nil {
			return false, err
		}
		if generation != last {
			last, since = generation, time.Now()
		}
		return time.Since(since) >= z.Rest, nil
	})
}

// idle leaves the controller alone, but for what kubelets say about nodes at which nothing happens.
func (z *madeSizing) idle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, z.Idle)
	defer cancel()
	nodes, err := z.st.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return err
	}
	tick := time.NewTicker(heartbeats / time.Duration(len(nodes.Items)))
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
				return nil
			}
			return context.Cause(ctx)
		case now := <-tick.C:
			patch := fmt.Appendf(nil, `{"status":{"conditions":[{"type":"Ready","lastHeartbeatTime":%q}]}}`, now.UTC().Format(time.RFC3339))
			name := nodes.Items[i%len(nodes.Items)].Name
			// One that fails is no worse than one that a kubelet leaves out.
			_, err := z.st.client.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
			if err != nil && ctx.Err() == nil {
				z.st.line("idle", err.Error())
			}
		}
	}
}

// restart ends the controller while pods come that want a node each, and waits until it has decided.
func (z *madeSizing) restart(ctx context.Context) error {
	before, err := z.claims(ctx)
	if err != nil {
		return err
	}
	pid := z.st.session.Controller().PID()
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		return err
	}
	d := deployment("urgent", size{fmt.Sprintf("%dm", z.Cores*800), "1Gi"}, urgent)
	if z.Bare {
		err = z.unschedulable(ctx, d)
	} else {
		err = create(ctx, z.st, d)
	}
	if err != nil {
		return err
	}
	err = z.await(ctx, func(context.Context) (bool, error) {
		now := z.st.session.Controller().PID()
		return now != 0 && now != pid, nil
	})
	if err != nil {
		return err
	}
	began := time.Now()
	err = z.await(ctx, func(ctx context.Context) (bool, error) {
		now, err := z.claims(ctx)
		return now > before, err
	})
	if err != nil {
		return err
	}
	z.note("first decision", began)
	if z.Bare {
		return z.rest(ctx)
	}
	return z.running(ctx, "urgent")
}

// unschedulable creates the pods of a deployment, and says of them what the scheduler would.
func (z *madeSizing) unschedulable(ctx context.Context, d *appsv1.Deployment) error {
	pods := z.st.client.CoreV1().Pods(metav1.NamespaceDefault)
	for i := range *d.Spec.Replicas {
		pod := &corev1.Pod{ObjectMeta: *d.Spec.Template.ObjectMeta.DeepCopy(), Spec: d.Spec.Template.Spec}
		pod.Name = fmt.Sprint(d.Name, "-", i)
		pod, err := pods.Create(ctx, pod, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		pod.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, LastTransitionTime: metav1.Now(),
		}}
		if _, err := pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// burst has more pods come.
func (z *madeSizing) burst(ctx context.Context) error {
	began := time.Now()
	if err := create(ctx, z.st, deployment("burst", size{"500m", "1Gi"}, z.Burst)); err != nil {
		return err
	}
	if err := z.running(ctx, "burst"); err != nil {
		return err
	}
	z.note("all running", began)
	return z.rest(ctx)
}

// drift has all nodes drift, and waits until so many are gone.
func (z *madeSizing) drift(ctx context.Context) error {
	began := time.Now()
	before, err := z.nodes(ctx, "")
	if err != nil {
		return err
	}
	if err := relabel(ctx, z.st); err != nil {
		return err
	}
	waiting, most, sum, n := 0, 0, 0, 0
	err = z.await(ctx, func(ctx context.Context) (bool, error) {
		old, err := z.nodes(ctx, rollout+"!=2")
		if err != nil {
			return false, err
		}
		if waiting, err = z.pods(ctx, "", "spec.nodeName="); err != nil {
			return false, err
		}
		most, sum, n = max(most, waiting), sum+waiting, n+1
		if n%10 == 0 {
			z.st.line("drift", fmt.Sprintf("%d of %d old nodes left, %d pods wait", old, before, waiting))
		}
		return old <= before-z.Drifted, nil
	})
	z.note("replaced", began)
	z.took["pods waiting at most"], z.took["pods waiting on average"] = float64(most), float64(sum)/float64(max(n, 1))
	return err
}

// running waits until all pods of the deployment run.
func (z *madeSizing) running(ctx context.Context, app string) error {
	return z.await(ctx, func(ctx context.Context) (bool, error) {
		d, err := z.st.client.AppsV1().Deployments(metav1.NamespaceDefault).Get(ctx, app, metav1.GetOptions{})
		return err == nil && d.Status.ReadyReplicas == *d.Spec.Replicas, err
	})
}

// nodes counts them by label.
func (z *madeSizing) nodes(ctx context.Context, selector string) (int, error) {
	list, err := z.metadata.Resource(corev1.SchemeGroupVersion.WithResource("nodes")).List(ctx, metav1.ListOptions{LabelSelector: selector, ResourceVersion: "0"})
	if err != nil {
		return 0, err
	}
	return len(list.Items), nil
}

// pods counts them by labels and fields.
func (z *madeSizing) pods(ctx context.Context, labels, fields string) (int, error) {
	list, err := z.metadata.Resource(corev1.SchemeGroupVersion.WithResource("pods")).List(ctx, metav1.ListOptions{
		LabelSelector: labels, FieldSelector: fields, ResourceVersion: "0",
	})
	if err != nil {
		return 0, err
	}
	return len(list.Items), nil
}

func (z *madeSizing) claims(ctx context.Context) (int, error) {
	list, err := z.metadata.Resource(made.Claims).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return 0, err
	}
	return len(list.Items), nil
}

// claimsChanged is another number whenever a claim has come, changed or gone.
func (z *madeSizing) claimsChanged(ctx context.Context) (int64, error) {
	list, err := z.metadata.Resource(made.Claims).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return 0, err
	}
	sum := int64(len(list.Items))
	for i := range list.Items {
		sum += list.Items[i].Generation
		if list.Items[i].DeletionTimestamp != nil {
			sum += 1 << 32
		}
	}
	return sum, nil
}

// writeMade prints what writeLoads does not.
func writeMade(w io.Writer, all []*load) error {
	for _, l := range all {
		if _, err := fmt.Fprintf(w, "%s: live heap %d MiB; %v; plans %v\n", l.Phase, l.Live>>20, l.Took, l.Plans); err != nil {
			return err
		}
	}
	return nil
}
