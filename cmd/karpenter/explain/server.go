package explain

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"karpenter/kube/access"
	"karpenter/model"
	"karpenter/scenario"
)

// Paths that the Server serves.
const (
	PodsPath     = "/explain/pods/"  // followed by namespace/name
	NodesPath    = "/explain/nodes/" // followed by the name
	ClusterPath  = "/explain/cluster"
	SnapshotPath = "/snapshot"
)

const (
	headerTimeout = 10 * time.Second
	stopTimeout   = 5 * time.Second
)

// Server answers questions about the situation a running controller is in. It
// listens on a loopback address, since tokens come in over plain HTTP, and has
// every request judged by the Kubernetes API. All fields are required.
type Server struct {
	Address  string
	Access   access.Reviewer
	Snapshot func(now time.Time) *model.Snapshot
	Decide   func(*model.Snapshot) *model.Plan
	Place    func(*model.Snapshot) *model.Plan // pending pods of a situation that is not the cluster's
	Policy   model.Policy                      // that of Decide and Place
	Pods     client.Reader                     // knows the cluster's pods
	Ready    func() bool                       // the Snapshot holds everything there is
	Elected  <-chan struct{}
	Clock    clock.PassiveClock
}

// NeedLeaderElection has the server run on every replica: one that does not
// lead says so.
func (s *Server) NeedLeaderElection() bool { return false }

// Start serves until ctx ends.
func (s *Server) Start(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.Address)
	if err != nil {
		return fmt.Errorf("serve explanations: %w", err)
	}
	server := &http.Server{Handler: s.Handler(), ReadHeaderTimeout: headerTimeout, BaseContext: func(net.Listener) context.Context { return ctx }}
	log.FromContext(ctx).Info("serving explanations", "address", listener.Addr().String())
	ended := context.AfterFunc(ctx, func() {
		graceful, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		_ = server.Shutdown(graceful)
	})
	defer ended()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve explanations: %w", err)
	}
	return nil
}

// Handler serves the paths.
func (s *Server) Handler() http.Handler {
	turn := make(chan struct{}, 1) // one question at a time: each may be a whole decision
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+PodsPath+"{namespace}/{name}", s.guarded(turn, s.pod))
	mux.HandleFunc("GET "+NodesPath+"{name}", s.guarded(turn, s.node))
	mux.HandleFunc("GET "+ClusterPath, s.guarded(turn, s.cluster))
	mux.HandleFunc("GET "+SnapshotPath, s.guarded(turn, s.dump))
	return mux
}

// guarded lets those in who may ask, when there is something to answer with.
func (s *Server) guarded(turn chan struct{}, answer http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		failed := func(err error) {
			log.FromContext(r.Context()).Error(err, "an explanation is refused, the API server does not say who may ask")
		}
		if s.Access.Refuse(w, r, failed) {
			return
		}
		select {
		case <-s.Elected:
		default:
			http.Error(w, "this replica does not lead; ask the one that holds the lease", http.StatusServiceUnavailable)
			return
		}
		if !s.Ready() {
			http.Error(w, "the controller is still reading the cluster", http.StatusServiceUnavailable)
			return
		}
		select {
		case turn <- struct{}{}:
			defer func() { <-turn }()
			answer(w, r)
		case <-r.Context().Done():
		}
	}
}

func (s *Server) pod(w http.ResponseWriter, r *http.Request) {
	namespace, name := r.PathValue("namespace"), r.PathValue("name")
	snapshot := s.Snapshot(s.Clock.Now())
	a, found := Of(snapshot, s.Decide(snapshot), namespace+"/"+name)
	if !found {
		pod := &corev1.Pod{}
		err := s.Pods.Get(r.Context(), client.ObjectKey{Namespace: namespace, Name: name}, pod)
		switch {
		case apierrors.IsNotFound(err):
			http.Error(w, fmt.Sprintf("there is no pod %s in namespace %s", name, namespace), http.StatusNotFound)
			return
		case err != nil:
			log.FromContext(r.Context()).Error(err, "read a pod to explain")
			http.Error(w, "the pod cannot be read; see the log of the controller", http.StatusInternalServerError)
			return
		}
		a.Outcome, a.Reason = NoNeed, noNeed(pod)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(a) // the asker has gone
}

func (s *Server) node(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	snapshot := s.Snapshot(s.Clock.Now())
	a, found := OfNode(snapshot, s.Decide(snapshot), name)
	if !found {
		http.Error(w, "there is no node "+name, http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(a) // the asker has gone
}

func (s *Server) cluster(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(OfCluster(s.Snapshot(s.Clock.Now()), s.Place)) // the asker has gone
}

// noNeed says why the pod is not among those that ask for a node.
func noNeed(p *corev1.Pod) string {
	switch {
	case p.Status.Phase == corev1.PodSucceeded, p.Status.Phase == corev1.PodFailed:
		return "it has ended (" + string(p.Status.Phase) + ")"
	case p.DeletionTimestamp != nil:
		return "it is being deleted"
	case p.Spec.NodeName != "":
		return "it is bound to node " + p.Spec.NodeName
	case len(p.Spec.SchedulingGates) > 0:
		return "it is held back by scheduling gate " + p.Spec.SchedulingGates[0].Name
	case p.Status.NominatedNodeName != "":
		return "kube-scheduler keeps room for it on node " + p.Status.NominatedNodeName
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable {
			return "it is left to others: a DaemonSet, a static pod, or one that opted out"
		}
	}
	return "kube-scheduler has not found it unschedulable yet"
}

func (s *Server) dump(w http.ResponseWriter, _ *http.Request) {
	var text bytes.Buffer
	situation := scenario.Situation{Snapshot: s.Snapshot(s.Clock.Now()), Policy: s.Policy}
	if err := situation.Print(&text); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = text.WriteTo(w) // the asker has gone
}
